"""Calls of a connector's metadata by a statement: each question once; results are passed on as values."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import pytest

import trinity
from tests.support.counting import counted
from tests.support.tables import new_rows
from trinity import Column, Session, Table

_COUNTED: Final = (
    "get_table",
    "get_table_definition",
    "get_splits",
    "history",
    "begin_insert",
    "finish_insert",
    "begin_merge",
    "finish_merge",
    "begin_rewrite",
    "finish_rewrite",
    "alter_table",
)
_APPEND: Final = {"begin_insert": 1, "finish_insert": 1}
_CHANGE: Final = {"get_splits": 1, "begin_merge": 1, "begin_insert": 1, "finish_merge": 1}
"""Calls of a row change. An adapter's ``begin_merge`` calls its own ``begin_insert``."""


@pytest.fixture(params=["keyed", pytest.param("plain", marks=pytest.mark.full)])
def table(request: pytest.FixtureRequest, session: Session, tiered_fmt: str) -> Table:
    """Make two tables of two commits in the current schema: ``t``, which is returned, and ``beside``."""
    session.use(tiered_fmt, "default")
    key = ["k"] if request.param == "keyed" else []
    made = [
        session.create_table(
            f"{tiered_fmt}.default.{name}", [Column("k", "int"), Column("v", "string")], primary_key=key
        )
        for name in ("beside", "t")
    ]
    for at in made:
        for keys in ((1, 2), (3,)):
            (at.upsert if key else at.append)(new_rows(*keys))
    return made[1]


def test_an_append_begins_and_finishes(table: Table) -> None:
    write = table.upsert if table.definition.keyed else table.append
    with counted(table.connector.metadata, *_COUNTED) as calls:
        write(new_rows(4))
    assert calls == _APPEND


_INSERTED: Final = {"get_table_definition": 1, **_APPEND}
_MERGED: Final = "WHEN MATCHED THEN UPDATE SET v = n.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (n.k, n.v)"
_SQL: Final = {
    "INSERT INTO t VALUES (4, 'new')": {**_INSERTED, "get_table": 1},
    "INSERT INTO t SELECT k + 10, v FROM beside": {**_INSERTED, "get_table": 2, "get_splits": 1},
    "INSERT INTO t SELECT k + 10, v FROM t": {**_CHANGE, "get_table": 2, "get_table_definition": 1},
    "UPDATE t SET v = 'changed' WHERE k = 1": {**_CHANGE, "get_table": 1},
    "DELETE FROM t WHERE k = 1": {**_CHANGE, "get_table": 1},
    "DELETE FROM t WHERE k IN (SELECT max(k) FROM t)": {**_CHANGE, "get_table": 2},
    f"MERGE INTO t USING (VALUES (1, 'a'), (9, 'b')) AS n (k, v) ON t.k = n.k {_MERGED}": {**_CHANGE, "get_table": 1},
    f"MERGE INTO t USING (SELECT k + 1 AS k, v FROM t) AS n ON t.k = n.k {_MERGED}": {**_CHANGE, "get_table": 2},
    "MERGE INTO t USING beside b ON t.k = b.k WHEN MATCHED THEN DELETE": {**_CHANGE, "get_table": 2, "get_splits": 2},
    "SELECT count(*) FROM t": {"get_table": 1, "get_splits": 1},
    "SELECT a.v FROM t a JOIN t b ON a.k = b.k": {"get_table": 2, "get_splits": 1},
    "DESCRIBE EXTENDED t": {"get_table": 1, "get_table_definition": 1},
    "SHOW CREATE TABLE t": {"get_table": 1, "get_table_definition": 1},
}
"""Statement -> calls. A name is looked up once for each occurrence."""


@pytest.mark.parametrize(("statement", "calls"), _SQL.items())
def test_sql_asks_once(session: Session, table: Table, statement: str, calls: dict[str, int]) -> None:
    with counted(table.connector.metadata, *_COUNTED) as found:
        session.sql(statement).collect()
    assert found == calls


@pytest.mark.parametrize("local_bytes", [None, 1])
def test_a_statement_that_is_left_to_spark_late_has_begun_once(
    table: Table, warehouse: Path, caplog: pytest.LogCaptureFixture, local_bytes: int | None
) -> None:
    """Its files are found to be too many, or an expression to be one that only Spark evaluates, once it has begun."""
    change = f"UPDATE t SET v = {'upper' if local_bytes else 'soundex'}(v) WHERE k = 1"
    with (
        trinity.connect(warehouse, catalog=table.name.catalog, local_bytes=local_bytes) as session,
        counted(session.table("t").connector.metadata, *_COUNTED) as found,
    ):
        caplog.set_level("DEBUG", "trinity")
        session.sql(change)
    assert f"The statement on '{table.name}': executed by Spark, since " in caplog.text
    assert found == {**_CHANGE, "get_table": 1}
    assert table.to_arrow(where="k = 1").column("v").to_pylist() == ["NEW" if local_bytes else "N000"]


def test_a_translated_merge_asks_once(session: Session, table: Table) -> None:
    with counted(table.connector.metadata, *_COUNTED) as found:
        session.sql(
            "MERGE INTO t USING (SELECT k, concat(v, 'x') AS v FROM beside) AS n ON t.k = n.k "
            "WHEN MATCHED THEN UPDATE SET v = n.v",
            dialect="trino",
        )
    del found["get_table"]
    assert found == {**_CHANGE, "get_splits": 2}


def test_changes_from_python_ask_once(table: Table) -> None:
    metadata = table.connector.metadata
    with counted(metadata, *_COUNTED) as found:
        table.update("k = 1", {"v": "'changed'"})
    assert found == _CHANGE
    with counted(metadata, *_COUNTED) as found:
        table.delete("k = 1")
    assert found == _CHANGE
    if table.definition.keyed:
        with counted(metadata, *_COUNTED) as found:
            assert table.delete([2, 3]).rows == 2
        assert found == _CHANGE
    source = table.session.spark.createDataFrame([(7, "merged")], "k int, v string")
    merge = table.merge(source, "t.k = s.k").when_matched_update_all().when_not_matched_insert_all()
    with counted(metadata, *_COUNTED) as found:
        merge.execute()
    assert found == _CHANGE


def test_reads_and_compaction_ask_once(table: Table) -> None:
    metadata = table.connector.metadata
    with counted(metadata, *_COUNTED) as found:
        assert table.to_df().count() == 3
    assert found == {"get_splits": 1}
    with counted(metadata, *_COUNTED) as found:
        assert not table.compact(full=True).skipped
    assert found == {"get_splits": 1, "begin_rewrite": 1, "finish_rewrite": 1}


def test_constraints_look_before_the_commit_and_within_it(table: Table) -> None:
    metadata = table.connector.metadata
    for constrain in (partial(table.set_not_null, "v"), partial(table.add_check, "short", "length(v) < 9")):
        with counted(metadata, *_COUNTED) as found:
            constrain()
        assert found == {"get_splits": 2, "alter_table": 1}


def test_a_definition_lists_no_files(table: Table) -> None:
    with counted(table.connector.metadata, *_COUNTED) as found:
        assert [c.name for c in table.definition.visible] == ["k", "v"]
        assert table.definition == table.splits().definition
    assert found == {"get_table_definition": 2, "get_splits": 1}


def test_changes_ask_for_the_history_once(table: Table) -> None:
    first = table.connector.metadata.history(table.handle)[0].version
    with counted(table.connector.metadata, *_COUNTED) as found:
        assert table.changes(first).count() == 3
    assert found["history"] == 1


@pytest.mark.full
def test_a_micro_batch_asks_for_the_history_once_to_plan_and_once_for_its_files(
    table: Table, session: Session, tmp_path: Path
) -> None:
    """Spark asks for the end of the table and for a batch's files. Commits that are known are not read again."""
    rows: list[int] = []
    frame = session.spark.readStream.format("trinity").option("table", str(table.name)).load()
    stream = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(
        lambda batch, _: rows.append(batch.count())
    )
    stream.trigger(availableNow=True).start().awaitTermination()
    (table.upsert if table.definition.keyed else table.append)(new_rows(4))
    with counted(table.connector.metadata, *_COUNTED) as found:
        stream.trigger(availableNow=True).start().awaitTermination()
    assert rows == [3, 1]
    assert found["history"] == 2
