"""``ALTER TABLE … ADD COLUMN c … DEFAULT x``: existing rows have x, in the same commit (L3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial

import deltalake
import pyarrow as pa
import pytest

from tests.support.iceberg import pyiceberg
from tests.support.refusals import refused
from tests.support.threads import meanwhile
from trinity import Column, Session, Table
from trinity.definition import evolve
from trinity.spi import TableDefinition

pytestmark = pytest.mark.inner

Rows = list[dict[str, object]]


@pytest.fixture
def keyed(local: Session, local_fmt: str) -> Table:
    """Make a table with a base, a log, a late row, a deleted row, and a dropped column."""
    local.use(local_fmt, "default")
    local.sql("""CREATE TABLE t (k INT PRIMARY KEY, w INT, note STRING)
        TBLPROPERTIES ('watermark-key' = 'w')""")
    table = local.table("t")
    table.upsert([{"k": n, "w": 10, "note": "old"} for n in range(4)])
    table.compact("full")
    local.sql("INSERT INTO t VALUES (1, 5, 'late'), (2, 11, 'newer')")
    local.sql("DELETE FROM t WHERE k = 3")
    local.sql("ALTER TABLE t DROP COLUMN note")
    return table


def by_key(table: Table) -> Rows:
    return list(table.to_arrow().sort_by("k").to_pylist())


def test_rows_of_every_tier_have_the_default(local: Session, keyed: Table) -> None:
    before = keyed.version
    local.sql("ALTER TABLE t ADD COLUMN note INT DEFAULT 7 AFTER k")
    assert keyed.version == before + 1
    assert by_key(keyed) == [{"k": 0, "note": 7, "w": 10}, {"k": 1, "note": 7, "w": 10}, {"k": 2, "note": 7, "w": 11}]
    assert keyed.to_arrow(version=before).column_names == ["k", "w"]
    changed = {(row.k, row["_change_type"], row.note) for row in keyed.changes(before).collect()}
    kinds = [("update_preimage", None), ("update_postimage", 7)]
    assert changed == {(k, kind, note) for k in range(3) for kind, note in kinds}
    local.sql("INSERT INTO t (k, w) VALUES (0, 12), (1, 9)")
    local.sql("INSERT INTO t VALUES (9, NULL, 1)")
    local.sql("UPDATE t SET note = note + 1 WHERE note = 7 AND k = 2")
    expected = [(0, 7), (1, 7), (2, 8), (9, None)]
    assert [(row["k"], row["note"]) for row in by_key(keyed)] == expected
    keyed.compact("full")
    assert [(row["k"], row["note"]) for row in by_key(keyed)] == expected
    assert local.sql("SELECT k FROM t WHERE note = 7 ORDER BY k").fetchall() == [(0,), (1,)]


def test_a_plain_table(local: Session, local_fmt: str) -> None:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE t (k INT, day DATE) PARTITIONED BY (day)")
    local.sql("INSERT INTO t VALUES (1, DATE '2024-01-01'), (2, DATE '2024-01-02'), (2, DATE '2024-01-02')")
    table = local.table("t")
    before = table.version
    local.sql("ALTER TABLE t ADD COLUMNS (a DECIMAL(5,2) DEFAULT 1.5, b STRING, c DATE DEFAULT DATE '2020-02-29')")
    assert table.version == before + 1
    rows = table.to_arrow().sort_by("k").select(["k", "a", "b", "c"]).to_pylist()
    assert [(row["k"], str(row["a"]), row["b"], row["c"]) for row in rows] == [
        (k, "1.50", None, date(2020, 2, 29)) for k in (1, 2, 2)
    ]
    assert local.sql("SELECT k FROM t WHERE a > 1 AND day = DATE '2024-01-01'").fetchall() == [(1,)]
    found = local.sql(
        "MERGE INTO t USING VALUES (1, 9) AS s(k, n) ON t.k = s.k AND t.a = 1.5 "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k) VALUES (s.n)"
    ).first()
    assert (found.num_deleted_rows, found.num_inserted_rows) == (1, 0)


def test_a_table_without_rows_and_python(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.t", [Column("k", "int")], primary_key=["k"])
    table.add_column(Column("v", "string", default="'x'"), after="")
    assert table.version == 1 or local_fmt == "iceberg"
    assert table.columns == ["v", "k"]
    local.sql(f"INSERT INTO {table.name} (k) VALUES (1)")
    assert by_key(table) == [{"v": "x", "k": 1}]
    local.sql(f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS v STRING DEFAULT 'y'")
    assert by_key(table) == [{"v": "x", "k": 1}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("'merge-engine' = 'partial-update'", 7),
        ("'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum'", 7),
    ],
)
def test_engines_that_fold_by_column(local: Session, local_fmt: str, options: str, expected: int) -> None:
    local.use(local_fmt, "default")
    local.sql(f"CREATE TABLE t (k INT PRIMARY KEY, n INT) TBLPROPERTIES ({options})")
    local.sql("INSERT INTO t VALUES (1, 1)")
    local.sql("INSERT INTO t VALUES (1, 4)")
    before = by_key(local.table("t"))
    local.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    assert by_key(local.table("t")) == [{**row, "c": expected} for row in before]


def test_what_is_refused_leaves_the_table(local: Session, local_fmt: str) -> None:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE f (k INT PRIMARY KEY) TBLPROPERTIES ('merge-engine' = 'first-row')")
    local.sql("INSERT INTO f VALUES (1)")
    table = local.table("f")
    before = table.version
    with refused("NOT_SUPPORTED", "first-row", "ADD COLUMN c int", "ALTER COLUMN c SET DEFAULT 7"):
        local.sql("ALTER TABLE f ADD COLUMN c INT DEFAULT 7")
    with refused("NOT_SUPPORTED", "SET NOT NULL"):
        local.sql("ALTER TABLE f ADD COLUMN c INT NOT NULL DEFAULT 7")
    with refused("NOT_SUPPORTED", "statement of their own"):
        table.alter(
            partial(evolve.rename_column, old="k", new="key"),
            partial(evolve.added, column=Column("c", "int", default="7")),
        )
    assert (table.version, table.columns) == (before, ["k"])
    local.sql("ALTER TABLE f ADD COLUMN c int")
    local.sql("ALTER TABLE f ALTER COLUMN c SET DEFAULT 7")
    local.sql("INSERT INTO f (k) VALUES (2)")
    assert by_key(table) == [{"k": 1, "c": None}, {"k": 2, "c": 7}]


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_rows_that_come_meanwhile_have_the_default_too(
    local: Session, local_fmt: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.use(local_fmt, "default")
    local.sql(f"CREATE TABLE t (k INT{key})")
    local.sql("INSERT INTO t VALUES (1)")
    table = local.table("t")
    meanwhile(monkeypatch, table, "begin_merge", lambda: local.sql("INSERT INTO t VALUES (2)"))
    local.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    assert by_key(table) == [{"k": 1, "c": 7}, {"k": 2, "c": 7}]


def test_an_append_that_began_before_is_refused(
    local: Session, local_fmt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE t (k INT)")
    table = local.table("t")
    meanwhile(monkeypatch, table, "begin_insert", lambda: local.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7"))
    with refused("TRANSACTION_CONFLICT", "c DEFAULT 7"):
        table.append([{"k": 1}])
    table.append([{"k": 2}])
    assert by_key(table) == [{"k": 2, "c": 7}]


@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
def test_other_engines_read_the_default(local: Session, fmt: str) -> None:
    table = local.create_table(f"{fmt}.default.t", pa.table({"k": [1, 2]}))
    table.add_column(Column("c", "string", default="'x'"))
    found = (
        deltalake.DeltaTable(table.location).to_pyarrow_table()
        if fmt == "delta"
        else pyiceberg(table).scan().to_arrow()
    )
    assert sorted(zip(*found.select(["k", "c"]).to_pydict().values(), strict=True)) == [(1, "x"), (2, "x")]


def test_other_changes_beside_a_default_are_refused(local: Session, local_fmt: str) -> None:
    """A new column with a DEFAULT is a row change, which would commit the columns alone."""
    table = local.create_table(f"{local_fmt}.default.t", [Column("k", "int")], primary_key=["k"])
    table.upsert(pa.table({"k": [1]}))
    before = table.definition
    note = partial(evolve.added, column=Column("note", "string", default="'x'"))
    comment = partial(evolve.with_changed_properties, given={"comment": "y"})
    with refused("NOT_SUPPORTED", "'note'", "in a statement of their own"):
        table.alter(note, comment)
    assert local.table(table.name).definition == before


def _unless_there(*columns: Column) -> evolve.Change:
    """Return the change that adds those of some columns that a table does not have."""

    def change(definition: TableDefinition) -> TableDefinition:
        for column in columns:
            if column.name not in [c.name for c in definition.visible]:
                definition = evolve.added(definition, column)
        return definition

    return change


def _after_first_call(change: evolve.Change, happens: Callable[[], object]) -> evolve.Change:
    """Return a change during whose first call something else happens."""
    waiting = [happens]

    def changed(definition: TableDefinition) -> TableDefinition:
        found = change(definition)
        if waiting:
            waiting.pop()()
        return found

    return changed


@pytest.mark.parametrize("moment", ["planned", "begun"])
def test_another_writer_adds_the_column_meanwhile(
    local: Session, local_fmt: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other columns of the statement come all the same."""
    table = local.create_table(f"{local_fmt}.default.t", [Column("k", "int")], primary_key=["k"])
    table.upsert([{"k": 1}])
    rival = partial(local.sql, f"ALTER TABLE {table.name} ADD COLUMN c INT DEFAULT 8")
    change = _unless_there(Column("c", "int", default="7"), Column("d", "string"))
    if moment == "begun":
        meanwhile(monkeypatch, table, "begin_merge", rival)
        table.alter(change)
    else:
        table.alter(_after_first_call(change, rival))
    assert by_key(table) == [{"k": 1, "c": 8, "d": None}]


def test_another_writer_drops_the_column_meanwhile(local: Session, local_fmt: str) -> None:
    """The column is added then, and existing rows have its DEFAULT."""
    table = local.create_table(f"{local_fmt}.default.t", [Column("k", "int"), Column("c", "int")], primary_key=["k"])
    table.upsert([{"k": 1, "c": 3}])
    rival = partial(local.sql, f"ALTER TABLE {table.name} DROP COLUMN c")
    table.alter(_after_first_call(_unless_there(Column("c", "int", default="7"), Column("d", "string")), rival))
    assert by_key(table) == [{"k": 1, "c": 7, "d": None}]
