"""Calls of Trinity as users write them: parameters, data and schemas of any kind, names for annotations."""

from __future__ import annotations

import datetime as dt
import inspect
import pydoc
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.types import (
    DecimalType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    VarcharType,
)

import trinity
from tests.support.refusals import refused
from trinity import Column, Session, dbapi
from trinity.calls import CallError
from trinity.definition.columns import columns_of
from trinity.syntax.parameters import literal, with_values

pytestmark = pytest.mark.inner

STAMP = dt.datetime(2026, 1, 31, 12, 30)


# -- parameters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("SELECT ?, ?", [1, "it's"], "SELECT 1 , 'it\\'s'"),
        ("SELECT :a,:b||:a", {"a": 1, "b": "x"}, "SELECT 1,'x'||1"),
        ("SELECT ':a', `:a`, :a -- :a", {"a": None}, "SELECT ':a', `:a`, NULL"),
        ("SELECT CAST(x AS struct<a:int>), v:a, :a", {"a": 2, "int": 9}, "SELECT CAST(x AS struct<a:int>), v:a, 2"),
        ("SELECT x::int WHERE y=:y", {"y": 2}, "SELECT x::int WHERE y=2"),
        ("SELECT :a", {"a": ":b ${env:HOME} \\"}, "SELECT ':b ${env:HOME} \\\\'"),
    ],
)
def test_parameters_by_place_and_by_name(text: str, values: Any, expected: str) -> None:
    found = with_values(text, values)
    assert found.replace(" ", "") == expected.replace(" ", "")


def test_parameters_without_a_value() -> None:
    with refused("INVALID_ARGUMENTS", ":amuont", "Did you mean 'amount'?"):
        with_values("SELECT :amuont", {"amount": 1})
    with refused("INVALID_ARGUMENTS", "2 parameters", "1 values"):
        with_values("SELECT ?, ?", [1])


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (np.int8(-3), -3),
        (np.uint64(7), 7),
        (np.float64(0.1), 0.1),
        (np.float32(1.5), 1.5),
        (np.str_("s"), "s"),
        (np.bytes_(b"x"), b"x"),
        (np.bool_(True), True),
        (np.datetime64("2026-01-31T12:30:00.000000000"), STAMP),
        (np.datetime64("NaT"), None),
        (pd.Timestamp(STAMP), STAMP),
        (pd.NaT, None),
        (pd.NA, None),
    ],
)
def test_scalars_of_numpy_and_pandas(value: Any, same: Any) -> None:
    assert literal(value) == literal(same)


@pytest.mark.parametrize("value", [10**38, -(10**38), 10**4000, Decimal("1E+400"), Decimal("1E-400")])
def test_numbers_of_too_many_digits(value: Any) -> None:
    """Under ANSI mode Spark would raise an error, otherwise return NULL."""
    with refused("NUMERIC_VALUE_OUT_OF_RANGE", "38 digits"):
        literal(value)


def test_parameters_of_statements(session: Session) -> None:
    session.sql("CREATE TABLE t (k INT, v STRING, PRIMARY KEY (k))")
    hostile = "it's \\ \" ${env:HOME} :k ? -- /* ž\n"
    assert session.sql("INSERT INTO t VALUES (?, ?), (:2, ?)".replace(":2", "2"), [1, "a", hostile]).head()[0] == 2
    session.sql("UPDATE t SET v = :v WHERE k = :k", {"k": np.int64(1), "v": hostile})
    found = session.sql("SELECT k, v = :v FROM t ORDER BY k", {"v": hostile}).collect()
    assert [tuple(row) for row in found] == [(1, True), (2, True)]
    values = ["it's \\ x", STAMP, b"\x00\xff", Decimal("1.50"), dt.date(2026, 1, 31), 2.5, None]
    row = session.sql("SELECT ?, ?, ?, ?, ?, ?, ?", values, dialect="trino").head()
    assert row is not None
    assert list(row) == values


# -- schemas --------------------------------------------------------------------------------------------

COLUMNS = [
    Column("id", "int", False),
    Column("v w", "struct<`a b`:string>"),
    Column("n", "decimal(10,2)"),
    Column("at", "timestamp_ntz"),
]


def test_a_table_of_an_arrow_schema(tmp_path: Any) -> None:
    with trinity.connect(tmp_path) as session:
        schema = pa.schema(
            [
                pa.field("id", pa.int32(), nullable=False),
                ("v w", pa.struct([("a b", pa.large_string())])),
                ("n", pa.decimal128(10, 2)),
                ("at", pa.timestamp("ns")),
            ]
        )
        table = session.create_table("t", schema, primary_key=["id"], properties={"bucket": 4, "write.sync": False})
        assert columns_of(schema) == COLUMNS
        assert [c.name for c in table.definition.visible] == ["id", "v w", "n", "at"]
        assert {**table.properties} == {"bucket": "4", "write.sync": "false"}
        with refused("TYPE_MISMATCH", "'x'", "duration"):
            session.create_table("u", pa.schema([("x", pa.duration("s"))]))
        with refused("TYPE_MISMATCH", "'x'", "NULL"):
            session.create_table("u", pa.schema([("x", pa.null())]))
        with pytest.raises(CallError):
            session.create_table("u", schema, {"bucket": "4"})  # type: ignore[call-arg, arg-type]
        with pytest.raises(CallError, match=r"'key'.* It takes name, columns, primary_key, .*replace"):
            session.create_table("u", schema, key="id")  # type: ignore[call-arg]
        with pytest.raises(CallError, match=r"'name'\. It takes none"):
            session.close(name="x")  # type: ignore[call-arg]


def test_a_table_of_a_schema_of_sparks() -> None:
    nested = StructType([StructField("a b", StringType())])
    schema = StructType(
        [
            StructField("id", IntegerType(), nullable=False),
            StructField("v w", nested),
            StructField("n", DecimalType(10, 2)),
            StructField("at", TimestampNTZType()),
        ]
    )
    assert columns_of(schema) == COLUMNS
    assert columns_of(StructType([StructField("s", VarcharType(5), metadata={"comment": "few"})])) == [
        Column("s", "varchar(5)", comment="few")
    ]


def test_a_table_is_made_of_a_data_frame(session: Session, tiered_fmt: str) -> None:
    frame = session.spark.sql("SELECT id, if(id = 1, NULL, 'b') AS state FROM range(3)")
    table = session.create_table(f"{tiered_fmt}.default.made", frame, primary_key=["id"])
    assert [(c.name, c.type, c.nullable) for c in table.definition.visible] == [
        ("id", "bigint", False),
        ("state", "string", True),
    ]
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: int(row["id"])) == [
        {"id": 0, "state": "b"},
        {"id": 1, "state": None},
        {"id": 2, "state": "b"},
    ]
    with refused("CONSTRAINT_VIOLATION", "state"):
        session.create_table(f"{tiered_fmt}.default.other", frame, primary_key=["state"])
    assert not session.table_exists(f"{tiered_fmt}.default.other")
    fields = frame.schema.fields
    assert session.create_table(f"{tiered_fmt}.default.other", fields).to_arrow().num_rows == 0


# -- data -----------------------------------------------------------------------------------------------

CATEGORIES = pl.DataFrame({"k": [1, 5], "v": pl.Series(["a", "b"], dtype=pl.Categorical)})


def test_upsert_of_categories(tmp_path: Any) -> None:
    with trinity.connect(tmp_path) as session:
        table = session.create_table("t", [Column("k", "int"), Column("v", "string")], primary_key=["k"])
        assert table.upsert(CATEGORIES).rows == 2
        assert table.upsert(CATEGORIES.to_pandas()).rows == 2


@pytest.mark.full
def test_merge_takes_what_upsert_takes(session: Session) -> None:
    table = session.create_table("t", [Column("k", "int"), Column("v", "string")], primary_key=["k"])
    rows = {"k": [1, 2], "v": ["a", "b"]}
    for number, source in enumerate([pd.DataFrame(rows), pa.table(rows), pl.DataFrame(rows), CATEGORIES]):
        merge = table.merge(source, "t.k = s.k").when_matched_update({"v": "concat(t.v, s.v)"})
        done = merge.when_not_matched_insert_all().execute()
        assert (done.updated, done.inserted) == ((0, 2), (2, 0), (2, 0), (1, 1))[number]
    assert sorted(map(tuple, table.to_df().collect())) == [(1, "aaaa"), (2, "bbb"), (5, "b")]
    with refused("INVALID_ARGUMENTS", "int", "__arrow_c_stream__"):
        table.merge(1, "t.k = s.k")


# -- names ----------------------------------------------------------------------------------------------


def test_names_for_annotations() -> None:
    for name in trinity.__all__:
        assert hasattr(trinity, name)
    assert "upsert(self, data" in pydoc.plain(pydoc.render_doc(trinity.Table))
    arguments = ["self", "text", "params", "dialect", "txn", "engine"]
    assert list(inspect.signature(trinity.Session.sql).parameters) == arguments
    assert trinity.dbapi is dbapi
    with pytest.raises(AttributeError, match="Tabel"):
        trinity.Tabel  # type: ignore[attr-defined]  # noqa: B018 - that mypy refuses it is what the comment shows
