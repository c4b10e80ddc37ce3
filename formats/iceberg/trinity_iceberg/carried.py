"""Facts that Trinity carries from commit to commit: in the summary of each snapshot, and in a table property.

A version is read with the summaries of its own snapshot and of earlier ones. Another engine may let these expire. Then
the table property of the newest commit still holds them.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetPropertiesUpdate, TableUpdate

from trinity.errors import TrinityError
from trinity_iceberg.recorded import DEFINITION, STATE, facts, mark_of

__all__ = [
    "INDEX",
    "ORDER",
    "OPERATION",
    "TXN",
    "carried",
    "created",
    "index_of",
    "indexes",
    "lineage",
    "on_record",
    "order_at",
    "summary_of",
    "version_of",
]

OPERATION: Final = "trinity.operation"
"""Snapshot summary: Trinity's name for the operation, as ``history()`` shows it."""
TXN: Final = "trinity.txn"
"""Snapshot summary: JSON object application -> highest recorded version (L4); carried forward."""
INDEX: Final = "trinity.index"
"""Snapshot summary: name of the file index below the table's folder; carried forward."""
ORDER: Final = "trinity.row-order"
"""Snapshot summary: the table's :class:`~trinity.spi.RowOrder`; carried forward."""
_CARRIED: Final = (TXN, INDEX, ORDER)
_BEFORE: Final = "before"
"""Entry of the property :data:`STATE`: JSON of the record that was there before, while versions are read by it."""


def version_of(snapshot: Snapshot | None) -> int:
    """Return the version of a snapshot: its sequence number; 0 for a table without snapshots."""
    return (snapshot.sequence_number or 0) if snapshot else 0


def lineage(metadata: TableMetadata) -> list[Snapshot]:
    """Return the unexpired snapshots that led to the current one, oldest first."""
    return list(_newest_first(metadata))[::-1]


def _newest_first(metadata: TableMetadata) -> Iterator[Snapshot]:
    """Yield the unexpired snapshots that led to the current one, newest first; the lookup is lazy."""
    at, snapshots = metadata.current_snapshot_id, metadata.snapshots
    for snapshot in reversed(snapshots):  # a snapshot comes after those before it
        if at is None:
            return
        if snapshot.snapshot_id == at:
            yield snapshot
            at = snapshot.parent_snapshot_id
    by_id = {s.snapshot_id: s for s in snapshots} if at is not None else {}
    while at is not None and at in by_id:  # another engine has reordered them
        yield by_id[at]
        at = by_id[at].parent_snapshot_id


def carried(metadata: TableMetadata) -> dict[str, str]:
    """Return the facts that the next commit must carry forward, from the newest Trinity commit.

    Raises:
        TrinityError: BAD_DATA when the snapshots with these facts have expired, and no property has them.
    """
    return _carried_at(metadata, _newest_first(metadata))


def index_of(metadata: TableMetadata, snapshot: Snapshot) -> str | None:
    """Return the name of a version's file index. Raises BAD_DATA as :func:`carried` does."""
    known = _up_to(metadata, snapshot)
    first = next(known, snapshot)
    return _carried_at(metadata, chain([first], known)).get(INDEX)


def order_at(metadata: TableMetadata, snapshot: Snapshot | None) -> tuple[str | None, list[Snapshot]]:
    """Return the order of rows that a version carries, and the snapshots of other engines since it was recorded."""
    others = list(takewhile(lambda s: OPERATION not in summary_of(s), _up_to(metadata, snapshot)))
    return _carried_at(metadata, _up_to(metadata, snapshot)).get(ORDER), others[::-1]


def _up_to(metadata: TableMetadata, snapshot: Snapshot | None) -> Iterator[Snapshot]:
    """Return the lineage of a version, newest first."""
    return (s for s in _newest_first(metadata) if version_of(s) <= version_of(snapshot))


def indexes(metadata: TableMetadata, without: Collection[int] = ()) -> set[str]:
    """Return the names of the file indexes that the table's versions need, without the snapshots given."""
    found = {_carried_by(s).get(INDEX) for s in metadata.snapshots if s.snapshot_id not in without}
    found |= {record.get(INDEX) for record in _records(metadata)}
    return {name for name in found if name}


def created(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table, with those of its definition."""
    return {**properties, **_record(1, mark_of(properties))}


def on_record(
    metadata: TableMetadata, version: int, found: Mapping[str, str], updates: Sequence[TableUpdate]
) -> tuple[TableUpdate, ...]:
    """Return the update that puts the facts of a commit into the table's properties.

    Args:
        metadata: the table before the commit; an external table without facts is left alone.
        version: the commit's version.
        found: the facts that it carries.
        updates: the changes that it makes to the metadata, which may be of the definition.
    """
    changed = [update.updates for update in updates if isinstance(update, SetPropertiesUpdate)]
    record = {
        **mark_of(dict(ChainMap(*changed[::-1], metadata.properties))),
        **{k: found[k] for k in _CARRIED if k in found},
    }
    if record and (before := _still_needed(metadata)):
        record[_BEFORE] = json.dumps(before)
    return (SetPropertiesUpdate(updates=_record(version, record)),) if record else ()


def _records(metadata: TableMetadata) -> list[dict[str, str]]:
    """Return the record of the newest Trinity commit, and the one that it has kept; neither of a table without."""
    newest = facts(metadata)
    return [record for record in (newest, json.loads(newest.pop(_BEFORE, "{}"))) if record]


def _still_needed(metadata: TableMetadata) -> dict[str, str]:
    """Return the record by which others' snapshots are read that no unexpired one of Trinity's is before."""
    oldest = next(iter(lineage(metadata)), None)
    if oldest is None or OPERATION in summary_of(oldest):
        return {}
    return next((r for r in _records(metadata) if int(r["version"]) < version_of(oldest)), {})


def _record(version: int, found: Mapping[str, str]) -> dict[str, str]:
    return {STATE: json.dumps({"version": str(version), **found})}


def _carried_at(metadata: TableMetadata, snapshots: Iterator[Snapshot]) -> dict[str, str]:
    """Return the facts that a version carries, from its lineage, newest first."""
    newest = oldest = None
    for snapshot in snapshots:
        if OPERATION in summary_of(snapshot):
            return _carried_by(snapshot)
        newest, oldest = newest or snapshot, snapshot
    for recorded in _records(metadata):
        # a later commit's record holds nothing about an older version
        if oldest is None or int(recorded["version"]) < version_of(oldest):
            return {k: recorded[k] for k in _CARRIED if k in recorded}
    if DEFINITION not in metadata.properties:
        return {}
    raise TrinityError(
        "BAD_DATA",
        f"The snapshots that name the tombstones and transactions of version {version_of(newest)} "
        f"of the table at '{metadata.location}' were expired by another engine. Read a newer version, and "
        "let streams and tables that had come to this one begin anew; if this is the newest, restore the table's "
        "metadata from a backup.",
    )


def _carried_by(snapshot: Snapshot) -> dict[str, str]:
    own = summary_of(snapshot)
    return {k: own[k] for k in _CARRIED if k in own} if OPERATION in own else {}


def summary_of(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the entries of a snapshot's summary."""
    return snapshot.summary.additional_properties if snapshot.summary is not None else {}
