"""Compares the statistics of files, as listed and as stored in the files, with the rows of the files.

A read does not show every error in them: Trinity skips no file by the bounds of floating-point columns, but Spark and
other readers do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.spi import ColumnStats, DataFile, SplitSource, stored_name
from trinity.storage.parquet_files import parquet_footer, stored_pages

_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
"""Parquet's types of floating-point numbers."""


def wrong_statistics(splits: SplitSource) -> str | None:
    """Return the first error in the statistics of a version's files; None where they hold for each row."""
    return next(_wrongs(splits), None)


def _wrongs(splits: SplitSource) -> Iterator[str]:
    for file in (*splits.files, *splits.sidecar):
        rows = pa.Table.from_batches(stored_pages(file.path, splits.storage), splits.storage)
        yield from _listed(file, rows)
        yield from _in_footer(file, rows)


def _listed(file: DataFile, rows: pa.Table) -> Iterator[str]:
    """Yield the errors in the statistics with which a file is listed."""
    for name in rows.column_names:
        if name in file.stats and name not in file.partition:
            wrong = _wrong(rows.column(name), file.stats[name])
            if wrong is not None:
                yield f"column '{name}' is listed with {wrong}"


def _wrong(values: pa.ChunkedArray, listed: ColumnStats) -> str | None:
    if listed.nulls not in (None, values.null_count):
        return f"{listed.nulls} NULLs, and has {values.null_count}"
    for side, bound in (("smallest", listed.min), ("largest", listed.max)):
        if _is_nan(bound):
            return f"NaN as its {side} value"
    try:
        found = sorted((v for v in values.to_pylist() if v is not None and not _is_nan(v)), key=_order)
        if found and listed.min is not None and _order(found[0]) < _order(listed.min):
            return f"{listed.min!r} as its smallest value, and has {found[0]!r}"
        if found and listed.max is not None and _order(found[-1]) > _order(listed.max):
            return f"{listed.max!r} as its largest value, and has {found[-1]!r}"
    except TypeError:  # bounds of another type have no meaning
        pass
    return None


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _order(value: Any) -> tuple[Any, float]:
    """Return a sortable form, in which -0.0 is smaller than 0.0."""
    return value, math.copysign(1, value) if isinstance(value, (int, float)) else 0


def _in_footer(file: DataFile, rows: pa.Table) -> Iterator[str]:
    """Yield the columns with bounds in the file itself that leave out a NaN."""
    footer, first = parquet_footer(file.path), 0
    names = {stored_name(rows.schema, name): name for name in rows.column_names}
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            name = names.get(chunk.path_in_schema)
            bounded = chunk.statistics is not None and chunk.statistics.has_min_max
            if name is None or chunk.physical_type not in _FLOATS or not bounded:
                continue
            if pc.any(pc.is_nan(rows.column(name).slice(first, group.num_rows))).as_py():
                yield f"column '{name}' has bounds in a file, and a NaN, which they leave out: Spark does not find it"
        first += group.num_rows
