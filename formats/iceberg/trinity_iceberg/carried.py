"""Facts that Trinity carries from commit to commit: in the summary of each snapshot, and where no expiry reaches it.

A version is read by the summaries of its own snapshot and of those before it. Another engine may let these expire:
then the table property of the newest commit has what they said.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetPropertiesUpdate, TableUpdate

from trinity.errors import TrinityError
from trinity_iceberg.schema import DEFINITION

__all__ = [
    "CREATED",
    "INDEX",
    "ORDER",
    "OPERATION",
    "STATE",
    "TXN",
    "carried",
    "index_of",
    "indexes",
    "lineage",
    "on_record",
    "order_at",
    "summary_of",
    "version_of",
]

OPERATION: Final = "trinity.operation"
"""Snapshot summary: what Trinity did, as ``history()`` shows it."""
TXN: Final = "trinity.txn"
"""Snapshot summary: JSON object application -> highest recorded version (L4); carried forward."""
INDEX: Final = "trinity.index"
"""Snapshot summary: name of the file index below the table's folder; carried forward."""
ORDER: Final = "trinity.row-order"
"""Snapshot summary: the table's :class:`~trinity.spi.RowOrder`; carried forward."""
STATE: Final = "trinity.state"
"""Table property: JSON object with what the newest Trinity commit carries, and its version."""
_CARRIED: Final = (TXN, INDEX, ORDER)
CREATED: Final = {STATE: '{"version": "1"}'}
"""Table property of a new table."""


def version_of(snapshot: Snapshot | None) -> int:
    """The version that a snapshot is: its sequence number; 0 for a table without any snapshot."""
    return (snapshot.sequence_number or 0) if snapshot else 0


def lineage(metadata: TableMetadata) -> list[Snapshot]:
    """The snapshots that led to the present one, oldest first, as far as they have not expired."""
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    found = []
    at = metadata.current_snapshot_id
    while at is not None and at in by_id:
        found.append(by_id[at])
        at = by_id[at].parent_snapshot_id
    return found[::-1]


def carried(metadata: TableMetadata) -> dict[str, str]:
    """The facts that the next commit must carry forward: transactions and file index of the newest Trinity commit.

    Raises:
        TrinityError: BAD_DATA when the snapshots that said so are gone, and nothing else says it.
    """
    return _carried_at(metadata, lineage(metadata))


def index_of(metadata: TableMetadata, snapshot: Snapshot) -> str | None:
    """Name of the file index of a version. Raises BAD_DATA as :func:`carried` does."""
    known = [s for s in lineage(metadata) if version_of(s) <= version_of(snapshot)]
    return _carried_at(metadata, known or [snapshot]).get(INDEX)


def order_at(metadata: TableMetadata, snapshot: Snapshot | None) -> tuple[str | None, list[Snapshot]]:
    """The order of rows that a version carries, and the snapshots of other engines since that was put down."""
    chain = [s for s in lineage(metadata) if version_of(s) <= version_of(snapshot)]
    known = max((n for n, s in enumerate(chain) if OPERATION in summary_of(s)), default=-1)
    return _carried_at(metadata, chain).get(ORDER), chain[known + 1 :]


def indexes(metadata: TableMetadata, without: Collection[int] = ()) -> set[str]:
    """Names of the file indexes that the table's versions need, but for some, given by snapshot."""
    found = {_carried_by(s).get(INDEX) for s in metadata.snapshots if s.snapshot_id not in without}
    found.add(_recorded(metadata).get(INDEX))
    return {name for name in found if name}


def on_record(metadata: TableMetadata, version: int, found: Mapping[str, str]) -> tuple[TableUpdate, ...]:
    """The update that puts what a commit carries into the table's properties.

    Args:
        metadata: the table before the commit; one of others that carries nothing is left alone.
        version: the commit's version.
        found: what it carries.
    """
    if not found.keys() & {*_CARRIED} and DEFINITION not in metadata.properties:
        return ()
    text = json.dumps({"version": str(version), **{k: found[k] for k in _CARRIED if k in found}})
    return (SetPropertiesUpdate(updates={STATE: text}),)


def _carried_at(metadata: TableMetadata, chain: Sequence[Snapshot]) -> dict[str, str]:
    for snapshot in reversed(chain):
        if OPERATION in summary_of(snapshot):
            return _carried_by(snapshot)
    recorded = _recorded(metadata)
    # a later commit's record says nothing of an older version
    if recorded and (not chain or int(recorded["version"]) < version_of(chain[0])):
        return {k: recorded[k] for k in _CARRIED if k in recorded}
    if DEFINITION not in metadata.properties:
        return {}
    version = version_of(chain[-1] if chain else None)
    raise TrinityError(
        "BAD_DATA",
        f"The snapshots that name the tombstones and transactions of version {version} "
        f"of the table at '{metadata.location}' were expired by another engine. Read a newer version; if this is the "
        "newest, restore the table's metadata from a backup.",
    )


def _recorded(metadata: TableMetadata) -> dict[str, str]:
    found: dict[str, str] = json.loads(metadata.properties.get(STATE, "{}"))
    return found


def _carried_by(snapshot: Snapshot) -> dict[str, str]:
    own = summary_of(snapshot)
    return {k: own[k] for k in _CARRIED if k in own} if OPERATION in own else {}


def summary_of(snapshot: Snapshot) -> Mapping[str, str]:
    """The entries of a snapshot's summary."""
    return snapshot.summary.additional_properties if snapshot.summary else {}
