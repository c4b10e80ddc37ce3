"""MERGE, UPDATE and DELETE: pinned, planned, checked, written, committed; run again on a conflict (L7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from trinity.engine.appending.append import checked_txn, is_recorded
from trinity.engine.appending.evolving import evolved, follow
from trinity.engine.changing.attempt import Attempt
from trinity.engine.changing.begin import Begin
from trinity.engine.changing.local.attempt import LocalAttempt
from trinity.engine.changing.local.limits import why_not_local
from trinity.engine.compacting.after_commit import after_commit
from trinity.engine.executes import NotLocal, ThisProcess, execute
from trinity.engine.program import Counts, Program
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.errors import TrinityError
from trinity.merge.properties import commit_timeout_s
from trinity.spark.class_lookups import without_call_sites
from trinity.spark.settings import pinned
from trinity.spark.types import arrow_schema
from trinity.spi import Operation, SplitSource, TableDefinition, TransactionId
from trinity.storage.commits import statement_retries, statement_turn
from trinity.target import Target

T = TypeVar("T")

_Done = tuple[Counts, TableDefinition | None]
"""The counts of changed rows, and the table's definition at their commit; None when no row was changed."""
Prepare = Callable[[SplitSource], AbstractContextManager[Program]]
"""A function that makes the statement's program for each attempt, with its tables pinned. Its argument is the version
of the target that is changed and read."""


PrepareLocally = Callable[[SplitSource, ThisProcess], Program | NotLocal]
"""A function as :data:`Prepare` that needs no Spark, or returns why it does."""


def run(
    table: Target, prepare: Prepare, txn: TransactionId | None = None, local: PrepareLocally | None = None
) -> Counts:
    """Run a statement.

    Args:
        table: the target.
        prepare: makes the program; entered once for each attempt.
        txn: (application, version): if the table has recorded this version or a higher one, nothing is done (L4).
        local: makes the program where this process executes it; by default ``prepare`` does.

    Returns:
        the rows changed, by kind, and the table's version afterwards. A statement that selects nothing makes no commit.

    Raises:
        TrinityError: TRANSACTION_CONFLICT when others kept committing what it read for longer than
            ``commit.retry.timeout``; MERGE_TARGET_ROW_MULTIPLE_MATCHES, CONSTRAINT_VIOLATION, TYPE_MISMATCH, ...; the
            table's rows are then as they were. Columns that an evolving program has added stay.
    """
    if txn is not None:
        txn = checked_txn(txn)
        if is_recorded(table, txn):
            return Counts(table.splits().version, skipped=True)

    def here(splits: SplitSource, process: ThisProcess) -> Program | NotLocal:
        assert local is not None
        found = local(splits, process)
        return found if isinstance(found, NotLocal) else _evolved_program(table, found, splits)

    @contextmanager
    def anywhere(splits: SplitSource) -> Iterator[Program]:
        with prepare(splits) as program:
            yield _evolved_program(table, program, splits)

    def attempt() -> _Done:
        return _execute(table, anywhere, lambda pinned: _commit(pinned, txn), here if local is not None else None)

    counts, definition = rerun(table, attempt)
    if definition is not None:
        after_commit(table, definition, counts)
    return counts


def rerun(table: Target, attempt: Callable[[], T]) -> T:
    """Attempt a statement until no other commit comes between what it read and its own commit (L7).

    Raises:
        TrinityError: TRANSACTION_CONFLICT once ``commit.retry.timeout`` is over.
    """
    turn: AbstractContextManager[None] = nullcontext()  # the first attempt is optimistic
    with statement_retries() as retries:
        while True:
            try:
                with turn:
                    return attempt()
            except TrinityError as error:
                if error.code != "TRANSACTION_CONFLICT":
                    raise
                timeout_s = commit_timeout_s(table.properties)
                if not retries.pause(timeout_s):
                    raise
            # an attempt that lost a race waits for its turn within the process
            turn = statement_turn(table.location, timeout_s, retries)


def _execute(
    table: Target, prepare: Prepare, use: Callable[[Attempt], T | NotLocal], prepare_locally: PrepareLocally | None
) -> T:
    """Begin an attempt in this process, or else by Spark, and return what ``use`` makes of it."""
    splits = table.splits()
    begin = Begin(table, splits)

    def local(process: ThisProcess) -> T | NotLocal:
        with nullcontext(prepare_locally(splits, process)) if prepare_locally else prepare(splits) as program:
            if isinstance(program, NotLocal):
                return program
            if (why := why_not_local(splits, program)) is not None:
                return why
            attempt = LocalAttempt.of(table, begin.plan(program))
            if isinstance(attempt, NotLocal):
                return attempt
            if (why := process.why_not_read(attempt.plan.files)) is not None:
                return why
            with reporting_dropped_table(table.connector, attempt.plan.merge.table):
                return use(attempt)

    def by_spark() -> T:
        with _in_spark(begin, prepare) as attempt:
            found = use(attempt)
        assert not isinstance(found, NotLocal)
        return found

    return execute(table.session, f"The statement on '{table.name}'", local, by_spark)


def _evolved_program(table: Target, program: Program, splits: SplitSource) -> Program:
    """Add the source's new columns to the target if the statement evolves it.

    Raises:
        TrinityError: TRANSACTION_CONFLICT after adding them, so that the statement is planned again; as
            :func:`~trinity.engine.appending.evolving.follow`.
    """
    if not program.evolves or program.source is None:
        return program
    source = program.source
    given = source.schema if isinstance(source, pa.Table) else arrow_schema(source.schema)
    changing = [case for case in program.cases if case.operation in (Operation.UPDATE, Operation.INSERT)]
    if all(case.values is not None for case in changing):  # no case has *: only named columns can be new
        old = {column.name.lower() for column in splits.definition.visible}
        named = {name.lower() for case in changing for name in case.values or {}} - old
        given = pa.schema([field for field in given if field.name.lower() in named])
    if evolved(splits.definition, given) is splits.definition:
        return program
    follow(table, given)
    raise TrinityError("TRANSACTION_CONFLICT", f"{program.statement} has changed the columns of '{table.name}'.")


def _commit(attempt: Attempt, txn: TransactionId | None) -> _Done | NotLocal:
    """Write and commit an attempt's changes."""
    written = attempt.write()
    if isinstance(written, NotLocal):
        return written
    fragments, counts = written
    metadata = attempt.table.connector.metadata
    plan = attempt.plan
    alters = plan.program.after is not None
    if not fragments and txn is None and not alters:
        return Counts(plan.merge.table.version or 0), None
    if not fragments and not alters:
        done = metadata.finish_insert(plan.merge.insert, [], txn)
    else:
        merge = replace(plan.merge, scope=plan.scope)
        done = metadata.finish_merge(merge, fragments, txn)
    if done.skipped:
        return Counts(done.version, skipped=True), None
    changed = Counts(done.version, counts["updated"], counts["deleted"], counts["inserted"])
    return changed, plan.definition if fragments else None


def explain(table: Target, prepare: Prepare, local: PrepareLocally | None = None) -> str:
    """Describe what a statement would do: paradigm, layouts, join, cases, and who executes it. Nothing is written."""
    return _execute(table, prepare, lambda attempt: attempt.described(), local)


@contextmanager
def _in_spark(begin: Begin, prepare: Prepare) -> Iterator[Attempt]:
    """Begin an attempt by Spark; Spark's errors in it are raised as TrinityErrors."""
    from trinity.calls import spark_errors
    from trinity.engine.changing.spark.attempt import SparkAttempt

    with (
        pinned(begin.table.session.spark),
        spark_errors(),
        without_call_sites(),
        prepare(begin.splits) as program,
        SparkAttempt.of(begin, program) as attempt,
        reporting_dropped_table(begin.table.connector, attempt.plan.merge.table),
        spark_errors(),
    ):
        yield attempt
