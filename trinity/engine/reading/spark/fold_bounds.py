"""Fold orders and sums that fit into a BIGINT, by the bounds of a version's files.

Spark aggregates by a BIGINT with a hash table. By a struct (sequence, fold order) it would have to sort.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, Final

from trinity.engine.reading.files import order_is_lost, tiers
from trinity.engine.reading.spark.row_arrival import POSITION_BITS
from trinity.hidden import FOLD_ORDER
from trinity.merge.spec import MergeSpec, SequenceGroup
from trinity.merge.sql.groups import takes_part
from trinity.spi import INTEGERS, DataFile, SplitSource
from trinity.syntax.quoting import quoted

_BITS: Final = 63
_LARGEST: Final = 1 << 62
_MARGIN: Final = 1000
"""Microseconds by which a timestamp may exceed a bound: Delta's bounds are cut to milliseconds."""
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_NUMBERS: Final = {
    **dict.fromkeys(INTEGERS, "CAST({} AS BIGINT)"),
    "date": "CAST(unix_date({}) AS BIGINT)",
    "timestamp": "unix_micros({})",
}
"""Types of sequence columns that are packed -> their value as BIGINT."""


def packed_orders(splits: SplitSource, spec: MergeSpec) -> dict[int, str]:
    """Return number of a sequence group -> Spark SQL for its order as one BIGINT, NULL for rows that take no part (G2).

    Groups are left out when sequence and row position may exceed 63 bits, or when a file lacks the bounds.
    """
    log = tiers(splits.files)[1]
    # in these cases the fold order is not made of the file's number and the row's position
    if not log or spec.ordering or splits.sidecar or splits.native is not None or not all(f.rows for f in log):
        return {}
    if order_is_lost(splits):
        return {}
    found = {number: _packed(group, splits, log) for number, group in enumerate(spec.groups)}
    return {number: order for number, order in found.items() if order is not None}


def _packed(group: SequenceGroup, splits: SplitSource, log: list[DataFile]) -> str | None:
    parts = [_part(splits, column) for column in group.sequence]
    known = [part for part in parts if part is not None]
    row_bits, file_bits = max(f.rows for f in log).bit_length(), (len(log) + 1).bit_length()
    if len(known) < len(parts) or sum(bits for _, bits in known) + row_bits + file_bits > _BITS:
        return None
    fold_order = f"({FOLD_ORDER} + {1 << POSITION_BITS}L)"  # the fold order of base rows is -1
    in_file = f"({fold_order} & {(1 << row_bits) - 1}L)"
    packed = "0L"
    for value, bits in (*known, (f"shiftright({fold_order}, {POSITION_BITS})", file_bits), (in_file, row_bits)):
        packed = f"(shiftleft({packed}, {bits}) + {value})"
    return f"IF({takes_part(group)}, {packed}, NULL)"


def _part(splits: SplitSource, column: str) -> tuple[str, int] | None:
    """Return Spark SQL for a column's value as a number from 1 on, or 0 for NULL, and the bits that it needs.

    None if the type is not packed, or a file lacks bounds.
    """
    number = _NUMBERS.get(splits.definition.column(column).type)
    bounds = _bounds(splits.files, column) if number else None
    if number is None or bounds is None:
        return None
    low, high = bounds
    if "micros" in number:
        low, high = low - _MARGIN, high + _MARGIN
    return f"coalesce({number.format(quoted(column))} - ({low}L) + 1L, 0L)", (high - low + 1).bit_length()


def _bounds(files: Iterable[DataFile], column: str) -> tuple[int, int] | None:
    """Return bounds of a column's numbers over all files, (0, 0) without numbers; None when a file lacks bounds."""
    found: list[int] = []
    for file in files:
        stats, bounds = file.stats.get(column), file.bounds(column)
        if bounds is not None:
            found += map(_number, bounds)
        elif stats is None or stats.nulls != file.rows:
            return None
    low, high = min(found, default=0), max(found, default=0)
    return (low, high) if max(-low, high) < _LARGEST else None


def _number(bound: Any) -> int:
    if isinstance(bound, dt.datetime):
        return (bound - _EPOCH) // _MICROSECOND
    return (bound - _EPOCH.date()).days if isinstance(bound, dt.date) else int(bound)


def small_sums(splits: SplitSource, spec: MergeSpec) -> frozenset[str]:
    """Return BIGINT columns whose values, by the files' bounds, cannot add up to more than BIGINT holds (A4)."""
    files = (*splits.files, *splits.sidecar)
    summed = [c for c, f in spec.functions.items() if f.name == "sum" and splits.definition.column(c).type == "bigint"]
    totals = {column: [_largest_sum(file, column) for file in files] for column in summed}
    return frozenset(c for c, parts in totals.items() if None not in parts and sum(filter(None, parts)) < 1 << _BITS)


def _largest_sum(file: DataFile, column: str) -> int | None:
    """Return the most that a column's values in a file can add up to, whatever their signs; None if unknown."""
    bounds = _bounds([file], column)
    return None if bounds is None or not file.rows else file.rows * max(map(abs, bounds))
