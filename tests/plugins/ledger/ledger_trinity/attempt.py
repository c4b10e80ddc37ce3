"""The steps of a commit that need the database; the shared templates take all steps in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ledger_trinity.database import Database
from trinity.spi import MergeTableHandle, TableHandle
from trinity.storage import FileChange, TableVersion, VersionAttempt


@dataclass(frozen=True)
class LedgerAttempt(VersionAttempt):
    """One attempt at a commit.

    Attributes:
        database: the database that stores versions.
        load: returns the version of a handle.
    """

    database: Database
    load: Callable[[TableHandle], TableVersion]

    def load_version(self, table: TableHandle) -> TableVersion:
        return self.load(table)

    def commit_version(self, version: TableVersion) -> None:
        self.database.put(version.definition.id, self.newest, version)

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        return self.database.changes(self.newest.definition.id, merge.table.version or 0)

    def forget(self, oldest: int, older_than_ms: int) -> int | None:
        return self.newest.number if self.database.forget(self.newest.definition.id, oldest) else None
