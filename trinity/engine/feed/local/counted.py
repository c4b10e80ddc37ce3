"""The changes of a plain table: added and removed rows, counted, since equal rows are indistinguishable (C5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, row_numbers
from trinity.engine.feed.local.rows import InColumns
from trinity.engine.feed.shape import CHANGE_TYPE, VERSION
from trinity.engine.feed.steps import Step
from trinity.engine.reading.data_files import positions_left
from trinity.spi import Column


def is_counted(kind: pa.DataType) -> bool:
    """Return True for a type whose equal values Arrow can group. It cannot group lists and maps."""
    return not pa.types.is_nested(kind) or (
        pa.types.is_struct(kind) and all(is_counted(kind.field(number).type) for number in range(kind.num_fields))
    )


def counted_changes(steps: Sequence[Step], columns: Sequence[Column], *, net: bool) -> pa.Table:
    """Return the rows of the feed for one step or more.

    A net feed cancels out a row that one version adds and another removes; a change then belongs to the last version
    that touched its row.
    """
    parts = [(step, sign, part) for step in steps for sign in (1, -1) for part in [_moved_rows(step, sign, columns)]]
    rows = pa.concat_tables([part for _, _, part in parts]).combine_chunks()
    sizes = [len(part) for _, _, part in parts]
    versions = np.repeat([step.version for step, _, _ in parts], sizes)
    signs = np.repeat([sign for _, sign, _ in parts], sizes)
    groups = row_numbers([*_without_structs(rows), *([] if net else [as_arrow(versions)])])
    count = int(groups.max(initial=-1)) + 1
    sums, last, first = np.zeros(count, np.int64), np.zeros(count, np.int64), np.full(count, len(rows))
    np.add.at(sums, groups, signs)
    np.maximum.at(last, groups, versions)
    np.minimum.at(first, groups, np.arange(len(rows)))
    moved = np.flatnonzero(sums)
    each = np.repeat(moved, np.abs(sums[moved]))
    kinds = pa.array(np.where(sums[each] > 0, "insert", "delete").tolist(), pa.string())
    found = rows.take(first[each]).append_column(CHANGE_TYPE, kinds)
    return found.append_column(VERSION, as_arrow(last[each], pa.int64()))


def _moved_rows(step: Step, sign: int, columns: Sequence[Column]) -> pa.Table:
    """Return the rows that a step added, or, for a negative sign, removed."""
    splits, files = (step.after, step.added) if sign > 0 else (step.before, step.removed)
    return InColumns(splits, columns).at((file, positions_left(file)) for file in files)


def _without_structs(rows: pa.Table) -> Iterator[pa.Array]:
    """Yield the columns, and fields of structs instead of these, with one NaN and one zero, as Spark compares them."""
    for column in rows.columns:
        yield from _plain(column.combine_chunks())


def _plain(values: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_struct(values.type):
        yield values.is_valid()
        for field in values.flatten():
            yield from _plain(field)
    elif pa.types.is_floating(values.type):
        one_zero, one_nan = pc.add(values, pa.scalar(0, values.type)), pa.scalar(float("nan"), values.type)
        yield pc.if_else(pc.is_nan(values), one_nan, one_zero)
    else:
        yield values
