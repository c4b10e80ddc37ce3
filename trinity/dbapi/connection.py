"""PEP 249's connection, and how one is made."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from trinity.dbapi import errors
from trinity.dbapi.cursor import Cursor
from trinity.dbapi.errors import InterfaceError, api
from trinity.depth import room
from trinity.errors import TrinityError
from trinity.journal.backends.base import Backend
from trinity.journal.model import ModelSource, load_model
from trinity.secrets import keep

__all__ = ["Connection", "connect"]


@api
class Connection:
    """A connection to PostgreSQL or to a warehouse of Trinity tables.

    Leaving it as a context manager commits, or rolls back after an error, and closes.

    Attributes:
        backend: what runs the statements.
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
        """Whether each statement is its own transaction. On Trinity tables always."""
        return self.backend.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self.check_open()
        self.backend.autocommit = value

    def cursor(self) -> Cursor:
        """A new cursor."""
        self.check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Any = ()) -> Cursor:
        """Runs a statement on a new cursor, and returns it."""
        return self.cursor().execute(operation, parameters)

    def commit(self) -> None:
        """Ends the transaction."""
        self.check_open()
        self.backend.commit()

    def rollback(self) -> None:
        """Takes the transaction back. Raises NotSupportedError on Trinity tables."""
        self.check_open()
        self.backend.rollback()

    def close(self) -> None:
        """Closes; what was not committed is taken back."""
        self.check_open()
        self._closed = True
        self.backend.close()

    @room()
    def explain(self, operation: str) -> list[str]:
        """The statements that would be sent for one, in order: what is locked, what is appended, what is checked."""
        self.check_open()
        return self.backend.explain(operation)

    def archive(self, table: str, retention: str | None = None) -> tuple[int, int]:
        """Archives a journalled table: subsequent versions of superseded rows are filled in.

        Args:
            table: the journalled table.
            retention: also drop versions that were superseded longer ago: an interval such as ``30 days`` for TIMESTAMP
                versions, a number of versions for BIGINT. Reads of the past then miss them.

        Returns:
            how many rows were filled, and how many dropped.
        """
        self.check_open()
        return self.backend.archive(table, retention)

    def check_open(self) -> None:
        """Raises InterfaceError on a closed connection."""
        if self._closed:
            raise InterfaceError("INVALID_ARGUMENTS", "The connection is closed.")


@api
def connect(
    model: ModelSource | None = None,
    *,
    warehouse: str | Path | None = None,
    autocommit: bool | None = None,
    **options: Any,
) -> Connection:
    """Opens a connection.

    Args:
        model: which tables are journalled, and where PostgreSQL is: a path, ``inline:`` and JSON, or a dict.
        warehouse: folder of Trinity tables; with a model its journalled tables are Trinity tables.
        autocommit: whether each statement is its own transaction; by default not, and always so on Trinity tables.
        **options: on PostgreSQL libpq's parameters (``host``, ``user``, ``password``, ...), which win over the model's;
            on a warehouse the arguments of :func:`trinity.connect`.

    Raises:
        InterfaceError: the model is wrong, or does not fit the database.
        OperationalError: the server cannot be reached, or the model not be read.
    """
    keep(options)
    if warehouse is not None:
        from trinity.journal.backends.warehouse import WarehouseBackend

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
        from trinity.journal.backends.postgres import PostgresBackend
    except ModuleNotFoundError as error:
        raise TrinityError(
            "CONFIGURATION_INVALID", "PostgreSQL needs psycopg: pip install 'trinity-merge[postgres]'."
        ) from error
    return Connection(PostgresBackend(loaded, options, bool(autocommit)))
