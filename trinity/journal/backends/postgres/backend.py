"""PostgreSQL through psycopg 3: locks, then the rewritten statement, then checks, in the caller's transaction."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.archive import archive_statements
from trinity.journal.backends.base import Described, IngestMode, Result, one_by_one
from trinity.journal.backends.postgres.batches import as_query
from trinity.journal.backends.postgres.catalog import with_catalog
from trinity.journal.backends.postgres.locks import Locks, fail
from trinity.journal.batches import check_counts, first_failing, refused_rows
from trinity.journal.binding import LOCKED_KEYS
from trinity.journal.model import LoadedModel
from trinity.journal.refusals import words_of
from trinity.journal.rewrite import Rewritten, rewrite
from trinity.journal.scopes import Scopes
from trinity.journal.tables import JournalTable
from trinity.spi import TransactionId
from trinity.syntax.parameters import number

_CACHED_STATEMENTS: Final = 500
"""Maximum number of rewritten statements that a connection caches."""


class PostgresBackend:
    """One connection to PostgreSQL with a model. libpq's parameters in ``options`` take precedence over the model's.

    Raises:
        TrinityError: CONFIGURATION_INVALID when the model does not fit the database.
        psycopg.Error: when the server cannot be reached.
    """

    name = "postgresql"
    dialect = "postgres"

    def __init__(self, loaded: LoadedModel, options: Mapping[str, Any], autocommit: bool) -> None:
        self._loaded = loaded
        self._options = {**(loaded.options or {}), **options}
        # no server-side preparation: a prepared SELECT * fails after ALTER TABLE
        try:
            self._connection = psycopg.connect(
                **self._options, autocommit=True, cursor_factory=psycopg.RawCursor, prepare_threshold=None
            )
        except (OSError, TypeError, ValueError) as error:  # psycopg's own errors for wrong parameters
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"There is no connecting with the parameters {', '.join(self._options)}: {error}.",
            ) from error
        self._locks = Locks(self._connection, self._options)
        try:
            self._model = with_catalog(loaded.journal, self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._connection.autocommit = autocommit
        self._rewritten: dict[str, Rewritten] = {}
        self._stale = False

    @property
    def autocommit(self) -> bool:
        """True when each statement is its own transaction."""
        return self._connection.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._connection.autocommit = value

    # -- statements -------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[Any], txn: TransactionId | None = None) -> Result:
        """Run one statement. Raise TrinityError, NOT_SUPPORTED for a ``txn``; psycopg.Error."""
        _refuse_txn(txn)
        found = self._rewrite(sql)
        if len(parameters) != found.count:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"The statement has {found.count} parameters, and {len(parameters)} values are given.",
            )
        if found.kind == "change":
            with self._one_transaction():
                result = self._change(found, list(parameters))
        else:
            known = dict(enumerate(parameters))  # EXPLAIN locks no keys, and computes none: NULL stands for them
            result = self._run(found.sql, [known.get(i) for i in found.parameters], found)
        self._note_stale_catalog(found, sql)
        return result

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]], txn: TransactionId | None = None) -> int:
        """Run a statement with many lists of parameters: INSERT, UPDATE, DELETE and MERGE for all of them, or none.

        Raises:
            RowError: a list fails. To find which one, the statement is tried with some of the lists, and rolled back.
            TrinityError, psycopg.Error: the statement or the transaction fails, whatever the lists; NOT_SUPPORTED for a
                ``txn``.
        """
        _refuse_txn(txn)
        found = self._rewrite(sql)
        check_counts(rows, found.count)
        if found.returns:
            raise refused_rows()
        if words_of(number(sql, self.dialect))[0] not in ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH"):
            return one_by_one(self, sql, rows)
        try:
            with self._all_or_nothing():
                count = self._send_all(found, sql, rows)
                return count if count is not None else one_by_one(self, sql, rows)
        except (TrinityError, psycopg.Error) as error:
            if not _is_row_error(error):
                raise

            def attempt(count: int) -> None:
                with self._all_or_nothing():
                    self._send_all(found, sql, rows[:count])
                    raise psycopg.Rollback

            row = first_failing(len(rows), attempt)
            if row is None:
                raise
            raise row from error

    def _send_all(self, found: Rewritten, sql: str, rows: Sequence[Sequence[Any]]) -> int | None:
        """Run the statement for all lists at once, and return the count; None if each list needs its own statement."""
        if found.kind == "plain":
            first = self.execute(sql, rows[0])
            if first.description is not None:
                raise refused_rows()
            cursor = self._connection.cursor()
            if rows[1:]:
                cursor.executemany(found.sql, rows[1:])
            return max(first.rowcount, 0) + max(cursor.rowcount, 0)
        query = as_query(sql, found.table, rows) if found.table is not None else None
        return self.execute(*query).rowcount if query is not None else None

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Roll back the context's statements on an error; the transaction around it, open or begun here, stays open."""
        if self._connection.info.transaction_status == TransactionStatus.IDLE and not self._connection.autocommit:
            self._connection.execute("SHOW transaction_isolation")  # begins a transaction without taking a snapshot
        with self._connection.transaction():
            yield

    def _rewrite(self, sql: str) -> Rewritten:
        if self._stale and self._can_read_catalog():
            self._refresh()
        found = self._rewritten.get(sql)
        if found is None:
            try:
                found = rewrite(sql, self._model, "postgres")
            except TrinityError as error:
                if error.code not in ("TABLE_NOT_FOUND", "COLUMN_NOT_FOUND") or not self._can_read_catalog():
                    raise
                self._refresh()  # another connection may have changed the table
                found = rewrite(sql, self._model, "postgres")
            if len(self._rewritten) >= _CACHED_STATEMENTS:
                self._rewritten.clear()
            if len(sql) < 10_000:
                self._rewritten[sql] = found
        return found

    def _can_read_catalog(self) -> bool:
        """Return True when the catalog can be read: not in a failed transaction."""
        return self._connection.info.transaction_status != TransactionStatus.INERROR

    def _refresh(self) -> None:
        self._rewritten.clear()
        with self._one_transaction(always=self._connection.info.transaction_status == TransactionStatus.IDLE):
            self._model = with_catalog(self._loaded.journal, self._connection)
        self._stale = False

    def _note_stale_catalog(self, found: Rewritten, sql: str) -> None:
        """Mark the catalog as stale after DDL, and after other statements that change the meaning of names."""
        word = sql.lstrip("( \n\t")[:8].upper()
        if found.kind == "ddl" or word.startswith(
            ("CREATE", "ALTER", "DROP", "ROLLBACK", "ABORT", "SET", "RESET", "DISCARD")
        ):
            self._stale = True
            self._rewritten.clear()

    @contextlib.contextmanager
    def _one_transaction(self, always: bool = False) -> Iterator[None]:
        """Run several statements as one transaction, where autocommit would make one of each."""
        status = self._connection.info.transaction_status
        if status == TransactionStatus.IDLE and (always or self._connection.autocommit):
            with self._connection.transaction():
                yield
        else:
            yield

    def _run(self, sql: str, values: Sequence[Any], found: Rewritten) -> Result:
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql, values or None)
        except pg.UniqueViolation as error:
            raise _duplicate_key(error, found.table) from error
        except pg.CardinalityViolation as error:
            raise _second_change(error, found.table) from error
        return Result(_description(cursor), iter(cursor) if cursor.description else iter(()), cursor.rowcount)

    def _change(self, found: Rewritten, parameters: list[Any]) -> Result:
        if found.computed is not None:
            cursor = self._connection.cursor()
            values = [parameters[i] for i in found.computed.parameters]
            cursor.execute(found.computed.sql, values or None)
            parameters += [value for (value,) in cursor]
        locked = self._locks.take(found.locks, parameters)
        values = [locked if i == LOCKED_KEYS else parameters[i] for i in found.parameters]
        result = self._run(found.sql, values, found)
        self._check_unique(found)
        if found.counted:
            [(count,)] = result.rows
            return Result(None, iter(()), count)
        return result

    def _check_unique(self, found: Rewritten) -> None:
        for check in found.checks:
            cursor = self._connection.cursor()
            values = cursor.execute(check.query.sql).fetchone()
            if values is not None:
                fail(self._connection, "23505", f"Key ({', '.join(check.columns)}) of {check.table} is not unique.")

    def ingest(self, table: Sequence[str], data: Any, mode: IngestMode) -> int:
        """Raise NOT_SUPPORTED."""
        raise TrinityError("NOT_SUPPORTED", "adbc_ingest() is of Trinity tables; on PostgreSQL use executemany().")

    def explain(self, sql: str) -> list[str]:
        """Return the statements that would be sent, in order."""
        found = self._rewrite(sql)
        sent = [found.computed.sql] if found.computed is not None else []
        for lock in found.locks:
            sent += self._locks.explain(lock)
        return [*sent, found.sql, *(check.query.sql for check in found.checks)]

    # -- the catalog ------------------------------------------------------------------------------------

    def tables(self) -> list[tuple[str, str, str]]:
        """Return (schema, name, kind); journalled tables replace ordinary ones with their names."""
        self._refresh()
        hidden = {(t.backend_schema, t.name) for t in self._model.tables}
        text = """SELECT table_schema, table_name, table_type FROM information_schema.tables
                  WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"""
        with self._one_transaction(always=True):
            plain = [r for r in self._connection.execute(text) if (r[0], r[1]) not in hidden]
        found = [(t.schema, t.name, "JOURNALLED TABLE") for t in self._model.tables if t.columns]
        return sorted([*((r[0], r[1], r[2]) for r in plain), *found])

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Return (name, type) of a table's columns. Raise TABLE_NOT_FOUND."""
        found = self.execute(f"SELECT * FROM {table} LIMIT 0", ())
        return [(d[0], self._type_name(d[1])) for d in found.description or ()]

    def _type_name(self, oid: int) -> str:
        [(name,)] = self._connection.execute("SELECT format_type($1::oid, NULL)", [oid])
        return str(name)

    # -- transactions -----------------------------------------------------------------------------------

    def commit(self) -> None:
        """Commit the transaction."""
        self._connection.commit()

    def rollback(self) -> None:
        """Roll back the transaction."""
        self._connection.rollback()
        self._stale = True

    def close(self) -> None:
        """Close the connection; the server rolls back an open transaction."""
        self._locks.close()
        self._connection.close()

    def archive(self, table: str, retention: str | None) -> tuple[int, int]:
        """Fill subsequent versions of superseded rows, and drop those that are older than the retention."""
        named = trees.table_named(table, "postgres")
        found = Scopes(self._model, "postgres").find(named)
        if found is None or not found.columns:
            raise TrinityError("TABLE_NOT_FOUND", f"There is no journalled table '{table}'.")
        with self._one_transaction():
            self._locks.take_table(found)
            counts = []
            for statement, values in archive_statements(found, retention):
                counts.append(self._connection.execute(statement, values or None).rowcount)
        return counts[0], counts[1] if len(counts) > 1 else 0


def _refuse_txn(txn: TransactionId | None) -> None:
    if txn is not None:
        raise TrinityError(
            "NOT_SUPPORTED",
            "PostgreSQL records no txn. Write its version into a table of your own in the same transaction, and look "
            "there before a retry.",
        )


def _is_row_error(error: TrinityError | psycopg.Error) -> bool:
    """Return True when one row may be the cause, and not another transaction, the connection or the statement."""
    if isinstance(error, (psycopg.OperationalError, psycopg.InternalError)):
        return False
    return isinstance(error, TrinityError) or not (error.sqlstate or "").startswith("42")


def _description(cursor: psycopg.Cursor[Any]) -> list[Described] | None:
    if cursor.description is None:
        return None
    return [
        (c.name, c.type_code, c.display_size, c.internal_size, c.precision, c.scale, None) for c in cursor.description
    ]


def _duplicate_key(error: psycopg.Error, table: JournalTable | None) -> psycopg.Error:
    """Return a violation of the journal's key as an error about the table that the user knows."""
    if table is None or error.diag.table_name != table.journal:
        return error
    found = re.match(
        rf"Key \((.*), {re.escape(table.version)}\)=\((.*), [^,]*\) already", error.diag.message_detail or ""
    )
    key = f" ({found[1]}) = ({found[2]})" if found else ""
    return pg.UniqueViolation(f"{table} has a live row with this key already, or the statement writes it twice:{key}")


def _second_change(error: psycopg.Error, table: JournalTable | None) -> psycopg.Error:
    if table is None:
        return error
    return pg.CardinalityViolation(
        f"{error.diag.message_primary}; or the statement changes a row of {table} a second time: have the source match "
        "each row once."
    )
