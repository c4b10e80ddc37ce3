"""A version of a table, for formats that store a list of files for each version."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trinity.spi import DataFile, TableDefinition, Tier
from trinity.storage.commits import Change, definition_after, next_timestamp_ms, with_txn

__all__ = ["TableVersion"]


@dataclass(frozen=True)
class TableVersion:
    """A table at one version: all that a format has to store.

    Attributes:
        number: what ``version=`` takes; 0 is the empty table, and each next version is higher by 1.
        timestamp_ms: commit time, milliseconds since the epoch (L10).
        operation: the operation that made it, as in :class:`~trinity.spi.HistoryEntry`.
        definition: columns, key, properties.
        files: live base and log files and the sidecar, each with its commit number; absolute paths.
        txns: application -> highest recorded version (L4).
        oldest: the oldest version that vacuum left readable.
        commit: unique id, stored with the version. By it a writer recognises its own version after an unclear answer.
    """

    number: int
    timestamp_ms: int
    operation: str
    definition: TableDefinition
    files: tuple[DataFile, ...] = ()
    txns: Mapping[str, int] = field(default_factory=dict)
    oldest: int = 0
    commit: str = ""

    @classmethod
    def first(cls, definition: TableDefinition) -> TableVersion:
        """Return version 0 of a new table."""
        return cls(0, next_timestamp_ms(0), "create", definition.with_new_id(), commit=uuid.uuid4().hex)

    @property
    def version(self) -> int:
        """The number, by the name that commits ask for it."""
        return self.number

    def after(self, change: Change) -> TableVersion:
        """Return the next version, with what a statement commits."""
        marks = {made.of: made.deletes for made in change.deletes}
        kept = [replace(f, deletes=marks[f.path]) if f.path in marks else f for f in self.files]
        gone = {f.path for f in kept if f.tier is Tier.SIDECAR} if change.replace_sidecar else frozenset[str]()
        files = (*(f for f in kept if f.path not in change.removed | gone), *change.files)
        definition = self.definition if change.merge is None else definition_after(change.merge, self.definition)
        return self.next(change.operation, definition=definition, files=files, txns=with_txn(self.txns, change.txn))

    def next(self, operation: str, **changed: Any) -> TableVersion:
        """Return the next version, with its own number, time and id.

        Args:
            operation: what makes it.
            changed: attributes that it has otherwise; the others stay.
        """
        number = self.number + 1
        made = replace(self, **changed)
        return replace(
            made,
            number=number,
            timestamp_ms=next_timestamp_ms(self.timestamp_ms),
            operation=operation,
            files=tuple(file.at_commit(number) for file in made.files),
            commit=uuid.uuid4().hex,
        )

    def difference(self, before: TableVersion) -> tuple[list[DataFile], frozenset[str]]:
        """Return the files added since an earlier version, and the paths of the removed ones.

        A file whose deleted rows changed counts as both.
        """
        if self.files[: len(before.files)] == before.files:  # an append: the same objects
            return list(self.files[len(before.files) :]), frozenset()
        known, now = ({f.path: f.deletes for f in version.files} for version in (before, self))
        added = [f for f in self.files if known.get(f.path, f) != f.deletes]
        return added, frozenset(path for path, deletes in known.items() if now.get(path, path) != deletes)
