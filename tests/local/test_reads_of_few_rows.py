"""Reads of few rows of a large file decode only their pages; numbers stored plainly need no decoding at all."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from trinity import Column, Session, Table
from trinity.storage import Location
from trinity.storage.parquet_sink import LARGE_BYTES, ROW_GROUP_ROWS

pytestmark = pytest.mark.inner

ROWS = 24_000
COLUMNS = [
    Column("k", "bigint"), Column("n", "bigint"), Column("c", "int"), Column("x", "double"), Column("f", "float"),
    Column("day", "date"), Column("at", "timestamp"), Column("dec", "decimal(12,2)"), Column("small", "smallint"),
    Column("hole", "bigint"), Column("s", "string"), Column("b", "boolean"),
]  # fmt: skip


def rows_of(keys: np.ndarray, seed: int) -> pa.Table:
    """Return rows with numbers that Parquet can neither compress nor keep in a dictionary, and a few NULLs."""
    drawn, count = np.random.default_rng(seed), len(keys)
    x = drawn.random(count) * 1e9
    x[::1000], x[1::1000], x[2::1000] = np.nan, -0.0, -np.inf
    numbers = drawn.integers(-(2**62), 2**62, count)
    return pa.table(
        {
            "k": keys,
            "n": numbers,
            "c": pa.array(drawn.integers(-(2**31), 2**31, count), pa.int32()),
            "x": x,
            "f": pa.array(drawn.random(count), pa.float32()),
            "day": pa.array(drawn.integers(0, 20_000, count), pa.int32()).cast(pa.date32()),
            "at": pa.array(drawn.integers(0, 2**50, count)).cast(pa.timestamp("us", "UTC")),
            "dec": pa.array([Decimal(n).scaleb(-2) for n in drawn.integers(0, 10**9, count).tolist()]),
            "small": pa.array(drawn.integers(-(2**15), 2**15, count), pa.int16()),
            "hole": pa.array(numbers, mask=np.arange(count) % 7000 == 0),
            "s": [f"text of {number}" for number in numbers],
            "b": drawn.integers(0, 2, count) == 0,
        }
    )


def shown(rows: pa.Table) -> list[str]:
    """Return rows as sorted texts; NaN equals NaN, and -0.0 differs from 0.0."""
    return sorted(str(row) for row in rows.select([c.name for c in COLUMNS]).to_pylist())


@pytest.fixture
@ROW_GROUP_ROWS.set_to(10_000)
def table(local: Session, local_fmt: str) -> Table:
    """Make a compacted table of three row groups with the rows of even keys."""
    made = local.create_table(f"{local_fmt}.default.t", COLUMNS, primary_key=["k"])
    made.upsert(rows_of(np.arange(ROWS) * 2, 1))
    made.compact(full=True)
    return made


def test_rows_of_few_keys(table: Table) -> None:
    stored = rows_of(np.arange(ROWS) * 2, 1)
    for places in ([0], [ROWS - 1], [7, 9_999, 10_000, 23_999], list(range(0, ROWS, 97)), list(range(1000, 2000))):
        keys = ", ".join(str(place * 2) for place in places)
        assert shown(table.to_arrow(where=f"k IN ({keys}, 1, 999999)")) == shown(stored.take(places))


@pytest.mark.parametrize("column", ["n", "c", "at", "hole", "s"])
def test_rows_of_other_columns(table: Table, column: str) -> None:
    stored = rows_of(np.arange(ROWS) * 2, 1)
    value = stored[column][12_345].as_py()
    literal = str(value) if isinstance(value, int) else f"'{value}'"
    found = table.to_arrow(where=f"{column} = {f'TIMESTAMP {literal}' if isinstance(value, dt.datetime) else literal}")
    assert shown(found) == shown(stored.filter(pc.equal(stored[column], stored[column][12_345])))


def test_changes_of_few_rows(table: Table) -> None:
    before = table.splits().version
    keys = np.arange(0, ROWS * 2, 53)
    after = table.upsert(changed := rows_of(keys, 2)).version
    feed = table.changes(before, after).to_arrow()

    def of(*kinds: str) -> list[str]:
        return shown(feed.filter(pc.is_in(feed["_change_type"], pa.array(kinds))))

    stored = rows_of(np.arange(ROWS) * 2, 1)
    assert of("insert", "update_postimage") == shown(changed)
    assert of("update_preimage") == shown(stored.take(keys[keys % 2 == 0] // 2))


@LARGE_BYTES.set_to(100_000)
def test_a_large_commit_is_read_by_page(table: Table, local_fmt: str) -> None:
    table.upsert(changed := rows_of(np.random.default_rng(4).permutation(np.arange(0, ROWS, 2)), 3))
    wanted: list[Any] = [0, 77, 11_999]
    keys = ", ".join(str(changed["k"][place]) for place in wanted)
    assert shown(table.to_arrow(where=f"k IN ({keys})")) == shown(changed.take(wanted))
    if local_fmt != "memory":
        [log] = [file for file in table.splits().files if file.tier.value == "log"]
        chunks = pq.read_metadata(Location.of(log.path).for_arrow).row_group(0)
        assert all(chunks.column(n).has_offset_index for n in range(chunks.num_columns))
