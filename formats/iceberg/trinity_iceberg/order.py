"""The order of rows in Iceberg's terms: who made a file, and what the table remembers (L3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyiceberg.manifest import ManifestEntry
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from trinity.spi import Origin, RowOrder
from trinity.storage import is_sink_file
from trinity_iceberg.carried import ORDER, carried, order_at, version_of
from trinity_iceberg.schema import DEFINITION

__all__ = ["folded_order", "order_after", "order_of", "origin_of"]


def origin_of(entry: ManifestEntry, snapshot: Snapshot | None) -> Origin:
    """Return the maker of a file.

    Args:
        entry: the file's entry, with both sequence numbers.
        snapshot: the snapshot that added it; None once that has expired. Even then a file is known to be rewritten if
            it was committed later than its rows.
    """
    if is_sink_file(entry.data_file.file_path.rpartition("/")[2]):
        return Origin.OWN
    if snapshot is None or snapshot.summary is None:
        return Origin.UNSURE if entry.sequence_number == entry.file_sequence_number else Origin.REWRITTEN
    return Origin.ADDED if snapshot.summary.operation is Operation.APPEND else Origin.REWRITTEN


def order_of(metadata: TableMetadata, snapshot: Snapshot | None = None) -> RowOrder:
    """Return the order of rows as known at a version, or at the newest."""
    snapshot = snapshot or metadata.current_snapshot()
    recorded, others = order_at(metadata, snapshot) if DEFINITION in metadata.properties else (None, [])
    return order_after(RowOrder.from_json(recorded), others, version_of(snapshot)) if recorded else RowOrder()


def folded_order(metadata: TableMetadata, version: int) -> RowOrder | None:
    """Return the order of rows to remember once a version is folded; None where none is remembered."""
    return order_of(metadata).folded(version) if ORDER in carried(metadata) else None


def order_after(order: RowOrder, others: list[Snapshot], version: int) -> RowOrder:
    """Return the order of rows after commits of other engines.

    Args:
        order: the order that Trinity's newest commit before them has remembered.
        others: the snapshots since then, oldest first.
        version: the newest version, in case some of these have expired.
    """
    for snapshot in others:
        number = snapshot.sequence_number or 0
        if number != order.through + 1:
            break
        order = replace(order, through=number, strangers=number if _brings_rows(snapshot) else order.strangers)
    return order if order.through >= version else replace(order, through=version, strangers=version)


_COUNTED: Final = ("added-records", "deleted-records", "added-position-deletes")


def _brings_rows(snapshot: Snapshot) -> bool:
    """Return whether a commit may have added rows that did not exist before, and did not only copy rows."""
    if snapshot.summary is None or snapshot.summary.operation is Operation.APPEND:
        return True
    own = snapshot.summary.additional_properties
    added, deleted, marked = (int(own.get(key, 0)) for key in _COUNTED)
    return snapshot.summary.operation is Operation.OVERWRITE and added > deleted + marked
