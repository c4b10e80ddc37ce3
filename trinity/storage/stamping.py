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
    RowOrder,
    TableDefinition,
    WriteTarget,
    came_after,
)

__all__ = ["order_with", "stamped", "stamps_missing"]

_FIELD: Final = pa.field(STAMP, pa.int64())


def stamped(
    definition: TableDefinition, target: WriteTarget, stamp: int, field: pa.Field = _FIELD
) -> tuple[TableDefinition, WriteTarget]:
    """Definition and target for sinks whose files have a column for stamps, whether or not the table has one.

    Args:
        definition: the table.
        target: where sinks write.
        stamp: that of rows without one.
        field: the column in the storage schema.
    """
    if not definition.keyed or definition.external:
        return definition, target
    storage = target.storage if definition.stamped else target.storage.append(field)
    statistics = tuple(dict.fromkeys((*target.statistics, STAMP)))
    return definition.with_stamps(), replace(target, storage=storage, statistics=statistics, stamp=stamp)


def stamps_missing(insert: InsertTableHandle, now: TableDefinition) -> bool:
    """True when the commit of a row change has to add the column for stamps to the table."""
    return insert.target.stamp is not None and not now.stamped


def order_with(
    insert: InsertTableHandle, order: RowOrder, newest: int, live: Callable[[], Iterable[DataFile]]
) -> RowOrder:
    """The order of rows that is remembered once an append is committed.

    Args:
        insert: the append.
        order: what was remembered before.
        newest: the version that the commit is put upon.
        live: yields the files of that version.
    """
    stamp, pinned = insert.target.stamp, insert.table.version or 0
    if stamp is None or newest == pinned or not came_after(pinned, live()):
        return order
    return order.with_late(stamp, newest + 1)
