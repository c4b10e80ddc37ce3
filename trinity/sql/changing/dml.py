"""MERGE, UPDATE, DELETE and TRUNCATE: parsed, run by the engine, and answered with counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from sqlglot import Token

from trinity.calls import quiet
from trinity.engine.executes import NotLocal, ThisProcess, asked_spark
from trinity.errors import TrinityError
from trinity.sql.parsing.merge import read_merge
from trinity.sql.parsing.row_change import (
    RowChange,
    common_tables,
    read_delete,
    read_truncate,
    read_update,
    row_change_word,
)
from trinity.sql.queries.results import Rows, counts
from trinity.syntax.quoting import quoted
from trinity.syntax.reader import Piece, Reader

if TYPE_CHECKING:
    from trinity.engine.program import Counts, Program
    from trinity.session import Session
    from trinity.spi import SplitSource, TableDefinition, TableHandle, TransactionId
    from trinity.table import Table

    ViewsOf = Callable[[SplitSource], AbstractContextManager[Sequence[TableHandle]]]


def row_change(text: str, dialect: str, tokens: Sequence[Token]) -> Piece | None:
    """Return the statement if it is MERGE, UPDATE, DELETE or TRUNCATE, also after a leading WITH; else None."""
    piece = Piece(text, dialect, tuple(tokens))
    return piece if row_change_word(piece) is not None else None


def run(session: Session, piece: Piece, txn: TransactionId | None = None) -> Rows:
    """Run a row-changing statement, and return one row of counts (M5).

    Raises:
        TrinityError: SYNTAX_ERROR, NOT_SUPPORTED, TABLE_NOT_FOUND; as
            :func:`trinity.sql.changing.build_program.program`; and as the engine.
    """
    if row_change_word(piece) == "TRUNCATE":
        return _truncate(session, piece, txn)
    done = change_rows(session, piece, txn=txn)
    return counts(updated=done.updated, deleted=done.deleted, inserted=done.inserted)


def change_rows(
    session: Session,
    piece: Piece,
    views_of: ViewsOf | None = None,
    unique: tuple[tuple[str, ...], ...] = (),
    txn: TransactionId | None = None,
    check: Callable[[TableDefinition], None] | None = None,
) -> Counts:
    """Run a MERGE, UPDATE or DELETE.

    ``views_of`` returns a context for each attempt, in which the views that the statement names are registered. Its
    argument is the version of the target that is changed; the context yields the pinned tables that the views read.
    ``unique`` are further sets of columns of a keyed target that are unique among its live rows. ``check`` gets the
    definition of the version that an attempt reads, and raises an error for one that the statement must not change.

    The result has the counts and the committed version. Errors as for :func:`run`.
    """
    from trinity.engine.changing.statement import run as run_program
    from trinity.sql.changing.build_program import local_program, program

    change = read(piece)
    table = target_table(session, change.target)

    @contextmanager
    def prepared(splits: SplitSource) -> Iterator[Program]:
        if check is not None:
            check(splits.definition)
        with (
            views_of(splits) if views_of is not None else nullcontext(()) as further,
            program(session, table, change, splits) as found,
        ):
            yield replace(found, reads=(*found.reads, *further), unique=unique)

    def local(splits: SplitSource, process: ThisProcess) -> Program | NotLocal:
        if views_of is not None:
            return _READS_VIEWS
        if check is not None:
            check(splits.definition)
        found = local_program(session, table, change, splits, process)
        return found if isinstance(found, NotLocal) else replace(found, unique=unique)

    return run_program(table, prepared, txn, local)


def explain(session: Session, piece: Piece) -> Rows:
    """Return the plan of a row-changing statement, as one row of text. Errors as for :func:`run`."""
    from trinity.engine.changing.statement import explain as explain_program
    from trinity.spark.frames import small_table
    from trinity.sql.changing.build_program import local_program, program

    if row_change_word(piece) == "TRUNCATE":
        raise TrinityError("NOT_SUPPORTED", "EXPLAIN TRUNCATE is not supported: TRUNCATE removes all rows, unread.")
    change = read(piece)
    table = target_table(session, change.target)
    here = partial(local_program, session, table, change)
    text = explain_program(table, partial(program, session, table, change), here)
    return small_table({"plan": "string"}, [(text,)])


_READS_VIEWS: Final = NotLocal("only Spark has the views that it reads")


def read(piece: Piece) -> RowChange:
    """Parse the clauses of a MERGE, UPDATE or DELETE. Raise SYNTAX_ERROR, NOT_SUPPORTED, INVALID_ARGUMENTS."""
    reader = Reader(piece)
    tables = common_tables(reader)
    names = [t.name.lower() for t in tables]
    if len(set(names)) < len(names):
        duplicate = next(n for n in names if names.count(n) > 1)
        raise TrinityError("INVALID_ARGUMENTS", f"WITH names '{duplicate}' twice; give each query its own name.")
    if reader.words("MERGE"):
        return read_merge(reader, tables)
    return read_update(reader, tables) if reader.words("UPDATE") else read_delete(reader, tables)


def _truncate(session: Session, piece: Piece, txn: TransactionId | None) -> Rows:
    """Run TRUNCATE TABLE t (M12)."""
    reader = Reader(piece)
    if common_tables(reader):
        raise TrinityError("SYNTAX_ERROR", "TRUNCATE takes no WITH.")
    from trinity.engine.changing.whole_table import truncate

    return counts(deleted=truncate(target_table(session, read_truncate(reader)), txn).rows)


def target_table(session: Session, parts: Sequence[str]) -> Table:
    """Return the table that a statement changes.

    Raises:
        TrinityError: NOT_SUPPORTED for a view or a table of Spark's; CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND or
            TABLE_NOT_FOUND, with the nearest name.
    """
    shown = ".".join(parts)
    if len(parts) == 1 and session.has_temp_view(parts[0]):
        raise TrinityError("NOT_SUPPORTED", f"The target is a view: '{shown}'. Change the table that it reads.")
    try:
        name = session.table_name(parts)
        table = session.find_table(name)
    except TrinityError as error:
        if error.code == "CATALOG_NOT_FOUND" and _is_spark_table(session, parts):
            raise _spark_table_refused(shown) from None
        raise
    if table is not None:
        return table
    raise _spark_table_refused(shown) if _is_spark_table(session, parts) else session.table_missing(name)


def _spark_table_refused(shown: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED", f"The target '{shown}' is a table of Spark's own; Trinity changes tables of its catalogs."
    )


def _is_spark_table(session: Session, parts: Sequence[str]) -> bool:
    spark = asked_spark(session)
    if spark is None:
        return False
    from trinity.spark_names import PySparkException

    try:
        with quiet():
            return bool(spark.catalog.tableExists(".".join(map(quoted, parts))))
    except PySparkException:  # no catalog or schema of that name
        return False
