"""The interface of a backend of :mod:`trinity.dbapi`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, Protocol, TypeAlias

import pyarrow as pa

from trinity.journal.batches import RowError, refused_rows
from trinity.spi import TransactionId

Described = tuple[str, Any, int | None, int | None, int | None, int | None, bool | None]
"""One item of PEP 249's ``description``."""

IngestMode: TypeAlias = Literal["append", "create", "replace", "create_append"]
"""What a bulk insertion does if the table exists, and if it does not."""


class ArrowRows(Iterator[tuple[Any, ...]]):
    """Rows that are Arrow data. Those that are not fetched yet can be taken as tuples, or as Arrow data."""

    def __init__(
        self,
        schema: pa.Schema,
        pages: Iterator[pa.RecordBatch],
        tuples: Callable[[pa.RecordBatch], Iterator[tuple[Any, ...]]],
    ) -> None:
        self._schema, self._pages, self._as_tuples = schema, pages, tuples
        self._page, self._fetched = pa.RecordBatch.from_pylist([], schema), 0
        self._tuples: Iterator[tuple[Any, ...]] = iter(())

    def __next__(self) -> tuple[Any, ...]:
        while (row := next(self._tuples, None)) is None:
            self._page, self._fetched = next(self._pages), 0
            self._tuples = self._as_tuples(self._page)
        self._fetched += 1
        return row

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows that are not fetched yet, which from then on count as fetched."""
        pages = chain([self._page.slice(self._fetched)], self._pages)
        self._page, self._fetched = self._page.slice(0, 0), 0
        self._pages, self._tuples = iter(()), iter(())
        return pa.RecordBatchReader.from_batches(self._schema, pages)


@dataclass(frozen=True)
class Result:
    """The rows and the count of a statement.

    Attributes:
        description: the columns; None for a statement without rows.
        rows: the rows; :class:`ArrowRows` if they are available as Arrow data.
        rowcount: number of rows found or changed; -1 when it is not known.
    """

    description: Sequence[Described] | None
    rows: Iterator[tuple[Any, ...]]
    rowcount: int


def one_by_one(backend: Backend, sql: str, rows: Sequence[Sequence[Any]], txn: TransactionId | None = None) -> int:
    """Run a statement once for each list of parameters, all with one ``txn``; return the sum of the counts.

    Raises:
        RowError: a list fails, or the statement returns rows (INVALID_ARGUMENTS).
    """
    total = 0
    for row, values in enumerate(rows, 1):
        try:
            result = backend.execute(sql, values, txn)
            if result.description is not None:
                raise refused_rows()
        except Exception as error:
            raise RowError(row, len(rows), error) from error
        total += max(result.rowcount, 0)
    return total


class Backend(Protocol):
    """The backend of one connection, which runs its statements.

    Attributes:
        name: its name in messages and prompts.
        dialect: sqlglot's name of its SQL.
        autocommit: True when each statement is its own transaction.
    """

    name: str
    dialect: str
    autocommit: bool

    def execute(self, sql: str, parameters: Sequence[Any], txn: TransactionId | None = None) -> Result:
        """Run one statement with ``?`` parameters; do nothing when its ``txn`` is recorded already (L4)."""

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]], txn: TransactionId | None = None) -> int:
        """Run one statement for each list of parameters, at least one; return the sum of the counts.

        Raises:
            RowError: one of the lists fails.
            TrinityError: INVALID_ARGUMENTS for a ``txn`` when the lists cannot be one commit.
        """

    def ingest(self, table: Sequence[str], data: Any, mode: IngestMode) -> int:
        """Store the rows of a data frame; return their number."""

    def explain(self, sql: str) -> list[str]:
        """Return the statements that :meth:`execute` would send, in order."""

    def tables(self) -> list[tuple[str, str, str]]:
        """Return (schema, name, kind) of the tables that users see."""

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Return (name, type) of a table's columns."""

    def archive(self, table: str, retention: str | None) -> tuple[int, int]:
        """Archive a journalled table; return (rows filled, rows dropped)."""

    def commit(self) -> None:
        """Commit the transaction."""

    def rollback(self) -> None:
        """Roll back the transaction."""

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
