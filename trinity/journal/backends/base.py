"""The interface of a backend of :mod:`trinity.dbapi`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trinity.journal.batches import RowError, returns_rows
from trinity.spi import TransactionId

__all__ = ["Backend", "Described", "Result", "one_by_one"]

Described = tuple[str, Any, int | None, int | None, int | None, int | None, bool | None]
"""One item of PEP 249's ``description``."""


@dataclass(frozen=True)
class Result:
    """Rows and counts that a statement gave.

    Attributes:
        description: the columns; None when it returned no rows.
        rows: the rows.
        rowcount: rows found or changed; -1 when that is not known.
    """

    description: Sequence[Described] | None
    rows: Iterator[tuple[Any, ...]]
    rowcount: int


def one_by_one(backend: Backend, sql: str, rows: Sequence[Sequence[Any]], txn: TransactionId | None = None) -> int:
    """Runs a statement once for each list of parameters, all with one ``txn``; the sum of the counts.

    Raises:
        RowError: a list fails, or the statement returns rows (INVALID_ARGUMENTS).
    """
    total = 0
    for row, values in enumerate(rows, 1):
        try:
            result = backend.execute(sql, values, txn)
            if result.description is not None:
                raise returns_rows()
        except Exception as error:
            raise RowError(row, len(rows), error) from error
        total += max(result.rowcount, 0)
    return total


class Backend(Protocol):
    """Runs statements for one connection.

    Attributes:
        name: what messages and prompts call it.
        dialect: sqlglot's name of its SQL.
        autocommit: whether each statement is its own transaction.
    """

    name: str
    dialect: str
    autocommit: bool

    def execute(self, sql: str, parameters: Sequence[Any], txn: TransactionId | None = None) -> Result:
        """Runs one statement with ``?`` parameters; nothing is done when its ``txn`` is recorded already (L4)."""

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]], txn: TransactionId | None = None) -> int:
        """Runs one statement for each list of parameters, of which there is one at least; the sum of the counts.

        Raises:
            RowError: one of the lists fails.
            TrinityError: INVALID_ARGUMENTS for a ``txn`` of what cannot be one commit.
        """

    def explain(self, sql: str) -> list[str]:
        """The statements that :meth:`execute` would send, in order."""

    def tables(self) -> list[tuple[str, str, str]]:
        """(schema, name, kind) of the tables that users see."""

    def columns(self, table: str) -> list[tuple[str, str]]:
        """(name, type) of a table's columns."""

    def archive(self, table: str, retention: str | None) -> tuple[int, int]:
        """Fills subsequent versions of old rows; (rows filled, rows dropped)."""

    def commit(self) -> None:
        """Ends the transaction."""

    def rollback(self) -> None:
        """Takes the transaction back."""

    def close(self) -> None:
        """Ends the connection; an open transaction is taken back."""
