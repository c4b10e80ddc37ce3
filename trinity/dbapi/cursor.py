"""PEP 249's cursor."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trinity.dbapi.errors import InterfaceError, ProgrammingError, api
from trinity.depth import room
from trinity.journal.backends.base import Described, Result

if TYPE_CHECKING:
    from trinity.dbapi.connection import Connection

__all__ = ["Cursor"]

Row = tuple[Any, ...]


@api
class Cursor:
    """Runs statements and fetches their rows. PEP 249's optional ``callproc`` and ``nextset`` are not there.

    Attributes:
        connection: whose cursor it is.
        arraysize: how many rows :meth:`fetchmany` fetches by default.
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
        """Rows found or changed by the last statement; -1 before the first, and when it is not known."""
        return self._rowcount

    def close(self) -> None:
        """The cursor cannot be used afterwards."""
        self._closed = True
        self._result = None

    # -- statements -------------------------------------------------------------------------------------

    @room()
    def execute(self, operation: str, parameters: Iterable[Any] = ()) -> Cursor:
        """Runs one statement.

        Args:
            operation: SQL, with ``?`` for each parameter.
            parameters: their values.

        Returns:
            the cursor itself.

        Raises:
            Error: whatever went wrong; see :mod:`trinity.dbapi.errors`.
        """
        self._check()
        self._result, self._rowcount = None, -1
        self._result = self.connection.backend.execute(operation, _values(parameters))
        self._rowcount = self._result.rowcount
        return self

    @room()
    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[Any]]) -> Cursor:
        """Runs one statement for each list of parameters; ``rowcount`` is the sum.

        An INSERT of one row of VALUES is one statement with all lists: all rows are stored, or none. On PostgreSQL so
        are others; on Trinity tables each list is a statement of its own, and those before a failure stay.

        Raises:
            Error: as :meth:`execute`, naming the position of the list, from 1; ProgrammingError when the statement
                returns rows.
        """
        self._check()
        self._result, self._rowcount = None, -1
        rows = _lists(seq_of_parameters)
        self._rowcount = self.connection.backend.execute_many(operation, rows) if rows else 0
        return self

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing; types are those of the values."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing; values come whole."""

    # -- rows -------------------------------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        """The next row; None after the last."""
        rows = self._rows()
        return next(rows, None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, :attr:`arraysize` of them unless told."""
        rows = self._rows()
        return list(itertools.islice(rows, self.arraysize if size is None else size))

    def fetchall(self) -> list[Row]:
        """The rows that are left."""
        rows = self._rows()
        return list(rows)

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def _rows(self) -> Iterator[Row]:
        self._check()
        if self._result is None or self._result.description is None:
            raise ProgrammingError("INVALID_ARGUMENTS", "There are no rows to fetch: execute a query first.")
        return self._result.rows

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("INVALID_ARGUMENTS", "The cursor is closed.")
        self.connection.check_open()


def _values(parameters: Any) -> list[Any]:
    if isinstance(parameters, (str, bytes)) or not hasattr(parameters, "__iter__") or hasattr(parameters, "keys"):
        raise ProgrammingError(
            "INVALID_ARGUMENTS",
            f"Parameters are a sequence of values, one for each '?', not {type(parameters).__name__}.",
        )
    return list(parameters)


def _lists(given: Any) -> list[Sequence[Any]]:
    rows = _values(given)
    if set(map(type, rows)) <= {tuple, list}:
        return rows
    found: list[Sequence[Any]] = []
    for values in rows:
        try:
            found.append(_values(values))
        except ProgrammingError as error:
            raise ProgrammingError(error.code, f"Row {len(found) + 1}: {error.message}") from error
    return found
