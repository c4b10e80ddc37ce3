"""Values that a column does not hold as they are: they are refused by name, and nothing else is stored (L8)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.support.refusals import refused
from trinity import Column, Session, Table

COLUMNS = {
    "n": "int",
    "x": "double",
    "day": "date",
    "at": "timestamp",
    "clock": "time",
    "text": "string",
    "list": "array<int>",
    "texts": "array<string>",
    "map": "map<string, int>",
    "st": "struct<a: int, b: string>",
    "deep": "map<string, array<struct<a: int>>>",
}
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@pytest.fixture
def table(local: Session, local_fmt: str) -> Table:
    columns = [Column("k", "int", nullable=False), *(Column(name, kind) for name, kind in COLUMNS.items())]
    return local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"])


def test_values_of_python_that_would_be_cut(table: Table) -> None:
    before = table.version
    cases: list[tuple[str, Any]] = [
        ("k", 1.5),
        ("n", 1.5),
        ("n", np.float32(1.5)),
        ("n", Decimal("1.5")),
        ("x", True),
        ("day", NOON),
        ("day", 1.5),
        ("at", pd.Timestamp("2026-01-01 00:00:00.000000001", tz="UTC")),
        ("list", [1.5]),
        ("list", np.array([1.5])),
        ("texts", "ab"),
        ("map", {"a": 1.5}),
        ("map", [("a", 1.5)]),
        ("map", zip(["a"], [1], strict=True)),
        ("map", ""),
        ("list", iter([1])),
        ("st", {"a": 1, "c": 2}),
        ("st", {"a": 1, "A": 2}),
        ("st", {1: 2}),
        ("st", (1.5, "x")),
        ("deep", {"m": [{"a": 1}, {"b": 1}]}),
    ]
    for name, value in cases:
        with refused("TYPE_MISMATCH", f"'{name}'", "row 1"):
            table.upsert([{"k": 1}, {"k": 2, name: value}])
    assert table.version == before


def test_values_of_python_that_fit(table: Table) -> None:
    """Fields have their names in any case, as columns do (M10)."""
    row = {"n": 2.0, "x": 1, "day": dt.datetime(2026, 1, 1), "list": (1, 2), "map": [("a", 1)], "texts": ["a"]}
    table.upsert({"k": 1, **row, "st": {"B": "x", "A": Decimal(1)}, "deep": {"m": [{"A": 1}, None]}})
    [found] = table.to_arrow().to_pylist()
    assert {name: found[name] for name in row} == {**row, "day": dt.date(2026, 1, 1), "list": [1, 2]}
    assert found["st"] == {"a": 1, "b": "x"}
    assert found["deep"] == [("m", [{"a": 1}, None])]


def text(data: bytes) -> pa.Array:
    """Return one text of any bytes, as a Parquet file of another writer may have it."""
    ends = pa.array([0, len(data)], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(data)])


def test_arrow_values_that_their_type_does_not_have(table: Table) -> None:
    """Other engines could not read the files."""
    before = table.version
    latin = text("é".encode("latin-1"))
    midnight = pa.array([24 * 3600 * 10**6], pa.int64()).view(pa.time64("us"))
    cases = {
        "text": [latin, pa.DictionaryArray.from_arrays([0], latin)],
        "texts": [pa.ListArray.from_arrays([0, 1], latin)],
        "st": [pa.StructArray.from_arrays([pa.array([1], pa.int32()), latin], ["a", "b"])],
        "clock": [midnight],
    }
    for name, values in cases.items():
        for value in values:
            with refused("TYPE_MISMATCH", f"'{name}'"):
                table.upsert(pa.table({"k": pa.array([1], pa.int32()), name: value}))
    with refused("TYPE_MISMATCH", "'clock'"):
        table.upsert({"k": 1, "clock": 24 * 3600 * 10**6})
    assert table.version == before


def test_list_views(table: Table) -> None:
    views = pa.ListViewArray.from_arrays(
        pa.array([4, 0, None, 0, 2], pa.int32()), pa.array([2, 2, 0, 0, 3], pa.int32()), pa.array(range(1, 7))
    )
    rows = pa.table({"k": pa.array(range(5), pa.int32()), "list": views})
    for part in (rows, rows.slice(1, 3), rows.slice(2, 0), pa.concat_tables([rows, rows.slice(3)])):
        table.upsert(part)
        assert table.to_arrow(["k", "list"]).sort_by("k").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(("ts", "left"), [(-(1 << 63), []), ((1 << 63) - 1, ["b"]), (None, ["b"])])
def test_the_ends_of_bigint_as_a_descending_sequence(
    local: Session, local_fmt: str, ts: int | None, left: list[str]
) -> None:
    """A deleted row stays away where its key has a new row that loses to it (M7, U8)."""
    columns = [Column("k", "int"), Column("ts", "bigint"), Column("v", "string")]
    order = {"sequence.field": "ts", "sequence.field.sort-order": "descending"}
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"], properties=order)
    table.upsert([{"k": 1, "ts": ts, "v": "a"}])
    local.sql(f"""MERGE INTO {table.name} t USING (SELECT 1 AS k, 5L AS ts, 'b' AS v) s
        ON t.k = s.k AND t.v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT *""")
    assert table.to_arrow()["v"].to_pylist() == left


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("text", b"ab"), ("text", bytearray(b"ab")), ("raw", "ab"), ("n", UUID(int=1)), ("day", 1.0),
        ("day", Decimal(1)), ("day", UUID(int=1)), ("at", 1.0), ("at", Decimal(1)), ("clock", 1.0),
        ("texts", [b"ab"]), ("list", [UUID(int=1)]), ("map", {b"a": 1}), ("st", {"b": b"ab"}),
    ],
)  # fmt: skip
def test_values_of_python_that_only_look_like_the_type(table: Table, column: str, value: Any) -> None:
    table.add_column(Column("raw", "binary"))
    before = table.version
    with refused("TYPE_MISMATCH", f"'{column}'", "row 0"):
        table.upsert([{"k": 1, column: value}])
    assert table.version == before


def test_a_text_with_half_a_character_is_refused_in_words_that_can_be_printed(table: Table) -> None:
    with refused("TYPE_MISMATCH", "'text'", "ud800") as found:
        table.upsert([{"k": 1, "text": "\ud800"}])
    assert str(found.value).encode()


@pytest.mark.parametrize(("column", "kind"), [("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
def test_a_year_that_python_lacks_is_named_as_such(table: Table, column: str, kind: pa.DataType) -> None:
    far = 10**7 if column == "day" else 2**60
    table.upsert(pa.table({"k": [1], column: pa.array([far], kind)}))
    found = table.session.sql(f"SELECT {column} FROM {table.name}")
    for read in (found.collect, found.to_pylist, found.show):
        with refused("NUMERIC_VALUE_OUT_OF_RANGE", "years 1 to 9999", "to_arrow()", "AS STRING"):
            read()
    texts = table.session.sql(f"SELECT CAST({column} AS STRING) AS text FROM {table.name}").to_pylist()
    assert texts[0]["text"].startswith("+29349-01-26" if column == "day" else "+38504-08-17")


def test_a_text_that_is_no_choice_is_shown(local: Session) -> None:
    with refused("INVALID_ARGUMENTS", "engine is to be one of 'auto', 'local', 'spark'", "and is 'somewhere'"):
        local.sql("SELECT 1", engine="somewhere")  # type: ignore[arg-type]
