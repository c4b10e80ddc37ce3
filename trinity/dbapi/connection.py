"""PEP 249's connection and cursor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trinity.conversions import as_pandas
from trinity.dbapi import errors
from trinity.dbapi.errors import InterfaceError, NotSupportedError, ProgrammingError, api, translated
from trinity.depth import deep_recursion
from trinity.errors import TrinityError
from trinity.journal import ModelSource, load_model
from trinity.journal.backends.base import ArrowRows, Backend, Described, IngestMode, Result
from trinity.secrets import keep
from trinity.spi import TransactionId
from trinity.syntax.parameters import positional

if TYPE_CHECKING:
    import pandas as pd


Row = tuple[Any, ...]


@api
class Connection:
    """A connection to PostgreSQL or to a warehouse of Trinity tables.

    As a context manager it commits at the end, or rolls back after an error, and closes.

    Attributes:
        backend: the backend that runs the statements.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._closed = False

    def __enter__(self) -> Connection:
        self.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._closed:
            return
        try:
            if not self.autocommit:
                self.commit() if error is None else self.rollback()
        finally:
            self.close()

    @property
    def autocommit(self) -> bool:
        """True when each statement is its own transaction. On Trinity tables always."""
        return self.backend.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self.check_open()
        self.backend.autocommit = value

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self.check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Any = (), *, txn: TransactionId | None = None) -> Cursor:
        """Run a statement on a new cursor, as :meth:`Cursor.execute`, and return the cursor."""
        return self.cursor().execute(operation, parameters, txn=txn)

    def commit(self) -> None:
        """Commit the transaction."""
        self.check_open()
        self.backend.commit()

    def rollback(self) -> None:
        """Roll back the transaction. Raise NotSupportedError on Trinity tables."""
        self.check_open()
        self.backend.rollback()

    def close(self) -> None:
        """Close the connection; what was not committed is rolled back."""
        self.check_open()
        self._closed = True
        self.backend.close()

    @deep_recursion()
    def explain(self, operation: str) -> list[str]:
        """Return the statements that would be sent for one, in order: locks, appends and checks."""
        self.check_open()
        return self.backend.explain(operation)

    def archive(self, table: str, retention: str | None = None) -> tuple[int, int]:
        """Archive a journalled table: fill in the subsequent versions of superseded rows.

        Args:
            table: the journalled table.
            retention: also drop versions that were superseded longer ago: an interval such as ``30 days`` for TIMESTAMP
                versions, a number of versions for BIGINT; on Trinity tables always a duration, which is required. Reads
                of the past then lack them.

        Returns:
            the number of filled rows, and of dropped ones.
        """
        self.check_open()
        return self.backend.archive(table, retention)

    def check_open(self) -> None:
        """Raise InterfaceError on a closed connection.

        For Trinity's own modules.
        """
        if self._closed:
            raise InterfaceError("INVALID_ARGUMENTS", "The connection is closed.")


@api
class Cursor:
    """A cursor, which runs statements and fetches their rows. It lacks PEP 249's optional ``callproc`` and ``nextset``.

    Attributes:
        connection: the connection that made the cursor.
        arraysize: number of rows that :meth:`fetchmany` fetches by default.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._closed = False
        self._result: Result | None = None
        self._rowcount = -1

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def description(self) -> Sequence[Described] | None:
        """(name, type code, ...) of each column; None after a statement without rows."""
        return self._result.description if self._result is not None else None

    @property
    def rowcount(self) -> int:
        """Number of rows found or changed by the last statement; -1 before the first, and when it is not known."""
        return self._rowcount

    def close(self) -> None:
        """Close the cursor, which cannot be used afterwards."""
        self._closed = True
        self._result = None

    # -- statements -------------------------------------------------------------------------------------

    @deep_recursion()
    def execute(self, operation: str, parameters: Any = (), *, txn: TransactionId | None = None) -> Cursor:
        """Run one statement.

        Args:
            operation: SQL, with ``?`` or ``:name`` for each parameter.
            parameters: a value for each ``?``, or a mapping with the values of the names.
            txn: (application, version) of an INSERT, MERGE, UPDATE, DELETE or TRUNCATE on Trinity tables: a retry with
                the same or a lower version does nothing, and its ``rowcount`` is 0 (L4).

        Returns:
            the cursor itself.

        Raises:
            Error: one of the classes in :mod:`trinity.dbapi.errors`.
        """
        backend = self._begin()
        text, bound = _bound(operation, backend.dialect, parameters)
        self._result = backend.execute(text, bound(parameters), txn)
        self._rowcount = self._result.rowcount
        return self

    @deep_recursion()
    def executemany(
        self, operation: str, seq_of_parameters: Iterable[Any], *, txn: TransactionId | None = None
    ) -> Cursor:
        """Run one statement for each list of parameters; ``rowcount`` is the sum.

        An INSERT of one row of VALUES stores the rows of all lists, or none. So do all INSERT, UPDATE, DELETE and MERGE
        on PostgreSQL. Otherwise each list is its own statement, and those before a failure stay.

        Args:
            operation: SQL, with ``?`` or ``:name`` for each parameter.
            seq_of_parameters: the lists of values, or mappings with the values of the names.
            txn: as for :meth:`execute`; only if all lists are stored by one commit.

        Raises:
            Error: as :meth:`execute`, naming the position of the list, from 1; ProgrammingError when the statement
                returns rows.
        """
        backend = self._begin()
        if rows := _list(seq_of_parameters):
            text, bound = _bound(operation, backend.dialect, rows[0])
            self._rowcount = backend.execute_many(text, _lists(rows, bound), txn)
        else:
            self._rowcount = 0
        return self

    def adbc_ingest(
        self,
        table_name: str,
        data: Any,
        mode: IngestMode = "create",
        *,
        catalog_name: str | None = None,
        db_schema_name: str | None = None,
    ) -> int:
        """Store the rows of a data frame in a Trinity table, by one commit, and return their number, as ADBC does.

        Args:
            table_name: the table's own name.
            data: Arrow data (pyarrow, Polars, DuckDB, anything with ``__arrow_c_stream__``), a pandas DataFrame, or a
                list of dicts.
            mode: ``create`` makes a plain table with the columns of the data; ``append`` appends to an existing table,
                or upserts into a keyed one; ``create_append`` creates the table only if there is none; ``replace``
                drops an existing table and creates a new one, after the data has been checked.
            catalog_name: the table's catalog; by default the current one.
            db_schema_name: the table's schema; by default the current one, or ``default`` if ``catalog_name`` is given.

        Raises:
            Error: TABLE_ALREADY_EXISTS, TABLE_NOT_FOUND, TYPE_MISMATCH; NotSupportedError on PostgreSQL.
        """
        backend = self._begin()
        schema = db_schema_name or ("default" if catalog_name else None)
        parts = [part for part in (catalog_name, schema, table_name) if part]
        self._rowcount = backend.ingest(parts, data, mode)
        return self._rowcount

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing; the values have the types."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing; values are fetched whole."""

    # -- rows -------------------------------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        """Return the next row; None after the last."""
        return next(self._rows(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next rows, by default :attr:`arraysize` of them."""
        count = self.arraysize if size is None else size
        if count < 0:
            raise ProgrammingError("INVALID_ARGUMENTS", f"fetchmany() of {count} rows; give a number from 0.")
        return list(itertools.islice(self._rows(), count))

    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
        return list(self._rows())

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """Return all remaining rows as a stream of Arrow record batches, computed as they are read.

        A TIMESTAMP is an instant there, as in :meth:`trinity.Table.to_arrow`.

        Raises:
            NotSupportedError: the rows are PostgreSQL's, or have a type that Arrow lacks.
        """
        rows = self._rows()
        if not isinstance(rows, ArrowRows):
            raise NotSupportedError(
                "NOT_SUPPORTED",
                "Rows of PostgreSQL, and those with a VARIANT or an interval, are no Arrow data; use fetchall().",
            )
        return rows.to_reader()

    def fetch_arrow_table(self) -> pa.Table:
        """Return all remaining rows as Arrow data. Raises as :meth:`fetch_record_batch`."""
        return self.fetch_record_batch().read_all()

    def fetch_df(self) -> pd.DataFrame:
        """Return all remaining rows as a pandas DataFrame. Raises as :meth:`fetch_record_batch`."""
        return as_pandas(self.fetch_record_batch())

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def _begin(self) -> Backend:
        """Forget the last result, and return the backend for another statement."""
        self._check()
        self._result, self._rowcount = None, -1
        return self.connection.backend

    def _rows(self) -> Iterator[Row]:
        self._check()
        if self._result is None or self._result.description is None:
            raise ProgrammingError("INVALID_ARGUMENTS", "There are no rows to fetch: execute a query first.")
        return self._result.rows

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("INVALID_ARGUMENTS", "The cursor is closed.")
        self.connection.check_open()


def _bound(operation: str, dialect: str, parameters: Any) -> tuple[str, Callable[[Any], list[Any]]]:
    """Return a statement with ``?``, and a function that turns parameters of this form into the list of its values."""
    return positional(operation, dialect) if isinstance(parameters, Mapping) else (operation, _list)


def _list(parameters: Any) -> list[Any]:
    if isinstance(parameters, (str, bytes)) or not hasattr(parameters, "__iter__") or hasattr(parameters, "keys"):
        raise ProgrammingError(
            "INVALID_ARGUMENTS",
            f"Parameters are a sequence of values, one for each '?', not {type(parameters).__name__}.",
        )
    return list(parameters)


def _lists(rows: list[Any], bound: Callable[[Any], list[Any]]) -> list[Sequence[Any]]:
    if set(map(type, rows)) <= {tuple, list}:
        return rows
    found: list[Sequence[Any]] = []
    for values in rows:
        try:
            found.append(bound(values))
        except TrinityError as error:
            raise translated(TrinityError(error.code, f"Row {len(found) + 1}: {error.message}")) from error
    return found


@api
def connect(
    model: ModelSource | None = None,
    *,
    warehouse: str | Path | None = None,
    autocommit: bool | None = None,
    **options: Any,
) -> Connection:
    """Open a connection.

    Args:
        model: the journalled tables, and the address of PostgreSQL: a path, ``inline:`` and JSON, or a dict.
        warehouse: folder of Trinity tables; with a model its journalled tables are Trinity tables.
        autocommit: True for each statement as its own transaction; by default False, on Trinity tables always True.
        **options: on PostgreSQL libpq's parameters (``host``, ``user``, ``password``, ...), which take precedence over
            the model's; on a warehouse the arguments of :func:`trinity.connect`.

    Raises:
        InterfaceError: the model is wrong, or does not fit the database.
        OperationalError: the server cannot be reached, or the model cannot be read.
    """
    keep(options)
    if warehouse is not None:
        from trinity.journal.backends.warehouse.backend import WarehouseBackend

        if autocommit is False:
            raise TrinityError("NOT_SUPPORTED", "On Trinity tables every statement is its own transaction.")
        return Connection(WarehouseBackend(warehouse, load_model(model) if model is not None else None, options))
    if model is None:
        raise TrinityError("CONFIGURATION_INVALID", "Nothing to connect to: give model=, warehouse= or both.")
    loaded = load_model(model)
    if loaded.options is None and not options:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            "The model names no backend: give jdbcUrl, dataSource or connection in its operand, or a warehouse.",
        )
    try:
        from trinity.journal.backends.postgres.backend import PostgresBackend
    except ModuleNotFoundError as error:
        raise TrinityError(
            "CONFIGURATION_INVALID", "PostgreSQL needs psycopg: pip install 'trinity-merge[postgres]'."
        ) from error
    return Connection(PostgresBackend(loaded, options, bool(autocommit)))
