"""What a restore does about snapshots, which other engines may expire during it and after it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemoveSnapshotRefUpdate, TableUpdate

from trinity.errors import TrinityError
from trinity_iceberg.carried import lineage
from trinity_iceberg.manifests import manifests_of_commit, removed_entries
from trinity_iceberg.swap import set_ref

_REMOVED: Final = "trinity-removed-"
"""Beginning of the names of tags on snapshots that removed files which a restore brought back."""
_RESTORED: Final = "trinity-restored"


def is_own_tag(name: str) -> bool:
    """Return whether a tag is one of :func:`kept_removals`, which Trinity's expiry removes with its snapshot."""
    return name.startswith(_REMOVED)


def restored_is_there(then: Snapshot) -> tuple[TableUpdate, ...]:
    """Return updates that change nothing, and that a catalog refuses once the restored snapshot has expired."""
    return set_ref(_RESTORED, SnapshotRefType.TAG, then), without_tag(_RESTORED)


def kept_removals(table: Table, then: Snapshot, paths: Collection[str]) -> Iterator[TableUpdate]:
    """Yield updates that tag the snapshots since ``then`` which removed files of these paths.

    Iceberg's Java library deletes a file that an expired snapshot of the branch has removed, without asking whether
    later snapshots have it again (``IncrementalFileCleanup``). A tagged snapshot does not expire there. Trinity deletes
    only files that no snapshot has, so its expiry takes the tags away.
    """
    for snapshot in _since(table.metadata, then) if paths else ():
        if _may_remove(table, snapshot, paths):
            yield set_ref(f"{_REMOVED}{snapshot.snapshot_id}", SnapshotRefType.TAG, snapshot)


def without_tag(name: str) -> RemoveSnapshotRefUpdate:
    """Return the update that removes a tag."""
    return RemoveSnapshotRefUpdate.model_validate({"ref-name": name})


def _since(metadata: TableMetadata, then: Snapshot) -> Sequence[Snapshot]:
    chain = lineage(metadata)
    return chain[1 + [s.snapshot_id for s in chain].index(then.snapshot_id) :]


def _may_remove(table: Table, snapshot: Snapshot, paths: Collection[str]) -> bool:
    """Return whether a snapshot removed one of the files; True where its manifests cannot be read.

    A tag too many does no harm, and the catalog refuses one for a snapshot that has expired meanwhile.
    """
    try:
        removed = (e for m in manifests_of_commit(table.io, snapshot) for e in removed_entries(table.io, m))
        return any(entry.data_file.file_path in paths for entry in removed)
    except TrinityError as error:
        if error.code != "BAD_DATA":
            raise
        return True
