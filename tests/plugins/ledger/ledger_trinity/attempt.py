"""The steps of a commit; the shared templates take them in their order."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from ledger_trinity.database import Database
from trinity.spi import CommitOperation, DataFile, MergeTableHandle, TableDefinition, TableHandle
from trinity.storage import Change, FileChange, TableAttempt, TableVersion


@dataclass(frozen=True)
class LedgerAttempt(TableAttempt[TableVersion]):
    """One attempt at a commit.

    Attributes:
        database: the database that stores versions.
        load: returns the version of a handle.
    """

    database: Database
    load: Callable[[TableHandle], TableVersion]

    def live(self) -> Collection[DataFile]:
        return self.newest.files

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        return self.database.changes(self.newest.definition.id, merge.table.version or 0)

    def put(self, change: Change) -> int:
        return self._put(self.newest.after(change))

    def redefine(self, definition: TableDefinition) -> int:
        return self._put(self.newest.next(CommitOperation.ALTER, definition=definition))

    def at(self, version: int | None) -> TableVersion:
        return self.load(replace(self.table, version=version))

    def files(self, version: TableVersion) -> Collection[DataFile]:
        return version.files

    def restore(self, then: TableVersion, definition: TableDefinition) -> int | None:
        if (then.files, definition) == (self.newest.files, self.newest.definition):
            return None
        return self._put(self.newest.next(CommitOperation.RESTORE, definition=definition, files=then.files))

    def forget(self, oldest: int, older_than_ms: int) -> int | None:
        return self.newest.number if self.database.forget(self.newest.definition.id, oldest) else None

    def _put(self, made: TableVersion) -> int:
        self.database.put(made.definition.id, self.newest, made)
        return made.number
