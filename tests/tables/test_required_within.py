"""Nested values that other engines have made NOT NULL: fields of structs, elements of arrays, map values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import trinity
from tests.support.iceberg import iceberg_spark, pyiceberg
from trinity import Column, Session, Table, TrinityError

COLUMNS: Final = [
    Column("k", "int", nullable=False),
    Column("v", "string"),
    Column("st", "struct<a:int,b:array<struct<c:string>>>"),
    Column("arr", "array<int>"),
    Column("m", "map<string,struct<p:int>>"),
]
DEMANDS: Final = [("st", "a"), ("st", "b", "element", "c"), ("arr", "element"), ("m", "value"), ("m", "value", "p")]
WHOLE: Final[dict[str, Any]] = {
    "k": 1,
    "v": "x",
    "st": {"a": 1, "b": [{"c": "c"}, None]},
    "arr": [3],
    "m": [("u", {"p": 5})],
}
EMPTY: Final = dict.fromkeys(("v", "st", "arr", "m"))
"""NULL in every column that has a NOT NULL value within it, which violates nothing."""
BARE: Final[dict[str, Any]] = {"v": None, "st": {"a": 2, "b": None}, "arr": [], "m": []}
BROKEN: Final[dict[str, dict[str, Any]]] = {
    "st.a": {"st": {"a": None, "b": None}},
    "st.b.element.c": {"st": {"a": 1, "b": [None, {"c": None}]}},
    "arr.element": {"arr": [1, None]},
    "m.value": {"m": [("u", None)]},
    "m.value.p": {"m": [("u", {"p": 1}), ("w", {"p": None})]},
}
"""Path -> a column that lacks a value there."""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Session]:
    """Yield a session without Spark."""
    with trinity.connect(tmp_path) as session:
        yield session


def make(session: Session, *key: str, external: bool = False) -> Table:
    """Make a table in whose nested columns PyIceberg has forbidden NULL: Trinity's own, or one that PyIceberg made."""
    session.create_table("iceberg.default.t", COLUMNS, primary_key=key)
    with pyiceberg(session.table("iceberg.default.t")).update_schema(allow_incompatible_changes=True) as schema:
        for path in DEMANDS:
            schema.update_column(path, required=True)
    if not external:
        return session.table("iceberg.default.t")
    ours = pyiceberg(session.table("iceberg.default.t"))
    session.drop_table("iceberg.default.t")
    ours.catalog.create_table("default.t", ours.schema())
    return session.register("iceberg.default.t", "iceberg", None, {"primary-key": ",".join(key)} if key else {})


def arrow(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema([c.to_arrow() for c in COLUMNS]))


def by_pyiceberg(table: Table) -> list[dict[str, Any]]:
    """Return the rows as PyIceberg reads them, which reads a NULL array or map as an empty one."""
    return [loosely(row) for row in in_order(pyiceberg(table).scan().to_arrow())]


def loosely(row: dict[str, Any]) -> dict[str, Any]:
    st = row["st"] and {**row["st"], "b": row["st"]["b"] or None}
    return {**row, "st": st, "arr": row["arr"] or None, "m": row["m"] or None}


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.select([c.name for c in COLUMNS]).to_pylist(), key=lambda row: row["k"])


def check_refused(table: Table, path: str, statement: Any) -> None:
    version = table.splits().version
    with pytest.raises(TrinityError) as refused:
        statement()
    assert refused.value.code == "CONSTRAINT_VIOLATION"
    assert f"'{path}' within column '{path.partition('.')[0]}' of table '{table.name}'" in refused.value.message
    assert table.splits().version == version


@pytest.mark.parametrize("external", [False, True], ids=["own", "external"])
@pytest.mark.parametrize("key", [("k",), ()], ids=["keyed", "plain"])
def test_arrow_data_lacks_no_required_value(here: Session, key: tuple[str, ...], external: bool) -> None:
    table = make(here, *key, external=external)
    add = table.upsert if key else table.append
    rows: list[dict[str, Any]] = [WHOLE, {"k": 2, **EMPTY}, {"k": 3, **BARE}]
    add(arrow(*rows))
    for path, part in BROKEN.items():
        check_refused(table, path, lambda part=part: add(arrow({**WHOLE, "k": 4, **part})))
    assert by_pyiceberg(table) == list(map(loosely, rows))
    if not external:
        assert in_order(table.to_arrow()) == rows


@pytest.mark.parametrize(
    ("key", "external"),
    [
        pytest.param(("k",), False, id="keyed"),
        pytest.param((), False, id="plain"),
        pytest.param(("k",), True, id="external"),
    ],
)
@pytest.mark.full
def test_no_door_lets_null_into_a_required_value(session: Session, key: tuple[str, ...], external: bool) -> None:
    table = make(session, *key, external=external)
    name, sql = table.name, session.sql
    add = table.upsert if key else table.append
    add(session.spark.createDataFrame(arrow(WHOLE, {"k": 2, **EMPTY}, {"k": 3, **BARE})))
    lacking = "named_struct('a', CAST(NULL AS INT), 'b', NULL)"
    frame = session.spark.createDataFrame(arrow({**WHOLE, "k": 4, **BROKEN["st.b.element.c"]}))
    check_refused(table, "st.b.element.c", lambda: add(frame))
    check_refused(table, "st.a", lambda: sql(f"INSERT INTO {name} (k, st) VALUES (4, {lacking})"))
    check_refused(table, "arr.element", lambda: sql(f"UPDATE {name} SET arr = array(1, NULL) WHERE k = 1"))
    merge = f"MERGE INTO {name} t USING (SELECT 4 AS k, {{}} AS st) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (k, st)"
    check_refused(table, "st.a", lambda: sql(f"{merge.format(lacking)} VALUES (s.k, s.st)"))
    sql(f"{merge.format('CAST(NULL AS STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING>>>)')} VALUES (s.k, s.st)")
    sql(f"UPDATE {name} SET v = 'changed', st = NULL WHERE k IN (1, 2)")
    table.compact(full=True)
    changed = {**WHOLE, "v": "changed", "st": None}
    rows = [changed, {**EMPTY, "k": 2, "v": "changed"}, {"k": 3, **BARE}, {**EMPTY, "k": 4}]
    assert in_order(table.to_arrow()) == rows
    assert in_order(table.to_df().toArrow()) == rows
    assert by_pyiceberg(table) == list(map(loosely, rows))
    theirs = iceberg_spark(session).table(f"iceberg.default.{table.name.table}")
    assert theirs.where("st.a IS NULL").count() == 3
    assert sorted(r.k for r in theirs.where("v = 'changed' OR st.a = 2").collect()) == [1, 2, 3]


def test_rows_that_are_older_than_a_demand_are_not_rewritten(session: Session) -> None:
    """PyIceberg checks no row when it makes a field NOT NULL."""
    table = session.create_table("iceberg.default.t", COLUMNS, primary_key=["k"])
    table.upsert(arrow({**WHOLE, **BROKEN["st.a"]}))
    with pyiceberg(table).update_schema(allow_incompatible_changes=True) as schema:
        schema.update_column(("st", "a"), required=True)
    before = in_order(table.to_arrow())
    assert before == [{**WHOLE, **BROKEN["st.a"]}]
    with pytest.raises(TrinityError, match="NULL in 'a'") as refused:
        table.compact(full=True)
    assert refused.value.code == "CONSTRAINT_VIOLATION"
    assert in_order(table.to_arrow()) == before
    table.upsert(arrow(WHOLE))
    table.compact(full=True)
    assert by_pyiceberg(table) == [WHOLE]
