"""MERGE, UPDATE and DELETE: pinned, planned, checked, written, committed; run again on a conflict (L7)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TypeVar

from trinity.engine.appending.append import checked_txn, is_recorded
from trinity.engine.changing.attempt import Attempt
from trinity.engine.compacting.after_commit import after_commit
from trinity.engine.program import Counts, Program
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.engine.spark.class_lookups import without_call_sites
from trinity.engine.spark.settings import pinned
from trinity.engine.target import Target
from trinity.errors import TrinityError
from trinity.merge.options import commit_timeout_s
from trinity.spi import SplitSource, TableDefinition, TransactionId
from trinity.storage import statement_turn

__all__ = ["Prepare", "explain", "rerun", "run"]

T = TypeVar("T")

_Done = tuple[Counts, TableDefinition | None]
"""The rows changed, and the definition under which they were; None instead of it when none was changed."""
Prepare = Callable[[SplitSource], AbstractContextManager[Program]]
"""A function that makes the statement's program for each attempt, with its tables pinned. Its argument is the version
of the target that is changed and read."""


def run(table: Target, prepare: Prepare, txn: TransactionId | None = None) -> Counts:
    """Run a statement.

    Args:
        table: the target.
        prepare: makes the program; entered once for each attempt.
        txn: (application, version): with the same or a lower version nothing is done (L4).

    Returns:
        the rows changed, by kind, and the table's version afterwards. A statement that selects nothing makes no commit.

    Raises:
        TrinityError: TRANSACTION_CONFLICT when others kept committing what it read for longer than
            ``commit.retry.timeout``; MERGE_TARGET_ROW_MULTIPLE_MATCHES, CONSTRAINT_VIOLATION, TYPE_MISMATCH, ...; the
            table is then as it was.
    """
    if txn is not None:
        txn = checked_txn(txn)
        if is_recorded(table, txn):
            return Counts(table.splits().version, skipped=True)
    counts, definition = rerun(table, lambda: _attempt(table, prepare, txn))
    if definition is not None:
        after_commit(table, definition, counts)
    return counts


def rerun(table: Target, attempt: Callable[[], T]) -> T:
    """Attempt a statement until no other commit comes between what it read and its own commit (L7).

    Raises:
        TrinityError: TRANSACTION_CONFLICT once ``commit.retry.timeout`` is over.
    """
    deadline: float | None = None
    while True:
        # the first attempt is optimistic; one that lost a race waits for its turn within the process
        turn = nullcontext() if deadline is None else statement_turn(table.location)
        with turn:
            try:
                return attempt()
            except TrinityError as error:
                deadline = deadline or time.monotonic() + commit_timeout_s(table.properties)
                if error.code != "TRANSACTION_CONFLICT" or time.monotonic() > deadline:
                    raise


def _attempt(table: Target, prepare: Prepare, txn: TransactionId | None) -> _Done:
    return _executed(table, prepare, lambda attempt: _committed(attempt, txn))


def _executed(table: Target, prepare: Prepare, use: Callable[[Attempt], T]) -> T:
    """Begin an attempt and use it."""
    with _in_spark(table, prepare) as attempt:
        return use(attempt)


def _committed(attempt: Attempt, txn: TransactionId | None) -> _Done:
    """Write and commit an attempt's changes."""
    fragments, counts = attempt.written()
    metadata = attempt.table.connector.metadata
    if not fragments and txn is None:
        return Counts(attempt.merge.table.version or 0), None
    if not fragments:
        done = metadata.finish_insert(attempt.merge.insert, [], txn)
    else:
        merge = replace(attempt.merge, scope=attempt.scope())
        done = metadata.finish_merge(merge, list(attempt.program.reads), fragments, txn)
    if done.skipped:
        return Counts(done.version, skipped=True), None
    changed = Counts(done.version, counts["updated"], counts["deleted"], counts["inserted"])
    return changed, attempt.definition if fragments else None


def explain(table: Target, prepare: Prepare) -> str:
    """Describe what a statement would do: paradigm, layouts, join, cases, and who executes it. Nothing is written."""
    return _executed(table, prepare, lambda attempt: attempt.described())


@contextmanager
def _in_spark(table: Target, prepare: Prepare) -> Iterator[Attempt]:
    """Begin an attempt by Spark; Spark's errors in it are raised as TrinityErrors."""
    from trinity.calls.spark import spark_errors
    from trinity.engine.changing.spark.attempt import SparkAttempt

    with pinned(table.session.spark), spark_errors(), without_call_sites():
        splits = table.splits()
        with (
            prepare(splits) as program,
            SparkAttempt.of(table, splits, program) as attempt,
            reporting_dropped_table(table.connector, attempt.merge.table),
            spark_errors(),
        ):
            yield attempt
