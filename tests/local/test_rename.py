"""ALTER TABLE RENAME: the table keeps all that it has under another name."""

from __future__ import annotations

from pathlib import Path

import pytest

import trinity
from tests.support.refusals import refused
from trinity import Column, Session, Table

COLUMNS = [Column("k", "int", nullable=False), Column("n", "int")]


@pytest.fixture
def table(local: Session, local_fmt: str) -> Table:
    local.use(local_fmt, "default")
    made = local.create_table("old", COLUMNS, primary_key=["k"], checks={"small": "n < 100"})
    made.upsert([{"k": 1, "n": 1}, {"k": 2, "n": 2}], txn=("load", 7))
    made.compact("full")
    made.upsert([{"k": 2, "n": 5}])
    return made


def test_a_renamed_table_is_the_same_table(local: Session, table: Table) -> None:
    history, rows = table.history().collect(), table.to_arrow().sort_by("k")
    renamed = table.rename("new")
    assert (renamed.name.table, renamed.name.schema) == ("new", "default")
    assert local.tables() == [str(renamed.name)]
    assert renamed.to_arrow().sort_by("k") == rows
    assert renamed.history().collect() == history
    assert [renamed.count(version=entry.version) for entry in reversed(history)] == [0, 2, 2, 2]
    assert renamed.definition.full_name == str(renamed.name)
    with refused("TABLE_NOT_FOUND", "old"):
        table.count()


def test_it_goes_on_under_its_new_name(local: Session, table: Table) -> None:
    before = table.version
    renamed = table.rename("new")
    assert renamed.upsert([{"k": 9, "n": 9}], txn=("load", 7)).skipped
    local.sql("UPDATE new SET n = n + 1 WHERE k = 1")
    local.sql("ALTER TABLE new ADD COLUMN extra STRING")
    renamed.upsert([{"k": 3, "n": 3, "extra": "x"}])
    renamed.compact("full")
    rows = [{"k": 1, "n": 2, "extra": None}, {"k": 2, "n": 5, "extra": None}, {"k": 3, "n": 3, "extra": "x"}]
    assert renamed.to_arrow().sort_by("k").to_pylist() == rows
    changed = {(row.k, row["_change_type"]) for row in renamed.changes(before).collect()}
    assert changed == {(1, "update_preimage"), (1, "update_postimage"), (3, "insert")}
    with refused("CONSTRAINT_VIOLATION", f"{renamed.name}"):
        renamed.upsert([{"k": 4, "n": 100}])
    renamed.restore(before)
    assert renamed.to_arrow().sort_by("k").to_pylist() == [{"k": 1, "n": 1}, {"k": 2, "n": 5}]
    local.drop_table("new")
    assert local.tables() == []


def test_the_old_name_is_free(local: Session, table: Table) -> None:
    renamed = local.rename_table("old", "new")
    other = local.create_table("old", COLUMNS, primary_key=["k"])
    other.upsert([{"k": 7, "n": 7}])
    assert (other.count(), renamed.count()) == (1, 2)
    local.drop_table("old")
    assert renamed.upsert([{"k": 8, "n": 8}]).rows == 1
    assert renamed.to_arrow()["k"].to_pylist() == [1, 2, 8] or renamed.count() == 3
    local.drop_table("new")
    assert local.tables() == []


def test_a_schema_that_a_table_has_left_is_dropped(local: Session, local_fmt: str, table: Table) -> None:
    local.create_schema("other")
    table.rename("other.kept").rename(f"{local_fmt}.default.kept")
    local.create_table("other.gone", COLUMNS, primary_key=["k"])
    renamed = local.table("other.gone").rename("default.moved")
    renamed.upsert([{"k": 1, "n": 1}])
    local.drop_schema("other")
    assert local.table("default.moved").count() == 1
    local.create_schema("other")
    again = local.create_table("other.gone", COLUMNS, primary_key=["k"])
    again.upsert([{"k": 2, "n": 2}])
    local.drop_table("default.moved")
    assert again.to_arrow()["k"].to_pylist() == [2]
    local.drop_schema("other", cascade=True)
    assert local.table("default.kept").count() == 2


def test_into_another_schema_and_back(local: Session, local_fmt: str, table: Table) -> None:
    local.create_schema("other")
    renamed = table.rename("other.old")
    assert str(renamed.name) == f"{local_fmt}.other.old"
    local.use(local_fmt, "other")
    local.sql(f"ALTER TABLE old RENAME TO {local_fmt}.default.OLD")
    assert local.table(f"{local_fmt}.default.old").count() == 2
    local.drop_schema("other")


def test_what_is_refused_changes_nothing(local: Session, table: Table) -> None:
    local.create_table("taken", COLUMNS)
    with refused("TABLE_ALREADY_EXISTS", "taken"):
        table.rename("taken")
    with refused("TABLE_ALREADY_EXISTS", "old"):
        table.rename("OLD")
    with refused("SCHEMA_NOT_FOUND", "nowhere"):
        table.rename("nowhere.new")
    with refused("TABLE_NOT_FOUND", "odl"):
        local.rename_table("odl", "new")
    other = "delta" if table.name.catalog == "parquet" else "parquet"
    with refused("INVALID_ARGUMENTS", "copy_to"):
        table.rename(f"{other}.default.new")
    with refused("INVALID_ARGUMENTS", "no table name"):
        local.sql("ALTER TABLE old RENAME TO a.b.c.d")
    assert table.count() == 2
    assert [name.rpartition(".")[2] for name in local.tables()] == ["old", "taken"]


@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
def test_another_session_follows(warehouse: Path, local: Session, fmt: str) -> None:
    """A statement that began before the rename fails, and writes nothing to a table of the old name."""
    table = local.create_table(f"{fmt}.default.old", COLUMNS, primary_key=["k"])
    table.upsert([{"k": 1, "n": 1}])
    with trinity.connect(warehouse, engine="local") as elsewhere:
        theirs = elsewhere.table(f"{fmt}.default.old")
        assert theirs.count() == 1
        insert = theirs.connector.metadata.begin_insert(theirs.handle)
        table.rename("new")
        with refused("TABLE_NOT_FOUND", "old"):
            theirs.upsert([{"k": 2, "n": 2}])
        local.create_table(f"{fmt}.default.old", COLUMNS, primary_key=["k"])
        with pytest.raises(trinity.TrinityError) as error:
            theirs.connector.metadata.finish_insert(insert, [], ("late", 1))
        assert error.value.code in ("TRANSACTION_CONFLICT", "TABLE_NOT_FOUND")
        if fmt == "iceberg":  # whose new table lies elsewhere
            with refused("TABLE_NOT_FOUND", "old"):
                theirs.upsert([{"k": 2, "n": 2}])
        assert elsewhere.table(f"{fmt}.default.new").count() == 1
        assert elsewhere.table(f"{fmt}.default.old").count() == 0


def test_a_registered_table_keeps_its_name(local: Session, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"k": [1]}), tmp_path / "files/a.parquet")
    local.register("parquet.default.theirs", "parquet", tmp_path / "files", {"primary-key": "k"})
    with refused("NOT_SUPPORTED", "register"):
        local.rename_table("parquet.default.theirs", "parquet.default.new")
    assert local.tables() == ["parquet.default.theirs"]
