"""Metadata of a format that keeps, for each version, a list of files: everything but how a version is kept.

A format that can read a version and put the next one if nobody else has is an adapter with three methods more.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import ClassVar

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.merge.options import commit_timeout_s
from trinity.spi import (
    CommitResult,
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
    TransactionId,
    VacuumResult,
    WriteTarget,
    from_fragments,
    from_merge_fragments,
    stored_field,
)
from trinity.storage.commits import CommitRaced, commit_loop, next_timestamp_ms
from trinity.storage.errors import commit_unknown
from trinity.storage.name_errors import table_taken
from trinity.storage.orphans import check_present, delete_around, delete_orphans
from trinity.storage.position_deletes import deletes_of_fragments
from trinity.storage.readable import oldest_needed, version_at
from trinity.storage.repairs import newest_readable, only_told, repair_result
from trinity.storage.row_changes import KEEPS_ROWS, FileChange, RowChanges, check_kept, check_replaced, check_scope
from trinity.storage.store import Entry, ObjectStore
from trinity.storage.table_version import TableVersion
from trinity.storage.targets import commit_result, write_target
from trinity.storage.txns import is_recorded, with_txn

__all__ = ["VersionedMetadata"]

Change = Callable[[TableVersion], TableVersion | None]
"""Makes the next version of the newest one, its number and time left as they are; None for no commit."""


class VersionedMetadata(RowChanges):
    """The SPI from begin to finish, over versions that the adapter reads and writes.

    An adapter adds the names of its tables, ``create_table`` (see :meth:`make_table`) and ``drop_table`` (see
    :class:`~trinity.storage.FolderMetadata`), and the three methods that follow. The others it may override.
    """

    keeps_deletes: ClassVar[bool] = False
    """True for an adapter that keeps with a version each file's :attr:`~trinity.spi.DataFile.deletes` (R1)."""

    @abstractmethod
    def newest_version(self, table: TableHandle) -> int:
        """Number of the newest version, by whoever committed it. Raises TABLE_NOT_FOUND."""

    @abstractmethod
    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        """A version that was written, and never changes: an adapter may keep those that it has read.

        Raises:
            TrinityError: BAD_DATA naming a corrupt or missing file.
        """

    @abstractmethod
    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        """Makes a version readable, whole or not at all: the one atomic step of a commit (L6).

        Raises:
            CommitRaced: another writer took the number; the commit is checked again and tried under the next one.
            TrinityError: COMMIT_STATE_UNKNOWN when nobody can say whether it is readable, as ``put_if_absent`` does.
        """

    def storage_schema(self, definition: TableDefinition) -> pa.Schema:
        """Physical Arrow schema of the files: Trinity's types as they are, unless the format lacks some.

        All nullable: the engine checks NOT NULL when it writes.
        """
        return pa.schema([stored_field(c, c.to_arrow().type) for c in definition.columns])

    def load_version(self, table: TableHandle) -> TableVersion:
        """The handle's version, or the newest. Raises INVALID_ARGUMENTS for one that cannot be read (L10)."""
        return version_at(table, self.newest_version(table), partial(self.read_version, table))

    def commit_version(self, table: TableHandle, version: TableVersion) -> None:
        """Write a version; whatever the answer is, one that is there and ours stands. Raises as :meth:`write_version`.

        An adapter whose ``write_version`` tells nothing but what is so may leave out the look.
        """
        try:
            self.write_version(table, version)
        except (CommitRaced, TrinityError) as said:
            if isinstance(said, TrinityError) and said.code == "COMMIT_STATE_UNKNOWN":
                raise
            try:
                stands = self.has_version(table, version)
            except TrinityError as error:
                what = f"Version {version.number} of table '{table.full_name}'"
                raise commit_unknown(what, f"{said} It cannot be read: {error.message}") from said
            if not stands:
                raise

    def has_version(self, table: TableHandle, version: TableVersion) -> bool:
        """Return True when a version is there that this writer has written.

        Raises:
            TrinityError: FILESYSTEM_ERROR, PERMISSION_DENIED where it cannot be asked.
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
        """Forgets the versions that were read, for a repair, which asks storage what can be read."""

    # -- tables -----------------------------------------------------------------------------------------

    def make_table(self, table: TableHandle, definition: TableDefinition) -> TableHandle:
        """Commits version 0 of a table. Raises TABLE_ALREADY_EXISTS for one that another has made meanwhile."""
        try:
            self.commit_version(table, TableVersion.first(definition))
        except CommitRaced as taken:
            raise table_taken(table.full_name) from taken
        return table

    def left_by_trinity(self, table: TableHandle) -> bool:
        return True

    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> None:
        def alter(newest: TableVersion) -> TableVersion | None:
            changed = change(newest.definition)
            return None if changed == newest.definition else replace(newest, operation="alter", definition=changed)

        self._commit(table, alter)

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        return self.load_version(table).definition

    def get_splits(self, table: TableHandle) -> SplitSource:
        at = self.load_version(table)
        files = [f.renamed(at.definition.stored_names) for f in at.files]
        return SplitSource(
            at.number,
            at.timestamp_ms,
            at.definition,
            self.storage_schema(at.definition),
            tuple(f for f in files if f.tier is not Tier.SIDECAR),
            tuple(f for f in files if f.tier is Tier.SIDECAR),
            commit=at.commit,
        )

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return [_entry(version) for version in self._readable(table)]

    def changes_since(self, pinned: TableHandle, newest: TableVersion) -> list[FileChange] | None:
        """The changes committed since a version, compactions left out; None once vacuum has forgotten that version."""
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

    # -- appends ----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        at = self.load_version(table)
        pinned = table.pinned(at.number, at.definition.id)
        return InsertTableHandle(pinned, at.definition, self._target(table, at))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        files = from_fragments(list(fragments))

        def append(newest: TableVersion) -> TableVersion | None:
            if is_recorded(newest.txns, txn):
                return None
            check_present(insert.table, files)
            insert.check_demands(newest.definition)
            return replace(newest, operation="append", files=(*newest.files, *files), txns=with_txn(newest.txns, txn))

        if not files and txn is None:
            return CommitResult(self._newest(insert.table).number)
        version, committed = self._commit(insert.table, append, insert.definition)
        return commit_result(version.number, files) if committed else CommitResult(version.number, skipped=True)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._newest(table).txns.get(application)

    # -- row changes ------------------------------------------------------------------------------------

    def finish_merge(
        self,
        merge: MergeTableHandle,
        sources: Sequence[TableHandle],
        fragments: Sequence[bytes],
        txn: TransactionId | None = None,
    ) -> CommitResult:
        files, gone = from_merge_fragments(fragments)

        def change(newest: TableVersion) -> TableVersion | None:
            if is_recorded(newest.txns, txn):
                return None
            check_present(merge.table, files)
            merge.insert.check_demands(newest.definition)
            check_scope(merge, self.changes_since(merge.table, newest), {f.path for f in newest.files}, gone)
            kept = [f for f in newest.files if f.path not in gone]
            return replace(newest, operation="merge", files=(*kept, *files), txns=with_txn(newest.txns, txn))

        version, committed = self._commit(merge.table, change, merge.insert.definition)
        return commit_result(version.number, files) if committed else CommitResult(version.number, skipped=True)

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        removed: list[DataFile] = []

        def change(newest: TableVersion) -> TableVersion | None:
            removed[:] = newest.files
            if is_recorded(newest.txns, txn) or not (txn or removed):
                return None
            return replace(newest, operation="truncate", files=(), txns=with_txn(newest.txns, txn))

        version, committed = self._commit(table, change)
        if txn and not committed:
            return CommitResult(version.number, skipped=True)
        return commit_result(version.number, removed)

    # -- compaction and care ----------------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        at = self.load_version(table)
        pinned = table.pinned(at.number, at.definition.id)
        return RewriteTableHandle(pinned, at.definition, self._target(table, at), tuple(replaced))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        files = from_fragments(list(fragments))
        replaced = {f.path for f in rewrite.replaced}

        def swap(newest: TableVersion) -> TableVersion:
            check_present(rewrite.table, files)
            check_replaced(rewrite, newest.files)
            aside = {f.path for f in newest.files if f.tier is Tier.SIDECAR} if replace_sidecar else set()
            kept = [f for f in newest.files if f.path not in replaced | aside]
            return replace(newest, operation="compact", files=(*kept, *files))

        version, _ = self._commit(rewrite.table, swap, rewrite.definition)
        return commit_result(version.number, files)

    def begin_resolve(
        self, table: TableHandle, replaced: Sequence[DataFile], kept: Sequence[DataFile]
    ) -> RewriteTableHandle:
        if not self.keeps_deletes:
            return super().begin_resolve(table, replaced, kept)
        return replace(self.begin_rewrite(table, replaced), kept=tuple(kept))

    def finish_resolve(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], deletes: Sequence[bytes]
    ) -> CommitResult:
        files, marks = from_fragments(list(fragments)), {f.of: f for f in deletes_of_fragments(deletes)}
        replaced = {f.path for f in rewrite.replaced}

        def swap(newest: TableVersion) -> TableVersion:
            check_present(rewrite.table, files, (path for f in marks.values() for path in f.deletes.paths))
            check_replaced(rewrite, newest.files)
            check_kept(rewrite, newest.files, marks.keys())
            kept = [f for f in newest.files if f.path not in replaced and f.tier is not Tier.SIDECAR]
            marked = [replace(f, deletes=marks[f.path].deletes) if f.path in marks else f for f in kept]
            return replace(newest, operation="resolve", files=(*marked, *files))

        version, _ = self._commit(rewrite.table, swap, rewrite.definition)
        return commit_result(version.number, files, marks.values())

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        table = table.pinned(None, self._newest(table).definition.id)
        oldest = oldest_needed(self.history(table), older_than_ms)

        def forget(newest: TableVersion) -> TableVersion | None:
            return replace(newest, operation="vacuum", oldest=oldest) if oldest > newest.oldest else None

        gone = delete_around(lambda: self.delete_unneeded(table, older_than_ms), lambda: self._commit(table, forget)[1])
        return VacuumResult(len(gone), sum(e.size for e in gone), oldest)

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        """Deletes the data files that no readable version needs, and returns them."""
        needed = {path for version in self._readable(table) for file in version.files for path in file.needs}
        self._newest(table)  # or another table has the name now, and these are not its files
        return delete_orphans(ObjectStore(table.location), needed, older_than_ms)

    def repair(self, table: TableHandle, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        def attempt() -> RepairResult:
            self.forget_cached(table)
            newest = self.newest_version(table)
            found, lost = newest_readable(
                table, newest, partial(self.read_version, table), partial(self.is_damaged, table)
            )
            if told := only_told(table, found.number, lost, version, dry_run=dry_run):
                return told
            at, number = next_timestamp_ms(found.timestamp_ms), newest + 1
            made = replace(found, number=number, timestamp_ms=at, operation="repair", oldest=number)
            self.commit_version(table, replace(made, commit=uuid.uuid4().hex))
            return repair_result(commit_result(number, made.files), found.number, lost)

        return commit_loop(table.location, attempt)

    def is_damaged(self, table: TableHandle, number: int) -> bool:
        """Return True when a version that cannot be read is damaged itself, and not just built on one that is."""
        return True

    # -- helpers ----------------------------------------------------------------------------------------

    def _newest(self, table: TableHandle) -> TableVersion:
        return self.load_version(replace(table, version=None))

    def _readable(self, table: TableHandle) -> list[TableVersion]:
        """The readable versions, oldest first."""
        newest = self._newest(table)
        return [*(self.read_version(table, n) for n in range(newest.oldest, newest.number)), newest]

    def _target(self, table: TableHandle, at: TableVersion) -> WriteTarget:
        return write_target(table.location, at.definition, self.storage_schema(at.definition))

    def _commit(
        self, table: TableHandle, change: Change, known: TableDefinition | None = None
    ) -> tuple[TableVersion, bool]:
        """Reload, check, commit, until no other writer comes between: the newest version, and whether it is ours."""
        first = known or self._newest(table).definition
        pinned = table.pinned(None, first.id)

        def attempt() -> tuple[TableVersion, bool]:
            newest = self._newest(pinned)
            changed = change(newest)
            if changed is None:
                return newest, False
            made = replace(
                changed,
                number=newest.number + 1,
                timestamp_ms=next_timestamp_ms(newest.timestamp_ms),
                files=tuple(f.at_commit(newest.number + 1) for f in changed.files),
                commit=uuid.uuid4().hex,
            )
            self.commit_version(table, made)
            return made, True

        return commit_loop(table.location, attempt, commit_timeout_s(first.properties))


def _entry(version: TableVersion) -> HistoryEntry:
    facts = {"files": len(version.files), "rows": sum(f.rows for f in version.files)}
    return HistoryEntry(version.number, version.timestamp_ms, version.operation, facts, version.commit)
