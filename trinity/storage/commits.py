"""The commits of every adapter: what a statement writes is a change (S1-S6), which a loop of attempts commits (L7).

The checks of an attempt, the state of a table after a commit, and the log of commits are here, too.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from trinity.calls import current_work
from trinity.clock import monotonic_s, now_ms, now_ns
from trinity.errors import TrinityError
from trinity.loggers import logger
from trinity.merge.properties import commit_timeout_s
from trinity.merge.spec import merge_spec
from trinity.spi import (
    STAMP,
    CommitOperation,
    CommitResult,
    ConnectorMetadata,
    DataFile,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    RowChangeParadigm,
    RowOrder,
    TableDefinition,
    TableHandle,
    Tier,
    TransactionId,
    came_after,
    from_fragments,
    from_merge_fragments,
    row_change_stamp,
)
from trinity.storage.conflicts import FileChange, check_rewrite, check_scope, check_sidecar
from trinity.storage.errors import after_commit
from trinity.storage.folder_names import no_table
from trinity.storage.local_objects import folder_lock
from trinity.storage.parquet_files import live_rows_in
from trinity.storage.position_deletes import DeletesFragment, deletes_of_fragments
from trinity.storage.store import ObjectStore

COMMIT_TIMEOUT_S: Final = 600.0
"""Default of ``commit.retry.timeout``: the time for which a commit is retried, seconds."""

_T = TypeVar("_T")


class CommitRaced(Exception):
    """A failed attempt: another writer committed after the attempt had loaded the table. Load it and try again."""


class _FifoLock:
    """A lock that is given to waiting threads in the order in which they came, so that no writer starves."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._turns: deque[threading.Event] = deque()
        """The owner's event, which is set, and after it those of the waiting threads."""

    @contextmanager
    def taken(self, timeout_s: float | None = None) -> Iterator[bool]:
        """Hold the lock within the block, which gets False if the wait for it has taken ``timeout_s`` seconds."""
        turn = threading.Event()
        try:
            with self._mutex:
                self._turns.append(turn)
                self._turns[0].set()
            yield turn.wait(timeout_s)
        finally:  # also if the wait is interrupted, so that no turn goes to a thread that has left
            with self._mutex, suppress(ValueError):
                self._turns.remove(turn)
                if self._turns:
                    self._turns[0].set()


_locks: Final[WeakValueDictionary[str, _FifoLock]] = WeakValueDictionary()
"""The locks that threads have or wait for, by name."""
_locks_mutex = threading.Lock()


def _lock(name: str) -> _FifoLock:
    with _locks_mutex:
        return _locks.setdefault(name, _FifoLock())


class Retries:
    """The retries of a commit, or of a statement with the commits in it, which then have the statement's deadline.

    A statement may write for longer than the timeout, and still runs again if it then loses a race. So its time begins
    with its first commit, or with its first conflict.
    """

    def __init__(self) -> None:
        self._statement = _statement.get()
        self._deadline_s: float | None = None
        self._longest_pause_s = 0.005

    def begin(self, timeout_s: float) -> float:
        """Begin the time for retries, unless it has begun.

        Args:
            timeout_s: for how many seconds new attempts may begin.

        Returns:
            the seconds that are left; negative once the time is over.
        """
        if self._statement is not None:
            return self._statement.begin(timeout_s)
        now = monotonic_s()
        if self._deadline_s is None:
            self._deadline_s = now + timeout_s
        return self._deadline_s - now

    def pause(self, timeout_s: float) -> bool:
        """Pause before the next attempt; if the time is over, return False at once. ``timeout_s`` as for `begin`."""
        left_s = self.begin(timeout_s)
        if left_s <= 0:
            return False
        time.sleep(min(random.uniform(0, self._longest_pause_s), left_s))
        self._longest_pause_s = min(self._longest_pause_s * 2, 1.0)
        return True


_statement: ContextVar[Retries | None] = ContextVar("trinity retries", default=None)
"""The retries of the outermost statement under way."""


@contextmanager
def statement_retries() -> Iterator[Retries]:
    """Begin a statement, whose commits are those of the block. Its retries and theirs have one deadline."""
    retries = Retries()
    token = _statement.set(_statement.get() or retries)
    try:
        yield retries
    finally:
        _statement.reset(token)


def commit_loop(
    location: str, attempt: Callable[[], _T], timeout_s: float = COMMIT_TIMEOUT_S, *, exclusive: bool = False
) -> _T:
    """Run ``attempt`` until it does not raise :class:`CommitRaced`.

    ``attempt`` loads the newest version, checks it, and commits. Writers of this process take turns. Between attempts
    is a growing, random pause, so that writers of several processes do not collide again. While an attempt runs, no
    other process removes the table's folder.

    Args:
        location: the table's folder.
        attempt: makes one attempt; its result is returned.
        timeout_s: for how many seconds new attempts may begin. The commits of a statement that runs again on conflicts
            share this time with it.
        exclusive: True if ``attempt`` removes the folder: while it runs, no other process makes an attempt.

    Raises:
        TrinityError: TRANSACTION_CONFLICT once the time is over; and errors of ``attempt``.
    """
    retries, work = Retries(), current_work()
    retries.begin(timeout_s)
    with _lock(location).taken():
        while True:
            try:
                work.attempts += 1
                with folder_lock(location, exclusive=exclusive):
                    return attempt()
            except CommitRaced as raced:
                if not retries.pause(timeout_s):
                    raise _kept_losing("writers", location, timeout_s, f" Last conflict: {raced}.") from raced


@contextmanager
def statement_turn(location: str, timeout_s: float, retries: Retries) -> Iterator[None]:
    """Within the block, be the only statement of this process that runs again on a table after a conflict.

    Statements get their turns in the order in which they came. A statement reads before it commits, so without turns
    it would lose to faster writers again and again.

    Args:
        location: the table's folder.
        timeout_s: for how many seconds new attempts may begin.
        retries: the statement's retries.

    Raises:
        TrinityError: TRANSACTION_CONFLICT if the time for retries ends before the turn comes.
    """
    with _lock(f"{location} statement").taken(max(retries.begin(timeout_s), 0)) as in_time:
        if not in_time:
            raise _kept_losing("statements of this process", location, timeout_s)
        yield


def _kept_losing(others: str, location: str, timeout_s: float, last: str = "") -> TrinityError:
    return TrinityError(
        "TRANSACTION_CONFLICT",
        f"Other {others} kept committing to '{location}' for {timeout_s:g} s; try again later, "
        f"or raise 'commit.retry.timeout'.{last}",
    )


def next_timestamp_ms(previous_ms: int) -> int:
    """Return a commit time: now, but at least one millisecond after the previous commit (L10)."""
    return max(now_ms(), previous_ms + 1)


def checkpoint_step(interval: int, files: int) -> int:
    """Return how many commits lie between two checkpoints of a table.

    A checkpoint lists all files. So the step doubles each time the number of files doubles beyond 40 intervals. Then,
    however many files a table has, checkpoints cost each commit the listing of less than 40 files, and a reader opens
    at most one commit for every 20 files.

    Args:
        interval: the step for a small table, commits.
        files: the number of files of the table.
    """
    return interval << max(0, (files // (20 * interval)).bit_length() - 1)


@dataclass(frozen=True)
class Change:
    """A change that a statement commits, with the version of the table that the statement read.

    Attributes:
        operation: what the commit does to the table.
        table: the handle, pinned to the version that the statement read.
        files: new files in their order, sidecar files included.
        removed: paths of the files that the commit removes. :func:`commit_change` sets all live files for a truncation
            and for the replacement of a table.
        txn: the application's transaction id; None for a statement without one.
        insert: the handle of an append, a row change or the replacement of a table; else None.
        merge: the handle of a row change or the replacement of a table; else None.
        rewrite: the handle of a compaction; else None.
        deletes: row positions that the commit marks as deleted in files that stay (R1).
        replace_sidecar: True if the files of the present sidecar are removed.
    """

    operation: CommitOperation
    table: TableHandle
    files: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    txn: TransactionId | None = None
    insert: InsertTableHandle | None = None
    merge: MergeTableHandle | None = None
    rewrite: RewriteTableHandle | None = None
    deletes: Sequence[DeletesFragment] = ()
    replace_sidecar: bool = False

    @classmethod
    def of_insert(cls, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None) -> Change:
        """Return the change of an append; arguments as in ``finish_insert``."""
        return cls(CommitOperation.APPEND, insert.table, from_fragments(list(fragments)), txn=txn, insert=insert)

    @classmethod
    def of_merge(cls, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None) -> Change:
        """Return the change of a row change; arguments as in ``finish_merge``."""
        files, removed = from_merge_fragments(fragments)
        return cls(CommitOperation.MERGE, merge.table, files, removed, txn, insert=merge.insert, merge=merge)

    @classmethod
    def of_replace(cls, merge: MergeTableHandle, fragments: Sequence[bytes]) -> Change:
        """Return the change that replaces a table; arguments as in ``finish_replace``."""
        files = from_fragments(list(fragments))
        return cls(CommitOperation.REPLACE, merge.table, files, insert=merge.insert, merge=merge, replace_sidecar=True)

    @classmethod
    def of_rewrite(cls, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool) -> Change:
        """Return the change of a compaction; arguments as in ``finish_rewrite``."""
        files, removed = from_fragments(list(fragments)), frozenset(f.path for f in rewrite.replaced)
        made = cls(CommitOperation.COMPACT, rewrite.table, files, removed, rewrite=rewrite)
        return replace(made, replace_sidecar=replace_sidecar)

    @property
    def written(self) -> TableDefinition | None:
        """The definition under which the statement wrote its files; None for a truncation."""
        begun = self.rewrite or self.insert
        return begun.definition if begun else None

    @property
    def rows(self) -> list[DataFile]:
        """The new files that hold rows of the table."""
        return [f for f in self.files if f.tier is not Tier.SIDECAR]

    @property
    def sidecar(self) -> tuple[DataFile, ...]:
        """The new sidecar files."""
        return tuple(f for f in self.files if f.tier is Tier.SIDECAR)


class Newest(Protocol):
    """The newest version of a table, as loaded by an adapter."""

    @property
    def version(self) -> int:
        """The number of the version."""

    @property
    def definition(self) -> TableDefinition:
        """The table's definition."""

    @property
    def txns(self) -> Mapping[str, int]:
        """Name of each application -> the highest version that it has recorded in this table (L4)."""


_N = TypeVar("_N", bound=Newest)


@dataclass(frozen=True)
class Attempt(ABC, Generic[_N]):
    """One attempt at a commit; an adapter adds its steps.

    Attributes:
        table: the handle, pinned to the table's id.
        newest: the newest version, on top of which the attempt commits.
    """

    table: TableHandle
    newest: _N

    @abstractmethod
    def live(self) -> Collection[DataFile]:
        """Return the live files of the newest version; in some formats they include its sidecar files."""

    def sidecar(self) -> Collection[DataFile]:
        """Return the sidecar files of the newest version."""
        return [file for file in self.live() if file.tier is Tier.SIDECAR]

    @abstractmethod
    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        """Return what each commit did that followed the version of a row change's handle; None if that is unknown.

        Compactions are left out.
        """

    def check_files(self, change: Change) -> None:
        """Check that no drop or vacuum has removed the new files. Raises TRANSACTION_CONFLICT naming a missing file."""
        store = ObjectStore(change.table.location)
        deletes = (path for made in change.deletes for path in made.deletes.paths)
        for path in (*(file.path for file in change.files), *deletes):
            if not store.exists(path):
                raise TrinityError(
                    "TRANSACTION_CONFLICT",
                    f"'{path}', written by this statement, is gone: table '{change.table.full_name}' was dropped and "
                    "made anew, or vacuumed, meanwhile. Run the statement again.",
                )

    def check_table(self, change: Change) -> None:
        """Check that the table's columns and settings allow the change: other writers may have altered them.

        Raises:
            TrinityError: NOT_SUPPORTED naming a setting that forbids the change; TRANSACTION_CONFLICT if the new files
                would be misread.
        """

    @abstractmethod
    def put(self, change: Change) -> int:
        """Put the next version, with the change. At this moment the change is committed.

        Returns:
            the number of that version.

        Raises:
            CommitRaced: another writer has put that version.
            TrinityError: the change is not committed; with COMMIT_STATE_UNKNOWN it may be committed or not.
        """

    def after(self, change: Change, version: int) -> None:
        """Do work that follows a commit and is no part of it, such as a checkpoint. It must not raise."""

    def log_commit(
        self, operation: CommitOperation, done: CommitResult, txn: TransactionId | None = None
    ) -> CommitResult:
        """Log a commit that has taken effect, and return the commit's result.

        Args:
            operation: what the commit did.
            done: the commit's result.
            txn: the application's transaction id; None without one.
        """
        log_commit(self.table, operation, done, txn)
        return done


def commit_change(attempt: Attempt[Any], change: Change) -> CommitResult:
    """Check a change against the newest version, and commit it on top of that version.

    Raises:
        CommitRaced: another writer has committed since the attempt loaded the newest version.
        TrinityError: TRANSACTION_CONFLICT if a conflicting change was committed since the statement began; and errors
            of the attempt's steps.
    """
    newest = attempt.newest
    if change.txn is not None and newest.txns.get(change.txn[0], -1) >= change.txn[1]:
        return CommitResult(newest.version, skipped=True)  # the application has committed this or a later one (L4)
    counted = change.files
    truncates, replaces = (change.operation == o for o in (CommitOperation.TRUNCATE, CommitOperation.REPLACE))
    if truncates:
        _check_version(change.table, newest)
    if truncates or replaces:
        live = tuple(attempt.live())
        counted = live if truncates else counted
        change = replace(change, removed=frozenset(f.path for f in live))
    attempt.check_files(change)
    _check_not_replaced(change, newest)
    attempt.check_table(change)
    nothing = not (counted or change.txn)
    if nothing and (change.operation == CommitOperation.APPEND or (truncates and not attempt.sidecar())):
        return CommitResult(newest.version)
    if change.merge is not None:
        _check_unaltered(change.merge, newest)
    if change.insert is not None and not replaces:
        change.insert.check_demands(newest.definition)
    if change.merge is not None and not replaces:
        check_scope(change.merge, attempt.changes(change.merge), attempt.live(), change.removed)
    if change.rewrite is not None:
        check_rewrite(change.rewrite, attempt.live(), {made.of for made in change.deletes})
        if change.replace_sidecar:
            check_sidecar(change.rewrite, attempt.sidecar())
    done = commit_result(newest.version, counted, change.deletes)  # before the commit: it may read footers
    version = attempt.put(change)
    attempt.after(change, version)
    return attempt.log_commit(change.operation, replace(done, version=version), change.txn)


def _check_version(table: TableHandle, newest: Newest) -> None:
    """Check, for a handle that is pinned to a version, that this version is the newest one."""
    if table.version not in (None, newest.version):
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"Something was committed to table '{table.full_name}' while a statement that empties it ran; run it "
            "again.",
        )


def _check_not_replaced(change: Change, newest: Newest) -> None:
    """Check that the table has not been replaced since a statement wrote files for it (L13)."""
    begun = change.merge.before if change.merge is not None else None
    begun = begun or change.written
    if begun is not None:
        check_not_replaced(begun, newest.definition)


def check_not_replaced(begun: TableDefinition, now: TableDefinition) -> None:
    """Check that a table has not been replaced since a statement began (L13).

    Args:
        begun: the table's definition in the version that the statement read.
        now: its definition in the newest version.

    Raises:
        TrinityError: TRANSACTION_CONFLICT.
    """
    if begun.replaced != now.replaced:
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"Table '{now.full_name}' was replaced by another one since this statement began; run it again.",
        )


def _check_unaltered(merge: MergeTableHandle, newest: Newest) -> None:
    """Check, for a statement that also changes the definition, that nothing was committed since it began."""
    if merge.before not in (None, newest.definition) or (merge.before and newest.version != merge.table.version):
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"Something was committed to table '{merge.table.full_name}' while a statement that changes its definition "
            "ran; run it again.",
        )


def on_newest(table: TableHandle, known: TableDefinition, attempt: Callable[[TableHandle], _T]) -> _T:
    """Run attempts on the newest version until one commits; ``commit.retry.timeout`` limits the time.

    Args:
        table: the table.
        known: a definition of the table; its id and properties are used.
        attempt: makes one attempt with a handle of the newest version, pinned to the table's id.

    Raises:
        TrinityError: as :func:`~trinity.storage.commit_loop`.
    """
    newest = table.pinned(None, table.id or known.id)
    return commit_loop(table.location, lambda: attempt(newest), commit_timeout_s(known.properties))


# -- the state of a table after a commit ----------------------------------------------------------------


def with_txn(txns: Mapping[str, int], txn: TransactionId | None) -> dict[str, int]:
    """Return the transactions that a table has recorded after a commit (L4).

    Args:
        txns: application -> highest version that it had recorded before the commit.
        txn: the statement's transaction id; None for a statement without one.
    """
    return {**txns, **dict([txn] if txn else [])}


def stamps_missing(insert: InsertTableHandle, now: TableDefinition) -> bool:
    """Return whether the commit of a row change must add the stamp column to the table."""
    return insert.target.stamp is not None and not now.stamped


def definition_after(merge: MergeTableHandle, now: TableDefinition) -> TableDefinition:
    """Return a table's definition after the commit of a row change; ``now`` is its definition before the commit."""
    wanted = merge.insert.definition
    if merge.before is not None and wanted.replaced != now.replaced:  # all rows are new, so none needs a stamp
        return wanted.with_columns(c for c in wanted.columns if c.name != STAMP)
    if merge.before is not None:
        return now.with_columns(wanted.columns).with_history_of(wanted)
    return now.with_stamps() if stamps_missing(merge.insert, now) else now


def order_with(
    insert: InsertTableHandle, order: RowOrder, newest: int, live: Callable[[], Iterable[DataFile]]
) -> RowOrder:
    """Return the table's row order after an append, in which late appends are recorded.

    Args:
        insert: the handle of the append.
        order: the row order before the append.
        newest: the version on top of which the append is committed.
        live: returns the files of the version ``newest``.
    """
    stamp, pinned = insert.target.stamp, insert.table.version or 0
    if stamp is None or newest == pinned or not came_after(pinned, live()):
        return order
    return order.with_late(stamp, newest + 1)


def commit_result(version: int, files: Collection[DataFile], deletes: Collection[DeletesFragment] = ()) -> CommitResult:
    """Return the result of a commit of files. Rows of a sidecar do not count: they are no rows of the table."""
    counted = [f for f in files if f.tier is not Tier.SIDECAR]
    known = all(f.rows_known for f in counted)  # as in most commits, which then have nothing to do with footers
    rows = sum(f.live_rows for f in counted) if known else live_rows_in(counted)
    size = sum(f.size for f in files) + sum(f.size for f in deletes)
    delete_files = {path for f in deletes for path in f.deletes.paths}  # one may delete rows of several data files
    return CommitResult(version, rows, len(files) + len(delete_files), size)


# -- the writes of an adapter; each becomes a change -----------------------------------------------------

ROW_ID = "_trinity_row_id"
"""Name of the row id column of a merge page."""


class RowChanges(ConnectorMetadata):
    """The part of an adapter that commits what the shared sinks write; it is the same for all formats.

    An adapter adds ``begin_insert``, ``begin_rewrite`` and :meth:`run_attempts`. In place of :meth:`run_attempts` it
    may override :meth:`commit`. For new columns with a DEFAULT it adds :meth:`begin_insert_after`.
    """

    def begin_insert_after(self, table: TableHandle, after: TableDefinition) -> InsertTableHandle:
        """Begin the insert of a row change whose commit also gives the table another definition.

        Args:
            table: the table.
            after: the other definition.

        Raises:
            TrinityError: NOT_SUPPORTED, unless an adapter overrides this method.
        """
        raise TrinityError(
            "NOT_SUPPORTED", f"The connector of '{table.full_name}' does not support new columns with a DEFAULT."
        )

    def run_attempts(
        self, table: TableHandle, use: Callable[[Attempt[Any]], _T], known: TableDefinition | None = None
    ) -> _T:
        """Make attempts on the newest version until one is not overtaken by another writer, as :func:`on_newest` does.

        Args:
            table: the table.
            use: gets each attempt, checks it and commits; its result is returned.
            known: a definition of the table; None if the caller has none.
        """
        raise NotImplementedError

    def commit(self, change: Change) -> CommitResult:
        """Commit what a statement has written: try :func:`~trinity.storage.commit_change` until it is not overtaken."""
        return self.run_attempts(change.table, lambda attempt: commit_change(attempt, change), change.written)

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self.commit(Change.of_insert(insert, fragments, txn))

    def finish_merge(
        self, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self.commit(Change.of_merge(merge, fragments, txn))

    def finish_replace(self, merge: MergeTableHandle, fragments: Sequence[bytes]) -> CommitResult:
        return self.commit(Change.of_replace(merge, fragments))

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        return self.commit(Change(CommitOperation.TRUNCATE, table, txn=txn, replace_sidecar=True))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        return self.commit(Change.of_rewrite(rewrite, fragments, replace_sidecar=replace_sidecar))

    def finish_resolve(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], deletes: Sequence[bytes]
    ) -> CommitResult:
        change, marks = Change.of_rewrite(rewrite, fragments, replace_sidecar=True), self.read_deletes(rewrite, deletes)
        return self.commit(replace(change, operation=CommitOperation.RESOLVE, deletes=marks))

    def read_deletes(self, rewrite: RewriteTableHandle, deletes: Sequence[bytes]) -> Sequence[DeletesFragment]:
        """Return what the fragments of delete sinks hold, merged so that each data file has one."""
        return deletes_of_fragments(deletes)

    def check_pinned(self, table: TableHandle) -> None:
        """Check that a handle's name still leads to the table to which the handle is pinned.

        Raises:
            TrinityError: TABLE_NOT_FOUND if the name leads to no table or to another one.
        """
        if table.id is None:
            return
        try:
            self.get_table_definition(table)
        except TrinityError as error:
            if error.code != "TRANSACTION_CONFLICT":
                raise
            raise no_table(table.full_name) from error

    def owns(self, table: TableHandle) -> bool:
        try:
            return super().owns(table)
        except TrinityError as error:
            if error.code in ("BAD_DATA", "NOT_SUPPORTED") and self.left_by_trinity(table):
                return True
            raise

    def left_by_trinity(self, table: TableHandle) -> bool:
        """Return whether the remaining files of an unreadable table prove that Trinity made the table."""
        return False

    def begin_merge(
        self,
        table: TableHandle,
        update_case_columns: Mapping[int, tuple[str, ...]],
        after: TableDefinition | None = None,
    ) -> MergeTableHandle:
        insert = self.begin_insert(table) if after is None else self.begin_insert_after(table, after)
        if insert.target.stamp is not None:
            stamp = row_change_stamp(insert.table.version or 0)
            insert = replace(insert, target=replace(insert.target, stamp=stamp))
        definition = insert.definition
        return MergeTableHandle(
            insert.table,
            insert,
            ROW_ID,
            dict(update_case_columns),
            _paradigm(definition),
            insert_layout=definition.primary_key or definition.partition_columns,
            update_layout=definition.primary_key or ("file",),
            before=None if after is None else self.get_table_definition(insert.table),
        )


def _paradigm(definition: TableDefinition) -> RowChangeParadigm:
    """Return how row changes are written.

    A merge engine that merges column by column decides it; else the property ``row-change-paradigm``; by default a row
    change deletes and inserts rows.
    """
    if definition.keyed and merge_spec(definition).by_column:
        return RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
    wanted = definition.properties.get("row-change-paradigm")
    return RowChangeParadigm[wanted.upper()] if wanted else RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW


# -- the reports of a commit: a log line; a span and metrics if OpenTelemetry is installed --------------

_log = logger("trinity")
_WRITE_NO_FILES: Final = frozenset({CommitOperation.TRUNCATE, CommitOperation.RESTORE, CommitOperation.REPAIR})
"""Operations whose results count the files that they remove or put back."""
_SHARED: Final = ("table", "operation", "executor")
"""Names of the facts that metrics have as attributes. Each has few values, as metrics systems require."""


@dataclass(frozen=True)
class CommitLine:
    """The log line of a commit.

    Attributes:
        table: full name of the table.
        version: the new version.
        operation: the operation, as shown by ``history()``.
        rows, files, bytes: what was written; 0 for operations that remove files or put them back.
        seconds: time since the beginning of the call that committed.
        attempts: number of attempts; more than one if other writers were faster.
        txn: the transaction id as ``application:version``; empty without one.
        executor: ``spark`` if Spark took part in the call, else ``local``.
    """

    table: str
    version: int
    operation: str
    rows: int
    files: int
    bytes: int
    seconds: float
    attempts: int
    txn: str
    executor: str

    def __str__(self) -> str:
        facts = {**asdict(self), "seconds": f"{self.seconds:.3f}", "txn": self.txn or "-"}
        return " ".join(f"{name}={value}" for name, value in facts.items())


def log_commit(
    table: TableHandle, operation: CommitOperation, done: CommitResult, txn: TransactionId | None = None
) -> None:
    """Log a commit that has taken effect, and record its metrics. If the metrics fail, that is logged."""
    work = current_work()
    written = CommitResult(done.version) if operation in _WRITE_NO_FILES else done
    line = CommitLine(
        table.full_name,
        done.version,
        str(operation),
        *(written.rows, written.files, written.bytes),
        time.perf_counter() - work.began,
        max(work.attempts, 1),
        f"{txn[0]}:{txn[1]}" if txn else "",
        work.executor,
    )
    work.attempts = 0
    _log.info("commit %s", line, extra={"commit": line})
    after_commit(f"Version {line.version} of '{line.table}' is missing in the metrics", lambda: _record(asdict(line)))


class _Instruments:
    """The tracer, counters and histograms that Trinity registers with OpenTelemetry."""

    def __init__(self, trace: Any, metrics: Any) -> None:
        self.tracer = trace.get_tracer("trinity")
        meter = metrics.get_meter("trinity")
        self.commits = meter.create_counter("trinity.commits", "{commit}", "Commits")
        self.rows = meter.create_counter("trinity.commit.rows", "{row}", "Rows that commits wrote")
        self.bytes = meter.create_counter("trinity.commit.size", "By", "Bytes that commits wrote")
        self.attempts = meter.create_counter("trinity.commit.attempts", "{attempt}", "Attempts at commits")
        self.seconds = meter.create_histogram("trinity.commit.duration", "s", "Time of the calls that committed")


@cache
def _instruments() -> _Instruments | None:
    try:
        return _Instruments(import_module("opentelemetry.trace"), import_module("opentelemetry.metrics"))
    except ModuleNotFoundError:
        return None


def _record(facts: Mapping[str, Any]) -> None:
    """Record in OpenTelemetry a commit that has just taken effect: metrics, and a span that covers the whole call.

    Args:
        facts: the fields of the commit's :class:`CommitLine`.
    """
    if (found := _instruments()) is None:
        return
    now = now_ns()
    span = found.tracer.start_span(
        f"trinity {facts['operation']}",
        attributes={f"trinity.{name}": value for name, value in facts.items() if value != ""},
        start_time=now - int(facts["seconds"] * 1e9),
    )
    span.end(now)
    shared = {f"trinity.{name}": facts[name] for name in _SHARED}
    found.commits.add(1, shared)
    found.rows.add(facts["rows"], shared)
    found.bytes.add(facts["bytes"], shared)
    found.attempts.add(facts["attempts"], shared)
    found.seconds.record(facts["seconds"], shared)
