"""Stamps on the rows of keyed tables, in formats whose files other engines may rewrite (L3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import pyarrow as pa

from trinity.spi import (
    STAMP,
    DataFile,
    InsertTableHandle,
    MergeTableHandle,
    RowOrder,
    TableDefinition,
    WriteTarget,
    came_after,
)

__all__ = ["definition_after", "order_with", "stamped", "stamps_missing"]

_FIELD: Final = pa.field(STAMP, pa.int64())


def stamped(
    definition: TableDefinition, target: WriteTarget, stamp: int, field: pa.Field = _FIELD
) -> tuple[TableDefinition, WriteTarget]:
    """Return definition and target for sinks whose files have the stamp column, even if the table does not have it yet.

    Args:
        definition: the table.
        target: where sinks write.
        stamp: the stamp of rows without one.
        field: the stamp column in the storage schema.
    """
    if not definition.keyed or definition.external:
        return definition, target
    storage = target.storage if definition.stamped else target.storage.append(field)
    statistics = tuple(dict.fromkeys((*target.statistics, STAMP)))
    return definition.with_stamps(), replace(target, storage=storage, statistics=statistics, stamp=stamp)


def stamps_missing(insert: InsertTableHandle, now: TableDefinition) -> bool:
    """Return whether the commit of a row change must add the stamp column to the table."""
    return insert.target.stamp is not None and not now.stamped


def definition_after(merge: MergeTableHandle, now: TableDefinition) -> TableDefinition:
    """Return the definition that the commit of a row change gives to the table, which has one now."""
    wanted = merge.insert.definition
    if merge.before is not None and wanted.replaced != now.replaced:  # no row is older, so none needs a stamp
        return wanted.with_columns(c for c in wanted.columns if c.name != STAMP)
    if merge.before is not None:
        return now.with_columns(wanted.columns)
    return now.with_stamps() if stamps_missing(merge.insert, now) else now


def order_with(
    insert: InsertTableHandle, order: RowOrder, newest: int, live: Callable[[], Iterable[DataFile]]
) -> RowOrder:
    """Return the order of rows that the table remembers after an append.

    Args:
        insert: the append.
        order: the order before it.
        newest: the version on which it is committed.
        live: returns the files of that version.
    """
    stamp, pinned = insert.target.stamp, insert.table.version or 0
    if stamp is None or newest == pinned or not came_after(pinned, live()):
        return order
    return order.with_late(stamp, newest + 1)
