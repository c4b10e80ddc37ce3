"""Columns whose bounds every file keeps."""

from __future__ import annotations

from typing import Final

from trinity.merge.parse import merge_spec
from trinity.spi import STAMP, TableDefinition, parse_type

__all__ = ["statistics_columns"]

_MOST_STATISTICS: Final = 32
"""As many as Delta keeps by default."""


def statistics_columns(definition: TableDefinition) -> tuple[str, ...]:
    """Return the columns whose bounds every file keeps: by them reads and row changes skip files.

    For a keyed table these are the key, the ordering and what its fold asks for. For a plain one they are the first
    primitive columns, since a statement finds its rows by any column.
    """
    if definition.keyed:
        return (*merge_spec(definition).statistics, *([STAMP] if definition.stamped else []))
    primitive = [c.name for c in definition.columns if not parse_type(c.type).nested]
    return tuple(primitive[:_MOST_STATISTICS])
