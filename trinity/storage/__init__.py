"""The code that adapters share: the storage seam, the Parquet sink, the commit loop, folder catalogs, vacuum.

An adapter may import this package, ``trinity.spi`` and ``trinity.errors``, and nothing else of Trinity. Names that are
not exported here are for Trinity's own packages, which import them from their modules. They may change in any release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trinity.spi import no_such_version, version_at
    from trinity.storage.cache import Cache
    from trinity.storage.commits import (
        Attempt,
        Change,
        CommitRaced,
        Newest,
        RowChanges,
        commit_change,
        commit_loop,
        commit_result,
        definition_after,
        next_timestamp_ms,
        on_newest,
        order_with,
        stamps_missing,
        with_txn,
    )
    from trinity.storage.conflicts import FileChange
    from trinity.storage.entries import Entry, Stat
    from trinity.storage.errors import AlreadyExists, after_commit, asking_again, commit_unknown
    from trinity.storage.folder_names import no_table, table_taken
    from trinity.storage.folders import FolderCatalog, FolderMetadata, folders_of
    from trinity.storage.location import Location
    from trinity.storage.orphans import delete_around, delete_orphans
    from trinity.storage.partitioned_sink import identity_only
    from trinity.storage.position_deletes import DeletesFragment, PositionDeletes
    from trinity.storage.readable import oldest_needed, repair_preview, repair_result
    from trinity.storage.sinks import ParquetSinkProvider, stamped, write_target
    from trinity.storage.store import ObjectStore, commit_point
    from trinity.storage.table_commits import TableAttempt, TableCommits
    from trinity.storage.versions import TableVersion, VersionAttempt, VersionedMetadata

__all__ = [
    "AlreadyExists", "Attempt", "Cache", "Change", "CommitRaced", "DeletesFragment", "Entry", "FileChange",
    "FolderCatalog", "FolderMetadata", "Location", "Newest", "ObjectStore", "ParquetSinkProvider", "PositionDeletes",
    "RowChanges", "Stat", "TableAttempt", "TableCommits", "TableVersion", "VersionAttempt", "VersionedMetadata",
    "after_commit", "asking_again", "commit_change", "commit_loop", "commit_point",
    "commit_result", "commit_unknown", "definition_after", "delete_around", "delete_orphans", "folders_of",
    "identity_only", "next_timestamp_ms", "no_such_version", "no_table", "oldest_needed", "on_newest", "order_with",
    "repair_preview", "repair_result", "stamped", "stamps_missing", "table_taken", "version_at", "with_txn",
    "write_target",
]  # fmt: skip

_PLACES: Final = {
    "trinity.spi": ("no_such_version", "version_at"),
    "trinity.storage.cache": ("Cache",),
    "trinity.storage.commits": (
        "Attempt", "Change", "CommitRaced", "Newest", "RowChanges", "commit_change", "commit_loop", "commit_result",
        "definition_after", "next_timestamp_ms", "on_newest", "order_with", "stamps_missing", "with_txn",
    ),
    "trinity.storage.conflicts": ("FileChange",),
    "trinity.storage.entries": ("Entry", "Stat"),
    "trinity.storage.errors": ("AlreadyExists", "after_commit", "asking_again", "commit_unknown"),
    "trinity.storage.folder_names": ("no_table", "table_taken"),
    "trinity.storage.folders": ("FolderCatalog", "FolderMetadata", "folders_of"),
    "trinity.storage.location": ("Location",),
    "trinity.storage.orphans": ("delete_around", "delete_orphans"),
    "trinity.storage.partitioned_sink": ("identity_only",),
    "trinity.storage.position_deletes": ("DeletesFragment", "PositionDeletes"),
    "trinity.storage.readable": ("oldest_needed", "repair_preview", "repair_result"),
    "trinity.storage.sinks": ("ParquetSinkProvider", "stamped", "write_target"),
    "trinity.storage.store": ("ObjectStore", "commit_point"),
    "trinity.storage.table_commits": ("TableAttempt", "TableCommits"),
    "trinity.storage.versions": ("TableVersion", "VersionAttempt", "VersionedMetadata"),
}  # fmt: skip
"""Module -> the exported names that it defines."""

if not TYPE_CHECKING:  # with this function mypy would accept any name of the module

    def __getattr__(name: str) -> object:
        """Load a name when it is first used, so that two threads that import modules do not wait for each other."""
        from importlib import import_module

        for module, names in _PLACES.items():
            if name in names:
                globals()[name] = found = getattr(import_module(module), name)
                return found
        raise AttributeError(f"module 'trinity.storage' has no attribute '{name}'")

    def __dir__() -> list[str]:
        return sorted(__all__)
