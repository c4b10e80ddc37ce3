"""Many lists of parameters for one INSERT, as the rows of one statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import TokenType, exp

from trinity.errors import TrinityError
from trinity.syntax.parameters import number
from trinity.syntax.reader import Piece, Reader


class RowError(Exception):
    """The error of one list of parameters.

    Attributes:
        row: its position, from 1.
        count: the number of lists.
        error: the error, of Trinity or of a backend's driver.
    """

    def __init__(self, row: int, count: int, error: Exception) -> None:
        super().__init__(f"{RowError.prefix(row, count)}{error}")
        self.row, self.count, self.error = row, count, error

    @staticmethod
    def prefix(row: int, count: int) -> str:
        """Return the beginning of the error's message."""
        return f"Row {row} of {count}: "


@dataclass(frozen=True)
class Item:
    """One value of the row of VALUES.

    Attributes:
        piece: its text and tokens.
        first: position of its first parameter among those of the row, from 0.
        count: number of its parameters.
    """

    piece: Piece
    first: int
    count: int

    @property
    def bare(self) -> bool:
        """True for a lone parameter."""
        return self.count == 1 and len(self.piece.tokens) == 1

    @property
    def default(self) -> bool:
        """True for the keyword DEFAULT."""
        return self.piece.is_word("DEFAULT")

    @property
    def constant(self) -> bool:
        """True for a literal."""
        return len(self.piece.tokens) == 1 and self.piece.tokens[0].token_type in _LITERALS

    def filled(self, values: Sequence[str]) -> str:
        """Return the item's text with a value in place of each ``?``; ``values`` are those of the whole row."""
        return number(self.piece.text, self.piece.dialect).filled(values[self.first : self.first + self.count])


@dataclass(frozen=True)
class Batch:
    """An ``INSERT INTO target [(columns)] VALUES (items)`` with one row.

    Attributes:
        target: the table as written.
        columns: the columns' names; empty without a list.
        items: the values of the only row.
    """

    target: str
    columns: tuple[exp.Identifier, ...]
    items: tuple[Item, ...]


def batch_of(sql: str, dialect: str) -> Batch | None:
    """Return the statement if many rows of parameters can replace its only row of VALUES; else None.

    An INSERT with a query among its values is no batch: the query must see the rows inserted before. Raise SYNTAX_ERROR
    for a text that is not one statement.
    """
    reader = Reader(Piece(sql, dialect, number(sql, dialect).tokens))
    try:
        reader.expect("INSERT", "INTO")
        reader.take("TABLE")
        first = reader.at
        reader.name()
        target = reader.read_since(first).text
        columns = [_name(p) for p in Reader(reader.inside("a column")).commas("a column")] if reader.opens() else []
        reader.expect("VALUES")
        row = Reader(reader.inside("a value")).commas("a value")
    except TrinityError:  # another statement, or a wrong one, which then raises its own error
        return None
    items = _items(row) if reader.done else ()
    return Batch(target, tuple(columns), items) if items else None


def check_counts(rows: Sequence[Sequence[Any]], count: int) -> None:
    """Raise RowError with INVALID_ARGUMENTS for the first list of another length."""
    if set(map(len, rows)) <= {count}:
        return
    for row, values in enumerate(rows, 1):
        if len(values) != count:
            message = f"The statement has {count} parameters, and {len(values)} values are given."
            raise RowError(row, len(rows), TrinityError("INVALID_ARGUMENTS", message))


def refused_rows() -> TrinityError:
    """Return the error of executemany() with a statement that returns rows."""
    return TrinityError("INVALID_ARGUMENTS", "executemany() of a statement that returns rows; use execute().")


def first_failing(count: int, attempt: Callable[[int], None]) -> RowError | None:
    """Return the error of the first row that fails, by binary search; None if no row fails.

    ``attempt(n)`` raises an error if one of the first n rows fails.
    """
    error = error_of(attempt, count)
    if error is None:
        return None
    passes, fails = 0, count
    while fails - passes > 1:
        middle = (passes + fails) // 2
        found = error_of(attempt, middle)
        if found is None:
            passes = middle
        else:
            fails, error = middle, found
    return RowError(fails, count, error)


def error_of(attempt: Callable[[int], None], count: int) -> Exception | None:
    """Return the error of an attempt with the first ``count`` rows; None if it succeeds."""
    try:
        attempt(count)
    except Exception as error:
        return error
    return None


_LITERALS: Final = frozenset({
    TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE,
})  # fmt: skip
_OF_QUERIES: Final = frozenset({
    TokenType.SELECT, TokenType.VALUES, TokenType.TABLE, TokenType.OVER, TokenType.DISTINCT, TokenType.ALL,
})  # fmt: skip
"""Words whose meaning in a row of VALUES differs from that in a SELECT over rows."""


def _name(column: Piece) -> exp.Identifier:
    """Return the name of a column. Raise SYNTAX_ERROR for anything else."""
    reader = Reader(column)
    name = reader.name()
    if len(column.tokens) > 1:
        raise reader.unexpected("','")
    return exp.Identifier(this=name[0], quoted=column.tokens[0].token_type is TokenType.IDENTIFIER)


def _items(row: Sequence[Piece]) -> tuple[Item, ...]:
    """Return the values of a row; empty when one of them cannot be used in a SELECT over rows."""
    found: list[Item] = []
    for piece in row:
        kinds = [token.token_type for token in piece.tokens]
        if kinds[-1] is TokenType.STAR or not _OF_QUERIES.isdisjoint(kinds):
            return ()
        first = found[-1].first + found[-1].count if found else 0
        found.append(Item(piece, first, number(piece.text, piece.dialect).count))
    return tuple(found)
