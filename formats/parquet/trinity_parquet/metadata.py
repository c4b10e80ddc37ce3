"""Names, versions and commits of a catalog of Parquet tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trinity.clock import now_ms
from trinity.errors import TrinityError
from trinity.spi import HistoryEntry, TableDefinition, TableHandle
from trinity.storage import (
    Entry,
    FileChange,
    FolderMetadata,
    Location,
    ObjectStore,
    TableVersion,
    VersionedMetadata,
    after_commit,
    folders_of,
    identity_only,
)
from trinity.storage.commits import COMMIT_TIMEOUT_S, checkpoint_step
from trinity_parquet.commit import delete_log, put_manifest, write_checkpoint, write_hint
from trinity_parquet.manifest import Manifest, begins, manifest_name, read_json
from trinity_parquet.snapshot import Snapshots, is_table

_LOGS: Final = {"_delta_log": ".json", "metadata": ".metadata.json"}
"""Folder in which Delta or Iceberg keeps a table's log, below the table's folder -> ending of the log's files."""


class ParquetMetadata(FolderMetadata, VersionedMetadata):
    """The metadata of a catalog of Parquet tables. The base classes append, change rows and compact."""

    keeps_deletes = True

    def __init__(self, catalog: str, warehouse: str, checkpoint_interval: int) -> None:
        super().__init__(folders_of(catalog, warehouse, is_table))
        self._snapshots = Snapshots()
        self._interval = checkpoint_interval

    # -- tables -----------------------------------------------------------------------------------------

    def create_table(self, definition: TableDefinition) -> TableHandle:
        identity_only(definition, "Parquet")
        first = TableVersion.first(definition)
        made = self.make_named(definition.schema, definition.name, lambda table: self.commit_version(table, first))
        return made.pinned(None, first.definition.id)

    def drop_table(self, table: TableHandle) -> None:
        _check_alone(table, "A drop")
        super().drop_table(table)

    def left_by_trinity(self, table: TableHandle) -> bool:
        return is_table(Location.of(table.location))

    # -- versions ---------------------------------------------------------------------------------------

    def newest_version(self, table: TableHandle) -> int:
        return self._snapshots.newest(table)

    def load_version(self, table: TableHandle) -> TableVersion:
        return self._snapshots.load(table)

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        return self._snapshots.read(table, number)

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        store = ObjectStore(table.location)
        before = None if begins(version) else self.read_version(table, version.number - 1)
        if before and version.oldest > before.oldest:
            # the oldest readable version must not need the manifests before it
            write_checkpoint(store, self.read_version(table, version.oldest))
        put_manifest(store, Manifest.between(before, version))

    def commit_version(self, table: TableHandle, version: TableVersion) -> None:
        self.write_version(table, version)  # the store says how much of it is committed
        after_commit(f"Version {version.number} will be read back", lambda: self._snapshots.keep(table, version))
        if version.number % checkpoint_step(self._interval, len(version.files)) == 0 and not begins(version):
            store = ObjectStore(table.location)
            after_commit(f"Version {version.number} has no checkpoint", lambda: write_checkpoint(store, version))
            after_commit(f"Version {version.number} is found by counting", lambda: write_hint(store, version.number))

    def forget_cached(self, table: TableHandle) -> None:
        self._snapshots.forget(table)

    def is_damaged(self, table: TableHandle, number: int) -> bool:
        try:
            read_json(ObjectStore(table.location), manifest_name(number))
        except (FileNotFoundError, TrinityError):
            return True
        return False

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        newest = self.load_version(replace(table, version=None))
        return self._snapshots.history(table, newest.oldest, newest.number)

    def changes_since(self, pinned: TableHandle, newest: TableVersion) -> list[FileChange] | None:
        return self._snapshots.changes(pinned, newest)

    # -- maintenance ------------------------------------------------------------------------------------

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        _check_alone(table, "A vacuum")
        gone = super().delete_unneeded(table, older_than_ms)
        oldest = self.load_version(table).oldest
        if self._snapshots.stands_alone(table, oldest):
            # a slow commit may still try a number that was taken within the last minutes: its manifest has to stay
            limit = min(older_than_ms, now_ms() - int(COMMIT_TIMEOUT_S * 1000))
            delete_log(ObjectStore(table.location), oldest, limit)
        return gone


def _check_alone(table: TableHandle, what: str) -> None:
    """Check that no table of another format has files in the folder too, as after CONVERT TO DELTA.

    Args:
        table: the table whose files are about to be removed.
        what: the statement that removes them, as the message names it.

    Raises:
        TrinityError: NOT_SUPPORTED.
    """
    store = ObjectStore(table.location)
    for folder, ending in _LOGS.items():
        if any(name.endswith(ending) for name in store.names(folder)):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"{what} would take files that another table needs: the folder of table '{table.full_name}' is one of "
                f"another engine's as well, whose log is in '{store.path(folder)}'. Copy that table elsewhere and "
                "delete this folder; or delete '_trinity', and the files are that table's alone.",
            )
