"""Which columns a row carries that SQL UPDATE wrote, or whose writer left some out (P1)."""

from __future__ import annotations

from collections.abc import Collection

from trinity.merge.spec import MergeSpec
from trinity.spi import TableDefinition

__all__ = ["carried_columns", "ingested_columns"]


def carried_columns(spec: MergeSpec, definition: TableDefinition, changed: Collection[str]) -> str:
    """The text of the hidden column for an update of some columns: a 1 or 0 for each column in table order.

    Beside the changed columns a row carries its ordering, and of a group that it touches the sequence and all columns
    without a function: they move together.
    """
    carried = {*changed, *spec.key, *spec.ordering}
    for group in spec.groups:
        if carried & {*group.sequence, *group.protected}:
            carried |= {*group.sequence, *(c for c in group.protected if c not in spec.functions)}
    return "".join("1" if c.name in carried else "0" for c in definition.columns)


def ingested_columns(spec: MergeSpec, definition: TableDefinition, given: Collection[str]) -> str | None:
    """The same for data that has only some columns; None when it lacks none that a sequence group protects."""
    if all(c in given for group in spec.groups for c in group.protected):
        return None
    return "".join("+" if c.name in given else "0" for c in definition.columns)
