"""``trinity.apply_changes`` of SCD type 2 without Spark: values of all types are compared and ordered as in Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.edges import AFTER_9999
from trinity import CommitResult, Session, Table

FORMATS = ["memory", *(pytest.param(f, marks=pytest.mark.full) for f in ("parquet", "delta", "iceberg"))]
NAN = float("nan")
PAIR = pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))])
UTC, PARIS = pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Paris")
NOON = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)

ALIKE: list[tuple[str, Any, Any, Any]] = [
    ("int", 1, 1, 2),
    ("int", None, None, 0),
    ("double", 0.0, -0.0, 1.0),
    ("double", NAN, -NAN, 1.0),
    ("float", NAN, -NAN, None),
    ("decimal(5,2)", Decimal("1.5"), Decimal("1.50"), Decimal("-1.50")),
    ("string", "é", "é", "e\u0301"),
    ("char(3)", "a", "a  ", "b"),
    ("varchar(2)", "ab", "ab ", "a"),
    ("binary", b"\x00", b"\x00", b""),
    ("timestamp", pa.array([NOON], UTC), pa.array([NOON], PARIS), pa.array([NOON + dt.timedelta(hours=2)], UTC)),
    ("array<double>", [0.0, None], [-0.0, None], [None, 0.0]),
    ("map<string,int>", [("a", 1), ("b", None)], [("b", None), ("a", 1)], [("a", 1), ("b", 2)]),
    ("struct<x:double,y:array<string>>", {"x": NAN, "y": ["a"]}, {"x": -NAN, "y": ["a"]}, {"x": NAN, "y": [None]}),
]
"""(type, two values that are equal in Spark, another value)."""
KINDS = {
    "int": pa.int32(), "double": pa.float64(), "float": pa.float32(), "decimal(5,2)": pa.decimal128(5, 2),
    "string": pa.string(), "char(3)": pa.string(), "varchar(2)": pa.large_string(), "binary": pa.binary(),
    "timestamp": UTC, "array<double>": pa.list_(pa.float64()), "map<string,int>": pa.map_(pa.string(), pa.int32()),
    "struct<x:double,y:array<string>>": PAIR,
}  # fmt: skip
"""Type -> the type of its values in Arrow."""


def history_table(local: Session, catalog: str, columns: str, key: str, kind: str = "INT") -> Table:
    """Create the target of events that are kept as versions of rows."""
    name = f"{catalog}.default.t"
    properties = "TBLPROPERTIES ('tombstone.keep-values' = 'true')"
    local.sql(f"CREATE TABLE {name} (k {kind}, {columns}, PRIMARY KEY (k, {key})) {properties}")
    return local.table(name)


def applied(table: Table, left_out: list[str], **values: pa.Array) -> int:
    """Apply one event, ordered by ``n``, and return the number of rows that it wrote."""
    rows = pa.table({"k": pa.array([1], pa.int32()), **values})
    done = trinity.apply_changes(rows, table, ["k"], "n", stored_as_scd_type=2, except_columns=left_out)
    assert isinstance(done, CommitResult)
    return done.rows


@pytest.mark.parametrize("catalog", FORMATS)
@pytest.mark.parametrize(("kind", "value", "alike", "other"), ALIKE)
def test_a_value_that_is_equal_begins_no_version(
    local: Session, catalog: str, kind: str, value: Any, alike: Any, other: Any
) -> None:
    """H4: each event is a batch of its own. The equal one changes nothing when it is delivered again."""
    table = history_table(local, catalog, f"v {kind}, n INT, __START_AT INT, __END_AT INT", "n")
    given = [v if isinstance(v, pa.Array) else pa.array([v], KINDS[kind]) for v in (value, alike, other)]
    assert [applied(table, [], v=v, n=pa.array([n], pa.int32())) for n, v in enumerate(given)] == [1, 2, 2]
    assert applied(table, [], v=given[0], n=pa.array([1], pa.int32())) == 0
    found = table.to_arrow(columns=["n", "__START_AT", "__END_AT"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(1, 0, 2), (2, 2, None)]


INTERVAL = "n INT, __START_AT INT, __END_AT INT"
FIRST, SECOND = (pa.array([n], pa.int32()) for n in (0, 1))
KEYS: list[tuple[str, pa.Array, pa.Array]] = [
    ("bigint", pa.array([5]), pa.array([9])),
    ("decimal(5,2)", pa.array([Decimal("1.5")], pa.decimal128(5, 2)), pa.array([Decimal("2")], pa.decimal128(5, 2))),
    ("char(3)", pa.array(["b"]), pa.array(["b !"])),
    ("varchar(2)", pa.array(["b"]), pa.array(["c"])),
    ("date", pa.array([dt.date(1, 1, 1)]), pa.array([dt.date(9999, 12, 31)])),
]
"""(type, a key, another one)."""


@pytest.mark.parametrize(
    "catalog", ["parquet", *(pytest.param(name, marks=pytest.mark.full) for name in ("delta", "iceberg"))]
)
@pytest.mark.parametrize(("kind", "key", "other"), KEYS)
def test_only_files_that_may_have_the_keys_are_read(
    local: Session, catalog: str, kind: str, key: pa.Array, other: pa.Array
) -> None:
    """The others may even be missing. A CHAR is compared as it is stored, padded."""
    table = history_table(local, catalog, INTERVAL, "n", kind)
    assert applied(table, [], k=other, n=FIRST) == 1
    (file,) = table.splits().files
    Path(file.path.removeprefix("file://")).unlink()
    assert [applied(table, [], k=key, n=n) for n in (FIRST, SECOND)] == [1, 2]


@pytest.mark.parametrize("catalog", FORMATS)
def test_a_key_that_python_lacks_finds_its_rows(local: Session, catalog: str) -> None:
    """A day after the year 9999 is no bound."""
    table, day = history_table(local, catalog, INTERVAL, "n", "date"), pa.array([AFTER_9999], pa.date32())
    assert [applied(table, [], k=day, n=n) for n in (FIRST, SECOND)] == [1, 2]


ORDERED: list[tuple[str, pa.Array]] = [
    ("boolean", pa.array([False, True])),
    ("double", pa.array([-1.0, 0.0, 5e-324, float("inf"), NAN])),
    ("decimal(20,0)", pa.array([Decimal(-3), Decimal(2), Decimal(10**18)], pa.decimal128(20, 0))),
    ("string", pa.array(["", "Z", "a", "é", "\U0001f600"])),
    ("binary", pa.array([b"", b"\x00", b"\x7f", b"\xff"])),
    ("date", pa.array([dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)])),
    ("timestamp", pa.array([-(2**40), 0, 2**50], UTC)),
    ("timestamp_ntz", pa.array([-(2**40), 0, 2**50], pa.timestamp("us"))),
]
"""(type, values of it in Spark's order)."""


@pytest.mark.parametrize("catalog", FORMATS)
@pytest.mark.parametrize(("kind", "values"), ORDERED)
def test_events_are_ordered_by_a_sequence_of_any_type(
    local: Session, catalog: str, kind: str, values: pa.Array
) -> None:
    """H1, H3: the latest event is delivered first."""
    table = history_table(local, catalog, f"v INT, __START_AT {kind}, __END_AT {kind}", "__START_AT")
    for n in reversed(range(len(values))):
        applied(table, ["n"], v=pa.array([n], pa.int32()), n=values.slice(n, 1))
    found = {row["v"]: row for row in table.to_arrow().to_pylist()}
    starts = values.to_pylist()
    expected = list(zip(starts, [*starts[1:], None], strict=True))
    shown = [(found[n]["__START_AT"], found[n]["__END_AT"]) for n in range(len(values))]
    assert repr(shown) == repr(expected)
