"""Limits of the local executor, known from statistics: where it leaves a plan to Spark, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from trinity.engine.not_local import NotLocal
from trinity.merge.arrow.by_column import ColumnFold
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, Origin, SplitSource

__all__ = ["NotLocal", "are_own", "why_not_by_column", "why_not_by_position", "why_not_files"]

_MOST_LOG: Final = 4_000_000
"""Log rows whose keys and ordering every task can hold: some hundred MB."""
_MOST_ROWS: Final = 1_000_000_000
"""Base rows with a bit each: 125 MB."""


_FOREIGN: Final = NotLocal("other engines have written some of its files")


def why_not_by_position(
    splits: SplitSource, spec: MergeSpec, base: Sequence[DataFile], log: Sequence[DataFile]
) -> NotLocal | None:
    """Return why the hidden rows of a version cannot be left out by their positions; None when they can."""
    if spec.by_column:
        return NotLocal(f"merge engine {spec.engine.value} folds column by column")
    if (why := why_not_files(splits)) is not None:
        return why
    if sum(f.rows for f in base) > _MOST_ROWS:
        return NotLocal(f"its base has more than {_MOST_ROWS:,} rows")
    return _why_not_so_long(log)


def why_not_by_column(splits: SplitSource, spec: MergeSpec, log: Sequence[DataFile]) -> NotLocal | None:
    """Return why this process cannot fold the log of a version column by column; None when it can."""
    missing = ColumnFold(splits.definition, spec).not_in_arrow()
    if missing:
        return NotLocal(", ".join(f"column '{column}' folds by {why}" for column, why in missing.items()))
    return _why_not_so_long(log)


def _why_not_so_long(log: Sequence[DataFile]) -> NotLocal | None:
    if sum(f.rows for f in log) <= _MOST_LOG:
        return None
    return NotLocal(f"its log has more than {_MOST_LOG:,} rows (compact('full') folds them)")


def why_not_files(splits: SplitSource) -> NotLocal | None:
    """Return why this process cannot read the files of a version one by one; None when it can."""
    if splits.native is None:
        return None if are_own(splits.files) else _FOREIGN
    return None if splits.native.not_local is None else NotLocal(splits.native.not_local)


def are_own(files: Iterable[DataFile]) -> bool:
    """Return True for files that Trinity wrote."""
    return all(f.origin is Origin.OWN for f in files)
