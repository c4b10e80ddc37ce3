"""Statements that maintain a table, or describe it: OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY and DESCRIBE DETAIL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import Token

from trinity.engine.reading.metadata import detail
from trinity.errors import TrinityError
from trinity.merge.properties import shown_properties
from trinity.spark.frames import small_table
from trinity.spi import CommitResult
from trinity.sql.queries.instants import instant
from trinity.sql.queries.references import resolve
from trinity.sql.queries.results import Rows
from trinity.syntax.reader import Piece, Reader

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.table import Table

Run = Callable[["Session"], Rows]
"""A function that runs a parsed statement."""


def maintenance_statement(session: Session, text: str, dialect: str, tokens: Sequence[Token]) -> Run | None:
    """Return a function that runs the statement; None for another statement, and for a table that is not Trinity's.

    Raises:
        TrinityError: SYNTAX_ERROR; NOT_SUPPORTED for a clause that Trinity lacks; SCHEMA_NOT_FOUND, TABLE_NOT_FOUND.
    """
    reader = Reader(Piece(text, dialect, tuple(tokens)))
    read = next((read for words, read in _STATEMENTS if any(reader.take(*spelling) for spelling in words)), None)
    if read is None or reader.done:  # DESCRIBE HISTORY without a name describes a table "history"
        return None
    name = reader.name("the name of a table")
    table = resolve(session, name)
    if table is None:
        if _would_be_trinitys(session, name):
            raise session.table_missing(session.table_name(name))
        return None
    run = read(table, reader)
    if not reader.done:
        raise reader.unexpected("the end of the statement")
    return run


def _would_be_trinitys(session: Session, name: Sequence[str]) -> bool:
    """Return whether the name of a missing table is for Trinity: not a view's, and no path such as delta.`/x`."""
    if len(name) == 1:
        return not session.has_temp_view(name[0])
    return len(name) == 2 and name[0].lower() in session.schemas()


_COMMIT: Final = {"version": "bigint", "rows": "bigint", "files": "bigint", "bytes": "bigint"}


def _commit_row(done: CommitResult) -> Rows:
    return small_table(_COMMIT, [(done.version, done.rows, done.files, done.bytes)])


def _optimize(table: Table, reader: Reader) -> Run:
    """Read OPTIMIZE t [FULL]."""
    reader.refuse(("WHERE", "ZORDER BY"), "Trinity sorts a table by its key: OPTIMIZE t FULL.")
    full = reader.take("FULL")
    return lambda _: _commit_row(table.compact(full=full))


def _vacuum(table: Table, reader: Reader) -> Run:
    """Read VACUUM t [RETAIN n HOURS]."""
    retain = dt.timedelta(days=7)
    if reader.take("RETAIN"):
        number = reader.until("HOURS", "HOUR", wanted="a number of hours").text
        if not number.replace(".", "", 1).isdigit():
            raise TrinityError("SYNTAX_ERROR", f"VACUUM: '{number}' is no number of hours; write RETAIN 168 HOURS.")
        if not (reader.take("HOURS") or reader.take("HOUR")):
            raise reader.unexpected("HOURS")
        retain = dt.timedelta(hours=float(number))
    reader.refuse(("DRY RUN", "LITE", "FULL"), "VACUUM t RETAIN n HOURS removes what no readable version needs.")

    def run(_: Session) -> Rows:
        done = table.vacuum(retain)
        row = (done.files, done.bytes, done.oldest_version)
        return small_table({"files": "bigint", "bytes": "bigint", "oldest_version": "bigint"}, [row])

    return run


def _restore(table: Table, reader: Reader) -> Run:
    """Read RESTORE [TABLE] t TO VERSION AS OF n | TO TIMESTAMP AS OF '...'."""
    reader.expect("TO")
    if reader.take("VERSION", "AS", "OF"):
        number = reader.rest("a version").text
        if not number.isdigit():
            raise TrinityError("INVALID_ARGUMENTS", f"Table '{table.name}': a version is a number, not '{number}'.")
        return lambda _: _commit_row(table.restore(int(number)))
    reader.expect("TIMESTAMP", "AS", "OF")
    moment = reader.rest("a time").text
    return lambda session: _commit_row(table.restore(timestamp=instant(session, moment)))


def _history(table: Table, reader: Reader) -> Run:
    """Read DESCRIBE HISTORY t [LIMIT n]."""
    limit = None
    if reader.take("LIMIT"):
        number = reader.rest("a number").text
        if not number.isdigit():
            raise TrinityError("SYNTAX_ERROR", f"DESCRIBE HISTORY: LIMIT takes a number, not '{number}'.")
        limit = int(number)
    return lambda _: table.history().to_arrow().slice(0, limit)


def _detail(table: Table, reader: Reader) -> Run:
    """Read DESCRIBE DETAIL t."""
    return lambda _: detail(table, table.format, shown_properties(table.definition))


_DESCRIBE: Final = ("DESCRIBE", "DESC")
_STATEMENTS: Final[Sequence[tuple[Sequence[tuple[str, ...]], Callable[[Table, Reader], Run]]]] = (
    ([("OPTIMIZE", "TABLE"), ("OPTIMIZE",)], _optimize),
    ([("VACUUM", "TABLE"), ("VACUUM",)], _vacuum),
    ([("RESTORE", "TABLE"), ("RESTORE",)], _restore),
    ([(word, "HISTORY") for word in _DESCRIBE], _history),
    ([(word, "DETAIL") for word in _DESCRIBE], _detail),
)
