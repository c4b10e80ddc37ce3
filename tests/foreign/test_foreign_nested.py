"""Nested fields that other engines rename, drop and add: each is identified by its id, at every depth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import IntegerType

from tests.support.iceberg import iceberg_spark, pyiceberg
from tests.support.refusals import refusal
from tests.support.tables import by_k
from trinity import Column, Session, Table
from trinity.spark.remote import plan_text

pytestmark = pytest.mark.inner

COLUMNS = [
    Column("k", "int", nullable=False),
    Column("st", "struct<a:int,b:struct<c:string,d:int>>"),
    Column("arr", "array<struct<x:int,y:int>>"),
    Column("m", "map<string,struct<p:int,q:int>>"),
]
FULL = {
    "k": 1,
    "st": {"a": 1, "b": {"c": "c", "d": 2}},
    "arr": [{"x": 3, "y": 4}, None],
    "m": [("u", {"p": 5, "q": 6})],
}
EMPTY = {"k": 2, "st": None, "arr": None, "m": None}
BARE = {"k": 3, "st": {"a": None, "b": None}, "arr": [], "m": []}
ROWS: list[dict[str, Any]] = [FULL, EMPTY, BARE]
CHANGED = {
    "k": 1,
    "st": {"z": 1, "b": {"c": "c", "d": None}},
    "arr": [{"y": 3, "x": None}, None],
    "m": [("u", {"q": 5})],
}
"""The first row after :func:`change`."""
AFTER: list[dict[str, Any]] = [CHANGED, EMPTY, {**BARE, "st": {"z": None, "b": None}}]


PRUNED = "spark.sql.optimizer.nestedSchemaPruning.enabled"
VECTORIZED = "spark.sql.parquet.enableNestedColumnVectorizedReader"


def make(session: Session, *key: str, properties: dict[str, str] | None = None) -> Table:
    table = session.create_table("iceberg.default.t", COLUMNS, primary_key=key, properties=properties or {})
    add(table, *ROWS)
    return table


def add(table: Table, *rows: dict[str, Any]) -> None:
    data = pa.Table.from_pylist(list(rows), pa.schema([c.to_arrow() for c in table.definition.visible]))
    (table.upsert if table.definition.keyed else table.append)(data)


def change(table: Table) -> None:
    """Rename fields by another engine, one to the name of a dropped field, and drop and add another one."""
    steps: list[Callable[[UpdateSchema], object]] = [
        lambda schema: schema.rename_column(("st", "a"), "z"),
        lambda schema: schema.delete_column(("st", "b", "d")),
        lambda schema: schema.delete_column(("arr", "element", "y")),
        lambda schema: schema.delete_column(("m", "value", "q")),
        lambda schema: schema.rename_column(("arr", "element", "x"), "y"),
        lambda schema: schema.rename_column(("m", "value", "p"), "q"),
        lambda schema: schema.add_column(("st", "b", "d"), IntegerType()),
        lambda schema: schema.add_column(("arr", "element", "x"), IntegerType()),
    ]
    for step in steps:
        with pyiceberg(table).update_schema() as schema:
            step(schema)


@pytest.mark.parametrize("key", [("k",), ()], ids=["keyed", "plain"])
def test_fields_are_read_by_id_at_every_depth(session: Session, key: tuple[str, ...]) -> None:
    """The rows are read in this process, without Spark."""
    table = make(session, *key)
    start = table.splits().version
    change(table)
    assert by_k(table.to_arrow()) == AFTER
    added = {"k": 4, "st": {"z": 7, "b": {"c": "n", "d": 8}}, "arr": [{"y": 9, "x": 10}], "m": [("v", {"q": 11})]}
    add(table, added)
    assert by_k(table.to_arrow()) == [*AFTER, added]
    assert by_k(table.to_arrow(version=start)) == ROWS


@pytest.mark.parametrize("key", [("k",), ()], ids=["keyed", "plain"])
def test_what_rewrites_rows_keeps_their_values(session: Session, key: tuple[str, ...]) -> None:
    table = make(session, *key)
    start = table.splits().version
    change(table)
    assert by_k(table.to_df().toArrow()) == AFTER
    assert table.to_df().where("st.b.d = 2").count() == 0
    assert [r.z for r in table.to_df().where("get(arr, 0).y = 3 AND st.b.c = 'c'").select("st.z").collect()] == [1]
    session.sql("UPDATE iceberg.default.t SET k = k WHERE k = 3" if not key else "UPDATE iceberg.default.t SET m = m")
    assert by_k(table.to_df().toArrow()) == AFTER
    table.compact(full=True)
    assert by_k(table.to_arrow()) == AFTER
    shown = iceberg_spark(session).sql("SELECT k, st, arr, m FROM iceberg.default.t").toArrow()
    assert by_k(shown) == AFTER
    assert by_k(table.to_df(version=start).toArrow()) == ROWS


def made_anew(table: Table) -> None:
    """Drop every field of some structs by another engine, and add fields of the same names."""
    for holder, names in {("st",): "ab", ("arr", "element"): "xy", ("m", "value"): "pq"}.items():
        with pyiceberg(table).update_schema() as schema:
            schema.add_column((*holder, "new"), IntegerType())
            for name in names:
                schema.delete_column((*holder, name))
        for name in names:
            with pyiceberg(table).update_schema() as schema:
                schema.add_column((*holder, name), IntegerType())
        with pyiceberg(table).update_schema() as schema:
            schema.delete_column((*holder, "new"))


@pytest.mark.parametrize("pruned", ["true", "false"])
def test_structs_stay_of_which_no_field_is_left(session: Session, pruned: str) -> None:
    """This holds under every setting of Spark's Parquet reader; the settings are unchanged afterwards."""
    conf, settings = session.spark.conf, {PRUNED: pruned, VECTORIZED: "true"}
    table, other = make(session, "k"), session.create_table("iceberg.default.other", COLUMNS)
    add(other, FULL)
    made_anew(table)
    part = {"x": None, "y": None}
    full = {"st": {"a": None, "b": None}, "arr": [part, None], "m": [("u", {"p": None, "q": None})]}
    rows = [{"k": 1, **full}, EMPTY, BARE]
    before = {name: str(conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            conf.set(name, value)
        frame = table.to_df()
        assert by_k(frame.toArrow()) == by_k(table.to_arrow()) == rows
        assert frame.where("st.a = 1 OR get(arr, 0).x = 3").select("st.a").collect() == []
        assert {name: conf.get(name) for name in settings} == settings
        whole = "st:struct<a:int,b:struct<c:string,d:int>>"
        plan = plan_text(other.to_df().select("st.a"))
        assert ("ReadSchema: struct<st:struct<a:int>>" in plan, whole in plan) == (pruned == "true", pruned == "false")
    finally:
        for name, value in before.items():
            conf.set(name, value)
    table.compact(full=True)
    assert by_k(table.to_df().toArrow()) == rows


@pytest.mark.parametrize("producer", ["none", "lookup", "input"])
def test_a_feed_shows_fields_by_id(session: Session, producer: str) -> None:
    table = make(session, "k", properties={"changelog-producer": producer})
    change(table)
    add(table, {**CHANGED, "st": {"z": 12, "b": {"c": "c", "d": 13}}})
    rows = table.changes(1).toArrow().to_pylist()
    first = [r for r in rows if r["_change_type"] == "insert" and r["k"] == 1]
    assert {name: first[0][name] for name in CHANGED} == CHANGED
    assert [r["st"]["z"] for r in rows if r["k"] == 1][-1] == 12
    assert {r["_commit_version"] for r in rows} == {2, 3}


def test_a_view_of_files_with_other_fields_is_refused(session: Session) -> None:
    table = make(session, "k")
    change(table)
    for dialect in ("duckdb", "spark"):
        refusal("NOT_SUPPORTED", partial(table.merge_view_sql, dialect), "within column 'st'")
    table.compact(full=True)
    found = duckdb.sql(table.merge_view_sql("duckdb"))
    assert found is not None
    assert found.order("k").fetchall()[0][1] == CHANGED["st"]


def test_a_view_of_a_table_of_others_is_refused_too(session: Session, tmp_path: Path) -> None:
    catalog = SqlCatalog("others", uri=f"sqlite:///{tmp_path}/others.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("ns")
    rows = pa.table({"k": [1], "st": pa.array([{"a": 1, "b": 2}])})
    theirs = catalog.create_table("ns.t", rows.schema, location=f"file://{tmp_path}/theirs")
    theirs.append(rows)
    table = session.register("theirs", "iceberg", tmp_path / "theirs", {"primary-key": "k"})
    assert "parquet" in table.merge_view_sql("duckdb")
    with theirs.update_schema() as schema:
        schema.rename_column(("st", "a"), "z")
    assert table.to_df().first().st.z == 1  # type: ignore[union-attr]
    for dialect in ("duckdb", "spark"):
        refusal("NOT_SUPPORTED", partial(table.merge_view_sql, dialect), "within column 'st'")
