"""What commits did to the files of a table: those of two snapshots compared, whoever made the second one."""

from __future__ import annotations

from itertools import pairwise

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from trinity.spi import TableHandle
from trinity.storage import FileChange
from trinity_iceberg.carried import lineage, version_of
from trinity_iceberg.snapshot import Snapshots, operation_of, read_manifests

__all__ = ["changes", "delete_files"]


def changes(snapshots: Snapshots, pinned: TableHandle, table: Table) -> list[FileChange] | None:
    """What was committed since a version, compactions left out; None once that version has expired, or was rolled back.

    Args:
        snapshots: reads the versions.
        pinned: the handle, its version as a statement read it.
        table: the table as it is now.
    """
    chain = lineage(table.metadata)
    versions = [version_of(s) for s in chain]
    if not chain:
        return [] if not pinned.version else None
    if pinned.version not in versions:
        return None
    return [
        _file_change(snapshots, pinned, table, before, after)
        for before, after in pairwise(chain[versions.index(pinned.version) :])
        if not _is_compaction(after)
    ]


def delete_files(table: Table, snapshot: Snapshot | None) -> frozenset[str]:
    """The manifests of delete files that a snapshot has."""
    found = read_manifests(table.io, snapshot)
    return frozenset(m.manifest_path for m in found if m.content != ManifestContent.DATA)


def _is_compaction(snapshot: Snapshot) -> bool:
    replaces = snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE
    return replaces or operation_of(snapshot) == "compact"


def _file_change(
    snapshots: Snapshots, pinned: TableHandle, table: Table, before: Snapshot, after: Snapshot
) -> FileChange:
    schema = table.schema()
    was, now = (snapshots.files(pinned, table, s, schema)[0] for s in (before, after))
    known, live = ({f.path for f in files} for files in (was, now))
    removed = not known <= live or delete_files(table, before) != delete_files(table, after)
    return FileChange(version_of(after), [f for f in now if f.path not in known], removed)
