"""The steps of a commit of rows; the shared template takes them in their order."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace

from ledger_trinity.database import Database
from trinity.spi import DataFile, MergeTableHandle, Tier
from trinity.storage import Attempt, Change, FileChange, TableVersion, next_timestamp_ms, with_txn

__all__ = ["LedgerAttempt"]


@dataclass(frozen=True)
class LedgerAttempt(Attempt[TableVersion]):
    """One attempt at a commit.

    Attributes:
        database: where versions are put.
    """

    database: Database

    def live(self) -> Collection[DataFile]:
        return self.newest.files

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        return self.database.changes(self.newest.definition.id, merge.table.version or 0)

    def put(self, change: Change) -> int:
        marks = {made.of: made.deletes for made in change.deletes}
        kept = [replace(f, deletes=marks[f.path]) if f.path in marks else f for f in self.newest.files]
        sidecar = {f.path for f in kept if f.tier is Tier.SIDECAR} if change.replace_sidecar else set()
        files = (*(f for f in kept if f.path not in change.removed | sidecar), *change.files)
        txns = with_txn(self.newest.txns, change.txn)
        return self.put_version(replace(self.newest, operation=change.operation, files=files, txns=txns))

    def put_version(self, changed: TableVersion) -> int:
        """Put a changed version as the next one, with its own number, time and id; return its number."""
        number = self.newest.number + 1
        made = replace(
            changed,
            number=number,
            timestamp_ms=next_timestamp_ms(self.newest.timestamp_ms),
            files=tuple(file.at_commit(number) for file in changed.files),
            commit=uuid.uuid4().hex,
        )
        self.database.put(made.definition.id, self.newest, made)
        return number
