"""Lookup of keys in Arrow data: numbers of distinct keys, and rows that have them, compared with a Python dict (K1)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trinity.merge.kernels.keys import Keys, rows_with_keys

pytestmark = pytest.mark.inner

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "tinyint": (pa.int8(), st.integers(-3, 3)),
    "bigint": (pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 2**63 - 1])),
    "date": (pa.date32(), st.dates(dt.date(1969, 12, 30), dt.date(1970, 1, 3))),
    "timestamp": (pa.timestamp("us", "UTC"), st.integers(-2, 3)),
    "string": (pa.string(), st.sampled_from(["", "a", "A", "ä", "a\0", "b"])),
    "decimal": (pa.decimal128(9, 2), st.sampled_from([Decimal("0.00"), Decimal("0.01"), Decimal("-1.50")])),
}


@st.composite
def two_tables(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))

    def table() -> pa.Table:
        values = st.tuples(*(st.none() | KINDS[kind][1] for kind in kinds))
        rows = draw(st.lists(values, max_size=12, unique=draw(st.booleans())))
        if draw(st.booleans()):
            rows = sorted((row for row in rows if None not in row), key=str if len(kinds) > 1 else lambda row: row[0])
        columns = [pa.array([row[n] for row in rows], KINDS[kind][0]) for n, kind in enumerate(kinds)]
        whole = pa.table(columns, [f"k{n}" for n in range(len(kinds))])
        at = draw(st.integers(0, len(rows)))
        return pa.concat_tables([whole.slice(0, at), whole.slice(at)])  # (columns of two chunks)

    return table(), table()


def keys_of(rows: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


BIGINTS = pa.table({"k0": pa.array([1, 5, 9], pa.int64())})


@given(two_tables())
@example((BIGINTS, BIGINTS.slice(0, 0)))
@example((BIGINTS.slice(0, 0), BIGINTS))
@example((pa.table({"k0": pa.array([9, None, 1, 9])}), pa.table({"k0": pa.array([None, 1, 2])})))
def test_keys_are_found_where_python_finds_them(tables: tuple[pa.Table, pa.Table]) -> None:
    some, rows = tables
    found, numbers = Keys.of(some, some.column_names)
    known = {key for key in keys_of(some) if None not in key}
    assert len(found) == len(known)
    by_key = {key: number for key, number in zip(keys_of(some), numbers.tolist(), strict=True) if None not in key}
    assert sorted(by_key.values()) == list(range(len(known)))
    assert [number for key, number in zip(keys_of(some), numbers, strict=True) if None in key] == [-1] * sum(
        None in key for key in keys_of(some)
    )
    expected = [by_key.get(key, -1) for key in keys_of(rows)]
    assert found.numbers(rows).tolist() == expected
    places, which = found.lookup(rows)
    assert places.tolist() == [place for place, number in enumerate(expected) if number != -1]
    assert which.tolist() == [number for number in expected if number != -1]
    assert np.array_equal(rows_with_keys(rows, some, some.column_names), places)
