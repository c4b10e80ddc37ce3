"""A version of a table whose format keeps, for each, a list of files."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from trinity.spi import DataFile, TableDefinition
from trinity.storage.commits import next_timestamp_ms

__all__ = ["TableVersion"]


@dataclass(frozen=True)
class TableVersion:
    """A table at one version: all that a format has to keep.

    Attributes:
        number: what ``version=`` takes; 0 is the empty table, the next one is higher by 1.
        timestamp_ms: commit time, milliseconds since the epoch (L10).
        operation: what made it, as in :class:`~trinity.spi.HistoryEntry`.
        definition: columns, key, properties.
        files: live base and log files and the sidecar, each with its commit number; absolute paths.
        txns: application -> highest recorded version (L4).
        oldest: the oldest version that vacuum left readable.
        commit: unique, kept with the version: by it a writer knows its own when the answer was not clear.
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
        """Version 0 of a new table."""
        return cls(0, next_timestamp_ms(0), "create", definition.made(), commit=uuid.uuid4().hex)

    def difference(self, before: TableVersion) -> tuple[list[DataFile], frozenset[str]]:
        """The files that came since an earlier version, and the paths of those that went.

        One that has other deleted rows came and went.
        """
        if self.files[: len(before.files)] == before.files:  # an append: the same objects
            return list(self.files[len(before.files) :]), frozenset()
        known, now = ({f.path: f.deletes for f in version.files} for version in (before, self))
        added = [f for f in self.files if known.get(f.path, f) != f.deletes]
        return added, frozenset(path for path, deletes in known.items() if now.get(path, path) != deletes)
