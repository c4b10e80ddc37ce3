"""How every adapter commits: what a statement writes is a change (S1-S6), which a loop of attempts commits (L7).

The checks of one attempt, what a commit makes of a table, and what is logged of it are here, too.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, Final, Generic, Protocol, TypeVar

from trinity.calls import current_work
from trinity.clock import now_ms, now_ns
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
from trinity.storage.conflicts import FileChange, check_rewrite, check_scope
from trinity.storage.errors import after_commit
from trinity.storage.folder_names import no_table
from trinity.storage.local_objects import folder_lock
from trinity.storage.position_deletes import DeletesFragment, deletes_of_fragments
from trinity.storage.store import ObjectStore

COMMIT_TIMEOUT_S: Final = 600.0
"""Default of ``commit.retry.timeout``: how long a commit is retried, seconds."""

_T = TypeVar("_T")


class CommitRaced(Exception):
    """Another writer committed between reload and commit; reload and try again."""


class _FifoLock:
    """A lock that serves its waiters in order, so that no writer of a process starves."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._is_taken = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        turn = threading.Event()
        with self._mutex:
            if self._is_taken:
                self._waiting.append(turn)
            else:
                self._is_taken = True
                turn.set()
        turn.wait()
        try:
            yield
        finally:
            with self._mutex:
                if self._waiting:
                    self._waiting.popleft().set()
                else:
                    self._is_taken = False


_locks: defaultdict[str, _FifoLock] = defaultdict(_FifoLock)
_locks_mutex = threading.Lock()


def commit_loop(
    location: str, attempt: Callable[[], _T], timeout_s: float = COMMIT_TIMEOUT_S, *, alone: bool = False
) -> _T:
    """Run ``attempt`` until it does not raise :class:`CommitRaced`.

    ``attempt`` reloads the table, checks it, and commits. Writers of this process take turns. Writers of other
    processes are kept apart by a growing, random pause. Nobody removes the table's folder during an attempt.

    Args:
        location: the table's folder.
        attempt: one attempt.
        timeout_s: how long to start new attempts, seconds.
        alone: True for an attempt that removes the folder: no other process is then within an attempt.

    Raises:
        TrinityError: TRANSACTION_CONFLICT after ``timeout_s`` seconds; and errors of ``attempt``.
    """
    with _locks_mutex:
        lock = _locks[location]
    deadline = time.monotonic() + timeout_s
    work = current_work()
    pause = 0.005
    with lock.taken():
        while True:
            try:
                work.attempts += 1
                with folder_lock(location, alone=alone):
                    return attempt()
            except CommitRaced as raced:
                if time.monotonic() > deadline:
                    raise TrinityError(
                        "TRANSACTION_CONFLICT",
                        f"Other writers kept committing to '{location}' for {timeout_s:g} s; try again later, "
                        f"or raise 'commit.retry.timeout'. Last conflict: {raced}.",
                    ) from raced
                time.sleep(random.uniform(0, pause))
                pause = min(pause * 2, 1.0)


@contextmanager
def statement_turn(location: str) -> Iterator[None]:
    """Wait for a turn among this process's statements that run again on one table; turns are in order.

    A statement reads before it commits, so without turns it would lose to faster writers again and again.
    """
    with _locks_mutex:
        lock = _locks[f"{location} statement"]
    with lock.taken():
        yield


def next_timestamp_ms(previous_ms: int) -> int:
    """Return a commit time: now, but at least one millisecond after the previous commit (L10)."""
    return max(now_ms(), previous_ms + 1)


def checkpoint_step(interval: int, files: int) -> int:
    """Return the checkpoint interval; it doubles each time the file count doubles beyond 40 intervals.

    A checkpoint lists all files. So each commit pays for less than 40 of them, however many the table has, and a reader
    opens at most one commit for every 20 files.
    """
    return interval << max(0, (files // (20 * interval)).bit_length() - 1)


@dataclass(frozen=True)
class Change:
    """What a statement commits, and what it saw of the table.

    Attributes:
        operation: what it does to the table.
        table: the handle, pinned to the version that the statement saw.
        files: new files in their order, those of a sidecar among them.
        removed: paths of the files that they replace; where the table is emptied all live files.
        txn: the application's transaction.
        insert: the handle of an append or a row change.
        merge: the handle of a row change.
        rewrite: the handle of a compaction.
        deletes: rows that it deletes by position, of files that stay (R1).
        replace_sidecar: whether the files of the present sidecar are removed.
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
        """Return an append; arguments as in ``finish_insert``."""
        return cls(CommitOperation.APPEND, insert.table, from_fragments(list(fragments)), txn=txn, insert=insert)

    @classmethod
    def of_merge(cls, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None) -> Change:
        """Return a row change; arguments as in ``finish_merge``."""
        files, removed = from_merge_fragments(fragments)
        return cls(CommitOperation.MERGE, merge.table, files, removed, txn, insert=merge.insert, merge=merge)

    @classmethod
    def of_replace(cls, merge: MergeTableHandle, fragments: Sequence[bytes]) -> Change:
        """Return the replacement of a table; arguments as in ``finish_replace``."""
        files = from_fragments(list(fragments))
        return cls(CommitOperation.REPLACE, merge.table, files, insert=merge.insert, merge=merge, replace_sidecar=True)

    @classmethod
    def of_rewrite(cls, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool) -> Change:
        """Return a compaction; arguments as in ``finish_rewrite``."""
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
    """The newest version of a table, as an adapter loads it."""

    @property
    def version(self) -> int:
        """Its number."""

    @property
    def definition(self) -> TableDefinition:
        """The table's definition."""

    @property
    def txns(self) -> Mapping[str, int]:
        """Application -> highest recorded version."""


_N = TypeVar("_N", bound=Newest)


@dataclass(frozen=True)
class Attempt(ABC, Generic[_N]):
    """One attempt at a commit; an adapter adds its steps.

    Attributes:
        table: the handle, pinned to the table's id.
        newest: the table's newest version.
    """

    table: TableHandle
    newest: _N

    @abstractmethod
    def live(self) -> Collection[DataFile]:
        """Return the live files."""

    def has_sidecar(self) -> bool:
        """Return whether the version has a sidecar that is not among the live files."""
        return False

    @abstractmethod
    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        """Return what each commit since a statement's version did, without compactions; None when unknown."""

    def check_files(self, change: Change) -> None:
        """Check that no drop or vacuum has removed the new files. Raises TRANSACTION_CONFLICT naming one."""
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
        """Check that the table's columns and settings, which others may have changed, allow the change.

        Raises:
            TrinityError: NOT_SUPPORTED naming a setting; TRANSACTION_CONFLICT for files that would be misread.
        """

    @abstractmethod
    def put(self, change: Change) -> int:
        """Put the next version, with the change: the commit point.

        Returns:
            its number.

        Raises:
            CommitRaced: another writer has put that version.
            TrinityError: the change is not committed; COMMIT_STATE_UNKNOWN when nobody can say.
        """

    def after(self, change: Change, version: int) -> None:
        """Do follow-up work that is not part of the commit. Its failures are not reported."""

    def log_commit(
        self, operation: CommitOperation, done: CommitResult, txn: TransactionId | None = None
    ) -> CommitResult:
        """Log a commit that has taken effect, and return its result.

        Args:
            operation: what it did.
            done: its result.
            txn: the application's transaction.
        """
        log_commit(self.table, operation, done, txn)
        return done


def commit_change(attempt: Attempt[Any], change: Change) -> CommitResult:
    """Check a change against the newest version, and commit it on top.

    Raises:
        CommitRaced: another writer was first.
        TrinityError: TRANSACTION_CONFLICT for a conflicting change since the statement began; errors of the steps.
    """
    newest = attempt.newest
    if change.txn is not None and newest.txns.get(change.txn[0], -1) >= change.txn[1]:
        return CommitResult(newest.version, skipped=True)  # a retry, or one of an application that is further on (L4)
    counted = change.files
    truncates, replaces = (change.operation == o for o in (CommitOperation.TRUNCATE, CommitOperation.REPLACE))
    if truncates or replaces:
        live = tuple(attempt.live())
        counted = live if truncates else counted
        change = replace(change, removed=frozenset(f.path for f in live))
    attempt.check_files(change)
    _check_not_replaced(change, newest)
    attempt.check_table(change)
    nothing = not (counted or change.txn)
    if nothing and (change.operation == CommitOperation.APPEND or (truncates and not attempt.has_sidecar())):
        return CommitResult(newest.version)
    if change.merge is not None:
        _check_unaltered(change.merge, newest)
    if change.insert is not None and not replaces:
        change.insert.check_demands(newest.definition)
    if change.merge is not None and not replaces:
        check_scope(change.merge, attempt.changes(change.merge), attempt.live(), change.removed)
    if change.rewrite is not None:
        check_rewrite(change.rewrite, attempt.live(), {made.of for made in change.deletes})
    version = attempt.put(change)
    attempt.after(change, version)
    return attempt.log_commit(change.operation, commit_result(version, counted, change.deletes), change.txn)


def _check_not_replaced(change: Change, newest: Newest) -> None:
    """Check that the table is not another one than that for which a statement wrote its files (L13)."""
    begun = change.merge.before if change.merge is not None else None
    begun = begun or change.written
    if begun is not None and begun.replaced != newest.definition.replaced:
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"Table '{change.table.full_name}' was replaced by another one since this statement began; run it again.",
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
    """Run attempts on the newest version until one commits, for as long as ``commit.retry.timeout`` allows.

    Args:
        table: the table.
        known: the table's definition, for its id and its properties.
        attempt: makes one attempt with a handle of the newest version, pinned to the table's id.

    Raises:
        TrinityError: as :func:`~trinity.storage.commit_loop`.
    """
    newest = table.pinned(None, table.id or known.id)
    return commit_loop(table.location, lambda: attempt(newest), commit_timeout_s(known.properties))


# -- what a commit makes of a table ---------------------------------------------------------------------


def with_txn(txns: Mapping[str, int], txn: TransactionId | None) -> dict[str, int]:
    """Return what applications have recorded after a commit (L4).

    Args:
        txns: application -> highest recorded version.
        txn: the statement's transaction id; None for a statement without one.
    """
    return {**txns, **dict([txn] if txn else [])}


def stamps_missing(insert: InsertTableHandle, now: TableDefinition) -> bool:
    """Return whether the commit of a row change must add the stamp column to the table."""
    return insert.target.stamp is not None and not now.stamped


def definition_after(merge: MergeTableHandle, now: TableDefinition) -> TableDefinition:
    """Return the definition that the commit of a row change gives to the table, which has one now."""
    wanted = merge.insert.definition
    if merge.before is not None and wanted.replaced != now.replaced:  # no row is older, so none needs a stamp
        return wanted.with_columns(c for c in wanted.columns if c.name != STAMP)
    if merge.before is not None:
        return now.with_columns(wanted.columns)
    return now.with_stamps() if stamps_missing(merge.insert, now) else now


def order_with(
    insert: InsertTableHandle, order: RowOrder, newest: int, live: Callable[[], Iterable[DataFile]]
) -> RowOrder:
    """Return the table's row order after an append, in which late appends are recorded.

    Args:
        insert: the append.
        order: the order before it.
        newest: the version on which it is committed.
        live: returns the files of that version.
    """
    stamp, pinned = insert.target.stamp, insert.table.version or 0
    if stamp is None or newest == pinned or not came_after(pinned, live()):
        return order
    return order.with_late(stamp, newest + 1)


def commit_result(version: int, files: Collection[DataFile], deletes: Collection[DeletesFragment] = ()) -> CommitResult:
    """Return the result of a commit of some files. Rows of a sidecar do not count: they are not rows of the table."""
    rows = sum(f.live_rows for f in files if f.tier is not Tier.SIDECAR)
    size = sum(f.size for f in files) + sum(f.size for f in deletes)
    delete_files = {path for f in deletes for path in f.deletes.paths}  # one may be about several data files
    return CommitResult(version, rows, len(files) + len(delete_files), size)


# -- the writes of an adapter, each one a change ---------------------------------------------------------

ROW_ID = "_trinity_row_id"
"""Name of the row id column of a merge page."""


class RowChanges(ConnectorMetadata):
    """The writes of an adapter that uses the shared sinks: the part that all formats share.

    An adapter adds ``begin_insert``, ``begin_rewrite`` and :meth:`run_attempts`, or :meth:`commit` in its place, and
    for new columns with a DEFAULT :meth:`begin_insert_after`.
    """

    def begin_insert_after(self, table: TableHandle, after: TableDefinition) -> InsertTableHandle:
        """Begin what a row change inserts whose commit gives the table another definition, as in ``begin_merge``."""
        raise TrinityError(
            "NOT_SUPPORTED", f"The connector of '{table.full_name}' does not support new columns with a DEFAULT."
        )

    def run_attempts(
        self, table: TableHandle, use: Callable[[Attempt[Any]], _T], known: TableDefinition | None = None
    ) -> _T:
        """Run attempts until no other writer is faster, each on the newest version, as of :func:`on_newest`.

        Args:
            table: the table.
            use: checks, and commits by an attempt.
            known: the table's definition, where the caller has it.
        """
        raise NotImplementedError

    def commit(self, change: Change) -> CommitResult:
        """Commit what a statement has written, by :func:`~trinity.storage.commit_change` in a commit loop."""
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
        """Read the fragments of delete sinks; return one for each data file."""
        return deletes_of_fragments(deletes)

    def check_pinned(self, table: TableHandle) -> None:
        """Check that the name of a handle leads to the table that it is pinned to. Raises TABLE_NOT_FOUND."""
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
        """Return whether what is left of an unreadable table proves that Trinity made it."""
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
    """Return the paradigm of the merge engine; else of the property ``row-change-paradigm``; else delete and insert."""
    if definition.keyed and merge_spec(definition).by_column:
        return RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
    wanted = definition.properties.get("row-change-paradigm")
    return RowChangeParadigm[wanted.upper()] if wanted else RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW


# -- what is told of a commit: a line of the log, a span and metrics of OpenTelemetry where that is installed

_log = logger("trinity")
_SHARED: Final = ("table", "operation", "executor")
"""Facts by which metrics are told apart: of few values each."""


@dataclass(frozen=True)
class CommitLine:
    """What is logged of a commit.

    Attributes:
        table: full name of the table.
        version: the new version.
        operation: as ``history()`` shows it.
        rows, files, bytes: what was written, as of :class:`~trinity.spi.CommitResult`.
        seconds: time since the call began that made the commit.
        attempts: attempts at the commit: more than one where other writers were faster.
        txn: ``application:version``; empty without.
        executor: ``local`` for this process, ``spark`` where Spark took part.
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
    """Log a commit that has taken effect. A failure to do so is logged, too, and the commit stands."""
    work = current_work()
    line = CommitLine(
        table.full_name,
        done.version,
        str(operation),
        *(done.rows, done.files, done.bytes),
        time.perf_counter() - work.began,
        max(work.attempts, 1),
        f"{txn[0]}:{txn[1]}" if txn else "",
        work.executor,
    )
    work.attempts = 0
    _log.info("commit %s", line, extra={"commit": line})
    after_commit(f"Version {line.version} of '{line.table}' is missing in the metrics", lambda: _record(asdict(line)))


class _Instruments:
    """Trinity's tracer, and its counters and histograms."""

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
    """Record a commit that has just taken effect: a span that begins with its call, and metrics.

    Args:
        facts: as of :class:`CommitLine`.
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
