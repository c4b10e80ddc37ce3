"""Metadata of a format that stores a list of files for each version: everything except how a version is stored.

An adapter adds three methods: one returns the number of the newest version, one reads a version, one writes the next.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import (
    KEEPS_ROWS,
    CommitOperation,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RepairResult,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    Tier,
    WriteTarget,
    storage_schema,
    version_at,
)
from trinity.storage.commits import (
    Change,
    CommitRaced,
    commit_loop,
    commit_result,
    definition_after,
    next_timestamp_ms,
    on_newest,
    with_txn,
)
from trinity.storage.conflicts import FileChange
from trinity.storage.entries import Entry
from trinity.storage.errors import commit_unknown
from trinity.storage.folder_names import table_taken
from trinity.storage.orphans import delete_orphans
from trinity.storage.readable import (
    newest_readable,
    repair_preview,
    repair_result,
)
from trinity.storage.sinks import write_target
from trinity.storage.store import ObjectStore
from trinity.storage.table_commits import TableAttempt, TableCommits


@dataclass(frozen=True)
class TableVersion:
    """A table at one version, with all facts that a format has to store.

    Attributes:
        number: what ``version=`` takes; 0 is the empty table, and each next version is higher by 1.
        timestamp_ms: commit time, milliseconds since the epoch (L10).
        operation: the operation that made it, as in :class:`~trinity.spi.HistoryEntry`.
        definition: columns, key, properties.
        files: live base and log files and the sidecar, each with its commit number; absolute paths.
        txns: application -> highest recorded version (L4).
        oldest: the oldest version that vacuum left readable.
        commit: unique id, stored with the version, by which a writer recognises its own version after an unclear
            answer.
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
        return cls(0, next_timestamp_ms(0), CommitOperation.CREATE, definition.with_new_id(), commit=uuid.uuid4().hex)

    @property
    def version(self) -> int:
        """The number, under the name that commits use (:class:`~trinity.storage.Newest`)."""
        return self.number

    def after(self, change: Change) -> TableVersion:
        """Return the next version, with the change that a statement commits."""
        marks = {made.of: made.deletes for made in change.deletes}
        kept = [replace(f, deletes=marks[f.path]) if f.path in marks else f for f in self.files]
        gone = {f.path for f in kept if f.tier is Tier.SIDECAR} if change.replace_sidecar else frozenset[str]()
        files = (*(f for f in kept if f.path not in change.removed | gone), *change.files)
        definition = self.definition if change.merge is None else definition_after(change.merge, self.definition)
        return self.next(change.operation, definition=definition, files=files, txns=with_txn(self.txns, change.txn))

    def next(self, operation: CommitOperation, **changed: Any) -> TableVersion:
        """Return the next version, with its own number, time and id.

        Args:
            operation: the operation that makes it.
            changed: new values of attributes; the others stay.
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

    def splits(self, storage: pa.Schema) -> SplitSource:
        """Return the files for a read, with statistics and partition values under the columns' names.

        Args:
            storage: the physical schema of the files.
        """
        files = [file.renamed(self.definition.stored_names) for file in self.files]
        return SplitSource(
            self.number,
            self.timestamp_ms,
            self.definition,
            storage,
            tuple(f for f in files if f.tier is not Tier.SIDECAR),
            tuple(f for f in files if f.tier is Tier.SIDECAR),
            commit=self.commit,
        )

    def difference(self, before: TableVersion) -> tuple[list[DataFile], frozenset[str]]:
        """Return the files added since an earlier version, and the paths of the removed files.

        A file whose deleted rows changed counts as both.
        """
        if self.files[: len(before.files)] == before.files:  # only appends came since; equal files are the same objects
            return list(self.files[len(before.files) :]), frozenset()
        known, now = ({f.path: f.deletes for f in version.files} for version in (before, self))
        added = [f for f in self.files if known.get(f.path, f) != f.deletes]
        return added, frozenset(path for path, deletes in known.items() if now.get(path, path) != deletes)


class VersionAttempt(TableAttempt[TableVersion]):
    """An attempt at a commit in a format whose versions are :class:`TableVersion`.

    An adapter adds how a version is loaded and committed, what changed since a version, and how versions are forgotten.
    """

    @abstractmethod
    def load_version(self, table: TableHandle) -> TableVersion:
        """Return the handle's version, or the newest. Raises INVALID_ARGUMENTS for one that cannot be read (L10)."""

    @abstractmethod
    def commit_version(self, version: TableVersion) -> None:
        """Make the next version readable, whole or not at all (L6). Raises as :meth:`~trinity.storage.Attempt.put`."""

    def put_version(self, version: TableVersion) -> int:
        """Commit the next version and return its number. Raises as :meth:`~trinity.storage.Attempt.put`."""
        self.commit_version(version)
        return version.number

    def live(self) -> Collection[DataFile]:
        return self.newest.files

    def put(self, change: Change) -> int:
        return self.put_version(self.newest.after(change))

    def redefine(self, definition: TableDefinition) -> int:
        return self.put_version(self.newest.next(CommitOperation.ALTER, definition=definition))

    def at(self, version: int | None) -> TableVersion:
        return self.load_version(replace(self.table, version=version))

    def files(self, version: TableVersion) -> Collection[DataFile]:
        return version.files

    def restore(self, then: TableVersion, definition: TableDefinition) -> int | None:
        if (then.files, definition) == (self.newest.files, self.newest.definition):
            return None
        return self.put_version(self.newest.next(CommitOperation.RESTORE, definition=definition, files=then.files))


_T = TypeVar("_T")


class VersionedMetadata(TableCommits):
    """Base class of metadata that implements the SPI's reads and writes over versions, which the adapter stores.

    An adapter adds the names of its tables, ``create_table`` (see :meth:`make_table`), ``drop_table`` (see
    :class:`~trinity.storage.FolderMetadata`), and the three abstract methods. It may override the others.
    """

    keeps_deletes: ClassVar[bool] = False
    """True for an adapter whose versions store each file's :attr:`~trinity.spi.DataFile.deletes` (R1)."""

    @abstractmethod
    def newest_version(self, table: TableHandle) -> int:
        """Return the number of the newest version, whoever committed it. Raises TABLE_NOT_FOUND."""

    @abstractmethod
    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        """Read a version. Versions never change, so an adapter may cache them.

        Raises:
            TrinityError: BAD_DATA naming a corrupt or missing file.
        """

    @abstractmethod
    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        """Make a version readable, whole or not at all: the one atomic step of a commit (L6).

        Raises:
            CommitRaced: another writer took the number; the commit is checked again and retried under the next one.
            TrinityError: COMMIT_STATE_UNKNOWN if nobody can say whether it took effect, as for ``put_if_absent``.
        """

    def storage_schema(self, definition: TableDefinition) -> pa.Schema:
        """Return the physical Arrow schema of the files: Trinity's types as they are, unless the format lacks some.

        All fields are nullable: the engine checks NOT NULL when it writes.
        """
        return storage_schema(definition)

    def load_version(self, table: TableHandle) -> TableVersion:
        """Return the handle's version, or the newest. Raises INVALID_ARGUMENTS for one that cannot be read (L10)."""
        return version_at(table, self.newest_version(table), partial(self.read_version, table))

    def commit_version(self, table: TableHandle, version: TableVersion) -> None:
        """Write a version. After an error read it back: if it exists and this writer wrote it, it is committed.

        An adapter whose ``write_version`` always reports the true outcome may skip the check.

        Raises:
            CommitRaced, TrinityError: as :meth:`write_version`.
        """
        try:
            self.write_version(table, version)
        except (CommitRaced, TrinityError) as failure:
            if isinstance(failure, TrinityError) and failure.code == "COMMIT_STATE_UNKNOWN":
                raise
            try:
                stands = self.has_version(table, version)
            except TrinityError as error:
                what = f"Version {version.number} of table '{table.full_name}'"
                raise commit_unknown(what, f"{failure} It cannot be read: {error.message}") from failure
            if not stands:
                raise

    def has_version(self, table: TableHandle, version: TableVersion) -> bool:
        """Return whether a version exists and this writer wrote it.

        Raises:
            TrinityError: FILESYSTEM_ERROR, PERMISSION_DENIED when it cannot be read.
        """
        try:
            return self.read_version(table, version.number).commit == version.commit
        except LookupError:
            return False
        except TrinityError as error:
            if error.code in ("FILESYSTEM_ERROR", "PERMISSION_DENIED"):
                raise
            return False

    def forget_cached(self, table: TableHandle) -> None:
        """Drop cached versions, for a repair, which must read from storage."""

    # -- tables -----------------------------------------------------------------------------------------

    def make_table(self, table: TableHandle, definition: TableDefinition) -> TableHandle:
        """Commit version 0 of a table. Raises TABLE_ALREADY_EXISTS when another writer made it meanwhile."""
        first = TableVersion.first(definition)
        try:
            self.commit_version(table, first)
        except CommitRaced as taken:
            raise table_taken(table.full_name) from taken
        return table.pinned(None, first.definition.id)

    def left_by_trinity(self, table: TableHandle) -> bool:
        return True

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        return self.load_version(table).definition

    def get_splits(self, table: TableHandle) -> SplitSource:
        at = self.load_version(table)
        return at.splits(self.storage_schema(at.definition))

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        versions = self._readable(table)
        before = None if versions[0].number else replace(versions[0], files=())
        return [_entry(version, previous) for previous, version in zip([before, *versions], versions, strict=False)]

    def changes_since(self, pinned: TableHandle, newest: TableVersion) -> list[FileChange] | None:
        """Return the changes committed since a version, without compactions; None once vacuum forgot that version."""
        first = pinned.version or 0
        if first < newest.oldest:
            return None
        versions = [self.read_version(pinned, n) for n in range(first, newest.number)]
        found = []
        for before, after in pairwise([*versions, newest]):
            if after.operation not in KEEPS_ROWS:
                added, removed = after.difference(before)
                found.append(FileChange(after.number, added, bool(removed)))
        return found

    # -- writes -----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle, after: TableDefinition | None = None) -> InsertTableHandle:
        at = self.load_version(table)
        pinned, definition = table.pinned(at.number, at.definition.id), after or at.definition
        return InsertTableHandle(pinned, definition, self._target(table, definition))

    def begin_insert_after(self, table: TableHandle, after: TableDefinition) -> InsertTableHandle:
        return self.begin_insert(table, after)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._newest(table).txns.get(application)

    # -- compaction and maintenance ---------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        at = self.load_version(table)
        pinned = table.pinned(at.number, at.definition.id)
        return RewriteTableHandle(pinned, at.definition, self._target(table, at.definition), tuple(replaced))

    def begin_resolve(
        self, table: TableHandle, replaced: Sequence[DataFile], kept: Sequence[DataFile]
    ) -> RewriteTableHandle:
        if not self.keeps_deletes:
            return super().begin_resolve(table, replaced, kept)
        return replace(self.begin_rewrite(table, replaced), kept=tuple(kept))

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        needed = {path for version in self._readable(table) for file in version.files for path in file.needs}
        self._newest(table)  # raises if the name now belongs to another table: ``needed`` lacks that table's files
        return delete_orphans(ObjectStore(table.location), needed, older_than_ms)

    def repair(self, table: TableHandle, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        def attempt() -> RepairResult:
            self.forget_cached(table)
            newest = self.newest_version(table)
            found, lost = newest_readable(
                table, newest, partial(self.read_version, table), partial(self.is_damaged, table)
            )
            if preview := repair_preview(table, found.number, lost, version, dry_run=dry_run):
                return preview
            at, number = next_timestamp_ms(found.timestamp_ms), newest + 1
            repaired = replace(found, number=number, timestamp_ms=at, operation=CommitOperation.REPAIR, oldest=number)
            made = replace(repaired, commit=uuid.uuid4().hex)
            done = commit_result(number, made.files)  # before the commit: it may read footers
            self.commit_version(table, made)
            return repair_result(done, found.number, lost)

        return commit_loop(table.location, attempt)

    def is_damaged(self, table: TableHandle, number: int) -> bool:
        """Return whether an unreadable version is damaged itself, and not only built on a damaged one."""
        return True

    # -- helpers ----------------------------------------------------------------------------------------

    def _newest(self, table: TableHandle) -> TableVersion:
        return self.load_version(replace(table, version=None))

    def _readable(self, table: TableHandle) -> list[TableVersion]:
        """Return the readable versions, oldest first."""
        newest = self._newest(table)
        return [*(self.read_version(table, n) for n in range(newest.oldest, newest.number)), newest]

    def _target(self, table: TableHandle, definition: TableDefinition) -> WriteTarget:
        return write_target(table.location, definition, self.storage_schema(definition))

    def run_attempts(
        self, table: TableHandle, use: Callable[[TableAttempt[Any]], _T], known: TableDefinition | None = None
    ) -> _T:
        """Run attempts at a commit; see :meth:`~trinity.storage.table_commits.TableCommits.run_attempts`."""
        known = known or self._newest(table).definition
        return on_newest(table, known, lambda newest: use(_Attempt(newest, self._newest(newest), self)))


@dataclass(frozen=True)
class _Attempt(VersionAttempt):
    """An attempt at a commit of a version, which ``metadata`` writes."""

    metadata: VersionedMetadata

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        return self.metadata.changes_since(merge.table, self.newest)

    def load_version(self, table: TableHandle) -> TableVersion:
        return self.metadata.load_version(table)

    def commit_version(self, version: TableVersion) -> None:
        self.metadata.commit_version(self.table, version)

    def forget(self, oldest: int, older_than_ms: int) -> int | None:
        if oldest <= self.newest.oldest:
            return None
        return self.put_version(self.newest.next(CommitOperation.VACUUM, oldest=oldest))


def _entry(version: TableVersion, before: TableVersion | None) -> HistoryEntry:
    """Return the entry of ``history()`` for a version; ``before`` is None if the version before cannot be read."""
    facts = {}
    if before is not None:
        added, removed = version.difference(before)
        rows = sum(f.rows for f in added)
        facts = {"added_files": len(added), "added_rows": rows, "removed_files": len(removed)}
    return HistoryEntry(version.number, version.timestamp_ms, version.operation, facts, version.commit)
