"""Columns that a file keeps bounds of."""

from __future__ import annotations

from typing import Final

from trinity.merge.parse import merge_spec
from trinity.spi import STAMP, TableDefinition, parse_type

__all__ = ["statistics_columns"]

_MOST_STATISTICS: Final = 32
"""As many as Delta keeps by default."""


def statistics_columns(definition: TableDefinition) -> tuple[str, ...]:
    """Columns whose bounds are worth keeping for every file: by them reads and row changes leave files out.

    Of a keyed table key and ordering; of a plain one, whose rows a statement finds by any column, the first
    primitive ones.
    """
    if definition.keyed:
        return (*merge_spec(definition).statistics, *([STAMP] if definition.stamped else []))
    primitive = [c.name for c in definition.columns if not parse_type(c.type).nested]
    return tuple(primitive[:_MOST_STATISTICS])
