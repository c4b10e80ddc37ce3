"""The steps of a commit of rows; the shared template takes them in their order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ledger_trinity.database import Database
from trinity.spi import DataFile, MergeTableHandle
from trinity.storage import Attempt, Change, FileChange, TableVersion


@dataclass(frozen=True)
class LedgerAttempt(Attempt[TableVersion]):
    """One attempt at a commit.

    Attributes:
        database: the database that stores versions.
    """

    database: Database

    def live(self) -> Collection[DataFile]:
        return self.newest.files

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        return self.database.changes(self.newest.definition.id, merge.table.version or 0)

    def put(self, change: Change) -> int:
        return self.put_version(self.newest.after(change))

    def put_version(self, made: TableVersion) -> int:
        """Put the next version, and return its number."""
        self.database.put(made.definition.id, self.newest, made)
        return made.number
