"""A merge view returns the merged rows in engines without Trinity."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import SparkSession

import trinity
from tests.support.merge_views import check_view
from tests.support.typed_rows import CASES, typed_rows
from trinity import Column, Session, Table, TrinityError
from trinity.spi import arrow_type

NAN = float("nan")
VALUES: dict[str, list[Any]] = {
    "boolean": [None, True, False],
    "int": [None, 1, 2],
    "bigint": [None, 0, 1],
    "double": [None, -0.0, 0.0, 1.5, NAN],
    "string": [None, "", "D", "é"],
    "binary": [None, b"", b"\xff"],
    "decimal(5,2)": [None, Decimal("0.00"), Decimal("1.10")],
    "date": [None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "array<int>": [None, [], [1, None], [2, 1, 1]],
}
KINDS = ["+I", "-U", "+U", "-D"]
KEY = {"k": "double", "part": "string"}
"""Key columns with few values, so that every key has many versions."""


def history(columns: Mapping[str, str], seed: int, rows: int = 60) -> pa.Table:
    """Return row versions of few keys, whose values order them in every way."""
    chosen = random.Random(seed)
    arrays = {}
    for name, kind in columns.items():
        domain = KINDS if name == "op" else [v for v in VALUES[kind] if v is not None or name not in KEY]
        arrays[name] = pa.array([chosen.choice(domain) for _ in range(rows)], arrow_type(kind))
    return pa.table({**arrays, "place": pa.array(range(seed * rows, seed * rows + rows), pa.int64())})


def make(
    session: Session, name: str, columns: Mapping[str, str], properties: Mapping[str, str], key: Iterable[str] = KEY,
    partition_by: Sequence[str] = (),
) -> Table:  # fmt: skip
    given = [Column(c, kind, nullable=c not in key) for c, kind in {**columns, "place": "bigint"}.items()]
    return session.create_table(name, given, primary_key=[*key], partition_by=partition_by, properties=properties)


WATERMARKS = {"w1": "double", "w2": "string"}
BY_COLUMN = {"k": "int", "part": "string"}
"""Key columns without doubles: DuckDB's aggregates return -0.0 or 0.0, which are equal (K2)."""
GROUPS = {
    "g1": "int",
    "g2": "string",
    "a": "decimal(5,2)",
    "s": "bigint",
    "h": "date",
    "b": "string",
    "last": "boolean",
}
PARTIAL = {
    "merge-engine": "partial-update",
    "fields.g1,g2.sequence-group": "a,s",
    "fields.h.sequence-group": "b",
    "fields.s.aggregate-function": "sum",
}


def functions(columns: Iterable[str], options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of an aggregation table whose columns are named after their functions."""
    named = {f"fields.{c}.aggregate-function": c.rstrip("0123456789") for c in columns}
    return {"merge-engine": "aggregation", **named, **{f"fields.{option}": v for option, v in options.items()}}


ORDERED = {
    "first_value": "binary", "first_non_null_value": "decimal(5,2)", "last_value": "int", "listagg": "string",
    "listagg2": "string", "collect": "array<int>", "collect2": "array<int>", "product": "decimal(5,2)",
}  # fmt: skip
UNORDERED = {
    "sum": "int", "sum2": "bigint", "sum3": "decimal(5,2)", "sum4": "double", "max": "string", "max2": "binary",
    "min": "date", "bool_and": "boolean", "bool_or": "boolean",
}  # fmt: skip
RETRACTED = {
    "sum": "bigint", "sum2": "decimal(5,2)", "last_value": "string", "last_non_null_value": "date",
    "collect": "array<int>", "collect2": "array<int>", "max": "int",
}  # fmt: skip
AGGREGATION = functions(
    [*ORDERED, *UNORDERED],
    {"listagg2.distinct": "true", "listagg2.list-agg-delimiter": "\\E|", "collect2.distinct": "true"},
)
RETRACTING = functions(RETRACTED, {"max.ignore-retract": "true", "collect2.distinct": "true"})
TABLES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "boolean_tombstone": (
        {**KEY, **WATERMARKS, "gone": "boolean"},
        {"watermark-key": "w1,w2", "tombstone-key": "gone"},
    ),
    "string_value": (
        {**KEY, "w": "binary", "gone": "string"},
        {"watermark-key": "w", "tombstone-key": "gone", "tombstone-string-key-value": "D"},
    ),
    "string_tombstone": ({**KEY, "gone": "string"}, {"tombstone-key": "gone"}),
    "decimal_tombstone": (
        {**KEY, "w": "int", "gone": "decimal(5,2)"},
        {"sequence.field": "w", "sequence.field.sort-order": "descending", "tombstone-key": "gone"},
    ),
    "row_kind": ({**KEY, **WATERMARKS, "op": "string"}, {"sequence.field": "w1,w2", "rowkind.field": "op"}),
    "ignored_deletes": ({**KEY, "op": "string"}, {"rowkind.field": "op", "ignore-delete": "true"}),
    "hidden_row_kind": ({**KEY, "w": "double"}, {"watermark-key": "w"}),
    "first_row": ({**KEY, "w": "double"}, {"merge-engine": "first-row"}),
    "groups": ({**BY_COLUMN, **GROUPS}, PARTIAL),
    "groups_with_retracts": ({**BY_COLUMN, **GROUPS, "op": "string"}, {**PARTIAL, "rowkind.field": "op"}),
    "removing_groups": (
        {**BY_COLUMN, **GROUPS, "op": "string"},
        {**PARTIAL, "rowkind.field": "op", "partial-update.remove-record-on-sequence-group": "g1,h"},
    ),
    "removed_records": (
        {**BY_COLUMN, "w": "binary", "a": "string", "op": "string"},
        {"merge-engine": "partial-update", "sequence.field": "w", "rowkind.field": "op",
         "partial-update.remove-record-on-delete": "true"},
    ),
    "functions_in_arrival_order": ({**BY_COLUMN, **ORDERED, **UNORDERED}, AGGREGATION),
    "functions_by_sequence": (
        {**BY_COLUMN, "w": "int", **ORDERED, **UNORDERED},
        {**AGGREGATION, "sequence.field": "w", "sequence.field.sort-order": "descending"},
    ),
    "functions_with_retracts": (
        {**BY_COLUMN, "w": "string", **RETRACTED, "op": "string"},
        {**RETRACTING, "sequence.field": "w", "rowkind.field": "op"},
    ),
}  # fmt: skip


SHORT = ("row_kind", "groups_with_retracts")


@pytest.mark.parametrize("name", [n if n in SHORT else pytest.param(n, marks=pytest.mark.full) for n in TABLES])
def test_a_view_is_the_merged_read(session: Session, tiered_fmt: str, name: str) -> None:
    columns, properties = TABLES[name]
    table = make(session, f"{tiered_fmt}.default.{name}", columns, properties)
    table.upsert(history(columns, 0))
    if name == "hidden_row_kind":
        table.delete([{"k": 1.5, "part": ""}])
    table.compact(full=True)
    table.upsert(history(columns, 1, rows=10))
    table.upsert(history(columns, 2, rows=10))
    if name == "hidden_row_kind":
        table.delete([{"k": NAN, "part": "D"}])
    assert check_view(session, table).num_rows > 0


def test_a_view_of_every_tier_and_type(session: Session, tiered_fmt: str) -> None:
    columns = {"k": "int", "w": "double", "gone": "boolean"}
    wide = {name: kind for name, (kind, _) in CASES.items()}
    properties = {"watermark-key": "w", "tombstone-key": "gone"}
    key = ["part", "k"]
    table = make(
        session, f"{tiered_fmt}.default.wide", {"part": "string", **columns, **wide}, properties, key, ["part"]
    )
    for part in ("a/b", "it's [a] 100%"):
        table.upsert(history(columns, 0).append_column("part", pa.array([part] * 60)))
    table.upsert(pa.table({"part": ["a/b"], "k": pa.array([1], pa.int32()), "w": [NAN], "gone": [True]}))
    table.compact(full=True)
    table.upsert(typed_rows().append_column("part", pa.array(["a/b", "c", "c"])))
    table.add_column(Column("later", "timestamp"))
    table.rename_column("c_int", "c_number")
    session.sql(f"ALTER TABLE {table.name} ALTER COLUMN c_float TYPE DOUBLE")
    late = history(columns, 1).append_column("later", pa.array([0] * 60, pa.timestamp("us", "UTC")))
    table.upsert(late.append_column("part", pa.array(["it's [a] 100%"] * 60)))
    assert {row["_tier"] for row in table.log().select("_tier").collect()} == {"base", "log", "sidecar"}
    assert check_view(session, table).num_rows > 3


def test_a_view_of_a_plain_table(session: Session, tiered_fmt: str) -> None:
    plain = session.create_table(
        f"{tiered_fmt}.default.plain",
        [Column("part", "string"), Column("v", "double")],
        primary_key=(),
        partition_by=["part"],
    )
    assert check_view(session, plain).num_rows == 0
    plain.append(pa.table({"part": ["a", "b", None, "a"], "v": [NAN, -0.0, 1.0, NAN]}))
    plain.append(pa.table({"part": ["a"], "v": [2.0]}))
    plain.delete("v = 1.0")
    assert check_view(session, plain).num_rows == 4


def test_a_view_stays_at_its_version(session: Session, tiered_fmt: str) -> None:
    columns = [Column("order_id", "string"), Column("ts", "bigint"), Column("amount", "double")]
    orders = session.create_table(
        f"{tiered_fmt}.default.orders",
        columns,
        primary_key=["order_id"],
        partition_by=(),
        properties={"watermark-key": "ts"},
    )
    orders.upsert(pa.table({"order_id": ["a"], "ts": [1], "amount": [1.0]}))
    view = orders.merge_view_sql("spark")
    orders.upsert(pa.table({"order_id": ["a"], "ts": [2], "amount": [2.0]}))
    assert session.spark.sql(view).first()["amount"] == 1.0  # type: ignore[index]
    assert session.spark.sql(orders.merge_view_sql("Spark")).first()["amount"] == 2.0  # type: ignore[index]


@pytest.mark.full
@pytest.mark.tiered
def test_folders_whose_names_are_patterns(spark: SparkSession, warehouse: Path, fmt: str) -> None:
    """Spark and DuckDB would look for folders that match the pattern."""
    with trinity.connect(warehouse / "it's [1] {a,b} *", catalog=fmt) as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        session.sql("INSERT INTO t SELECT id, 0 FROM range(5)")
        session.sql("UPDATE t SET v = 1 WHERE id = 1")
        table = session.table("t")
        table.compact(full=True)
        session.sql("DELETE FROM t WHERE id = 2")
        assert check_view(session, table).num_rows == 4
        session.sql("CREATE TABLE plain AS SELECT * FROM t")
        session.sql("UPDATE plain SET v = v + 1 WHERE id < 3")
        assert sorted(check_view(session, session.table("plain")).column("v").to_pylist()) == [0, 0, 1, 2]


@pytest.mark.parametrize("dialect", ["duckdbb", "oracle"])
def test_an_unknown_dialect(session: Session, dialect: str) -> None:
    table = session.create_table("parquet.default.t", [Column("a", "int")])
    with pytest.raises(TrinityError, match=f"dialect '{dialect}'.*There is one for: duckdb, spark") as refused:
        table.merge_view_sql(dialect)
    assert refused.value.code == "NOT_SUPPORTED"


@pytest.mark.full
def test_a_view_of_changes_that_carry_some_columns(session: Session, tiered_fmt: str) -> None:
    """UPDATE stores the changed columns, DELETE a cut; a commit omits columns, and columns are renamed."""
    columns = {**BY_COLUMN, **GROUPS}
    table = make(session, f"{tiered_fmt}.default.t", columns, PARTIAL, BY_COLUMN)
    table.upsert(history(columns, 0))
    session.sql(f"UPDATE {table.name} SET last = NULL, a = 9.99 WHERE g1 IS NOT NULL")
    session.sql(f"DELETE FROM {table.name} WHERE k = 1 AND part = ''")
    table.compact(full=True)
    session.sql(f"ALTER TABLE {table.name} RENAME COLUMN b TO `the-b`")
    session.sql(f"ALTER TABLE {table.name} RENAME COLUMN h TO seq")
    table = session.table(str(table.name))
    late = history(columns, 1, rows=20).rename_columns({"b": "the-b", "h": "seq"})
    table.upsert(late.drop_columns(["a", "last"]))
    table.upsert(late.slice(0, 5))
    session.sql(f"UPDATE {table.name} SET `the-b` = 'new', seq = DATE '2030-01-01' WHERE k = 2")
    table.compact()
    table.upsert(late.slice(5, 3))
    assert check_view(session, table).num_rows > 0


@pytest.mark.parametrize("kind", ["tinyint", pytest.param("bigint", marks=pytest.mark.full)])
def test_a_value_out_of_range_fails_the_view_as_it_fails_the_read(session: Session, kind: str) -> None:  # A4
    table = session.create_table(
        "parquet.default.t",
        [Column("k", "int"), Column("n", kind)],
        primary_key=["k"],
        partition_by=(),
        properties=functions([], {"n.aggregate-function": "sum"}),
    )
    most = 127 if kind == "tinyint" else 2**63 - 1
    rows = pa.table({"k": [1, 1, 2], "n": pa.array([most, 1, 5], arrow_type(kind))})
    table.upsert(rows)
    with (
        duckdb.connect() as connection,
        pytest.raises(duckdb.InvalidInputException, match=f"k = 1.*{most + 1} does not"),
    ):
        connection.sql(table.merge_view_sql("duckdb")).fetchall()
    with pytest.raises(SparkRuntimeException, match=f"k = 1.*{most + 1} does not fit into {kind}"):
        session.spark.sql(table.merge_view_sql("spark")).collect()
    table.upsert(pa.table({"k": [1], "n": pa.array([-1], arrow_type(kind))}))
    assert check_view(session, table).num_rows == 2


@pytest.mark.parametrize(
    ("function", "kind", "refused", "elsewhere"),
    [
        ("merge_map", "map<string,int>", "duckdb", "There is one for: spark."),
        ("rbm32", "binary", "spark", ""),
    ],
)
def test_a_function_that_cannot_be_said(
    session: Session, function: str, kind: str, refused: str, elsewhere: str
) -> None:
    options = functions([], {"tags.aggregate-function": function})
    table = session.create_table(
        "parquet.default.t",
        [Column("k", "int"), Column("tags", kind)],
        primary_key=["k"],
        partition_by=(),
        properties=options,
    )
    table.upsert(pa.table({"k": [1], "tags": pa.array([None], arrow_type(kind))}))
    with pytest.raises(TrinityError) as error:
        table.merge_view_sql(refused)
    assert error.value.code == "NOT_SUPPORTED"
    expected = (
        "'parquet.default.t'",
        f"dialect '{refused}'",
        f"column 'tags' folds by {function}",
        "compact(full=True)",
        elsewhere,
    )
    assert [part for part in expected if part not in error.value.message] == []
    table.compact(full=True)
    assert check_view(session, table).num_rows == 1


def test_a_view_of_what_spark_appended(session: Session) -> None:
    """Spark's Delta writer stores timestamps as INT96, which DuckDB does not know to be in UTC."""
    columns = {"k": "int", "at": "timestamp"}
    table = make(session, "delta.default.t", columns, {}, ["k"])
    rows = [{"k": k, "at": dt.datetime(2024, 1, k, 12, tzinfo=dt.UTC), "place": k} for k in (1, 2)]
    schema = table.definition.to_arrow()
    data = pa.Table.from_pylist(rows, pa.schema([schema.field(name) for name in rows[0]]))
    table.upsert(data.slice(0, 1))
    session.spark.createDataFrame(data.slice(1)).write.format("delta").mode("append").save(table.location)
    assert check_view(session, table).num_rows == 2
