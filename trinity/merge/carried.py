"""Carried columns (P1): those that a row sets, if it comes from SQL UPDATE or from data that leaves out columns."""

from __future__ import annotations

from collections.abc import Collection

from trinity.merge.spec import MergeSpec
from trinity.spi import TableDefinition


def carried_columns(spec: MergeSpec, changed: Collection[str]) -> frozenset[str]:
    """Return the columns that a row carries when an update changes some columns.

    They are the changed columns, the key and the ordering columns. Of a sequence group with a changed column, they are
    also the sequence columns and all columns without a function, since these change together.
    """
    carried = {*changed, *spec.key, *spec.ordering}
    for group in spec.groups:
        if carried & {*group.columns}:
            carried |= {*group.sequence, *(c for c in group.protected if c not in spec.functions)}
    return frozenset(carried)


def carried_marks(definition: TableDefinition, carried: Collection[str], mark: str = "1") -> str:
    """Return the value of :data:`~trinity.spi.CARRIED`: ``mark`` or 0 for each column of ``definition.all_columns``."""
    ids = {definition.column(name).field_id for name in carried}
    return "".join(mark if c.field_id in ids else "0" for c in definition.all_columns)


def ingested_columns(spec: MergeSpec, definition: TableDefinition, given: Collection[str]) -> str | None:
    """Return the value of :data:`~trinity.spi.CARRIED` for data with the columns ``given``.

    None if all columns that a sequence group protects are given.
    """
    if all(c in given for group in spec.groups for c in group.protected):
        return None
    return carried_marks(definition, given, "+")
