"""Versions that a merged read may read by the places of their rows: told by statistics alone, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from trinity.engine.reading.arrow_keys import compared_alike
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, Origin, SplitSource

__all__ = ["is_searchable", "is_told_in_arrow", "may_go_by_place"]

LEAST_ROWS: Final = 10_000
"""Base rows from which a search costs less than the join that it spares."""
_MOST_LOG: Final = 4_000_000
"""Log rows whose keys and ordering every task can hold: some hundred MB."""
_MOST_FILES: Final = 256
"""Files of the log of which nothing is known: every task of a search opens them, some at once."""
_MOST_ROWS: Final = 1_000_000_000
"""Rows with a bit each: 125 MB."""


def may_go_by_place(
    splits: SplitSource, spec: MergeSpec, base: Sequence[DataFile], log: Sequence[DataFile], least: int | None = None
) -> bool:
    """True when the rows of a version that win no key can be told by their places.

    Args:
        splits: the version.
        spec: the options of its table.
        base: its base files.
        log: its log.
        least: base rows from which that is worth it; by default as beside a join.
    """
    if spec.by_column or splits.native is not None or splits.definition.external:
        return False
    rows = sum(f.rows for f in base)
    fits = (LEAST_ROWS if least is None else least) <= rows <= _MOST_ROWS and sum(f.rows for f in log) <= _MOST_LOG
    return fits and is_told_in_arrow(splits, spec, splits.files)


def is_told_in_arrow(splits: SplitSource, spec: MergeSpec, files: Iterable[DataFile]) -> bool:
    """True where Arrow tells which row of a key wins, and how files are ordered, as Spark does.

    Those are Trinity's own files, by columns of types that both compare alike; what others wrote is left to Spark.
    """
    own = all(f.origin is Origin.OWN for f in files)
    return own and compared_alike(splits.definition, (*spec.key, *spec.ordering))


def is_searchable(unknown: int) -> bool:
    """True when looking so many files of the log up is worth it."""
    return unknown <= _MOST_FILES
