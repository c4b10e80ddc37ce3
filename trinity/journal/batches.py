"""Many lists of parameters for one INSERT, as the rows of one statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import Token, TokenType, exp

from trinity.errors import TrinityError
from trinity.syntax.parameters import number


class RowError(Exception):
    """The error of one list of parameters.

    Attributes:
        row: its position, from 1.
        count: the number of lists.
        error: the error, of Trinity or of a backend's driver.
    """

    def __init__(self, row: int, count: int, error: Exception) -> None:
        super().__init__(f"{RowError.place(row, count)}{error}")
        self.row, self.count, self.error = row, count, error

    @staticmethod
    def place(row: int, count: int) -> str:
        """Return the beginning of its message."""
        return f"Row {row} of {count}: "


@dataclass(frozen=True)
class Item:
    """One value of the row.

    Attributes:
        text: the text as written.
        tokens: the tokens of the text.
        first: position of its first parameter.
        count: the number of its parameters.
    """

    text: str
    tokens: tuple[Token, ...]
    first: int
    count: int

    @property
    def bare(self) -> bool:
        """True for a lone parameter."""
        return self.count == 1 and len(self.tokens) == 1

    @property
    def default(self) -> bool:
        """True for the keyword DEFAULT."""
        return len(self.tokens) == 1 and self.tokens[0].text.upper() == "DEFAULT" and _is_word(self.tokens[0])

    @property
    def constant(self) -> bool:
        """True for a literal."""
        return len(self.tokens) == 1 and self.tokens[0].token_type in _LITERALS

    def filled(self, values: Sequence[str], dialect: str) -> str:
        """Return its text with the values of the row's parameters in place of each ``?``."""
        return number(self.text, dialect).filled(values[self.first : self.first + self.count])


@dataclass(frozen=True)
class Batch:
    """``INSERT INTO target [(columns)] VALUES (items)``.

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

    An INSERT with a query among its values is no batch: the query has to see the rows before. Raise SYNTAX_ERROR for a
    text that is not one statement.
    """
    tokens = list(number(sql, dialect).tokens)
    if [t.text.upper() for t in tokens[:2]] != ["INSERT", "INTO"]:
        return None
    at = 3 if len(tokens) > 2 and tokens[2].token_type is TokenType.TABLE else 2
    first, at = at, _name_end(tokens, at)
    target = tokens[first:at]
    columns: list[exp.Identifier] | None = []
    if target and at < len(tokens) and tokens[at].token_type is TokenType.L_PAREN:
        end = _closing(tokens, at)
        columns, at = _names(tokens[at + 1 : end]), end + 1
    if not target or columns is None or at + 2 >= len(tokens) or tokens[at].token_type is not TokenType.VALUES:
        return None
    row = tokens[at + 1 :]
    if row[0].token_type is not TokenType.L_PAREN or _closing(row, 0) != len(row) - 1:
        return None
    items = _items(row[1:-1], sql, dialect)
    return Batch(_text(target, sql), tuple(columns), items) if items else None


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
    """Find the first row that fails, by binary search.

    Args:
        count: the number of rows.
        attempt: raises when one of the first n rows fails.

    Returns:
        the error; None when no row fails.
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
    """Return the error of an attempt with the first rows; None when it succeeds."""
    try:
        attempt(count)
    except Exception as error:
        return error
    return None


# -- tokens ---------------------------------------------------------------------------------------------

_LITERALS: Final = frozenset({
    TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE,
})  # fmt: skip
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})

_OF_QUERIES: Final = frozenset({
    TokenType.SELECT, TokenType.VALUES, TokenType.TABLE, TokenType.OVER, TokenType.DISTINCT, TokenType.ALL,
})  # fmt: skip
"""Words whose meaning in a row of VALUES differs from that in a SELECT over rows."""


def _is_word(token: Token) -> bool:
    return token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and token.text[:1].isidentifier()


def _is_name(token: Token) -> bool:
    return token.token_type is TokenType.IDENTIFIER or (_is_word(token) and token.token_type is not TokenType.VALUES)


def _name_end(tokens: Sequence[Token], at: int) -> int:
    """Return the index after a dotted name that begins at a token."""
    while at < len(tokens) and _is_name(tokens[at]):
        at += 1
        if at >= len(tokens) or tokens[at].token_type is not TokenType.DOT:
            break
        at += 1
    return at


def _closing(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the token that closes an opening one; the number of tokens when none does."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].token_type in _OPENING) - (tokens[place].token_type in _CLOSING)
        if depth == 0:
            return place
    return len(tokens)


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at commas outside of brackets."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if token.token_type is TokenType.COMMA and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _text(tokens: Sequence[Token], sql: str) -> str:
    return sql[tokens[0].start : tokens[-1].end + 1]


def _names(tokens: Sequence[Token]) -> list[exp.Identifier] | None:
    """Return the names of a column list; None for anything else."""
    found = _split(tokens)
    if not all(len(name) == 1 and _is_name(name[0]) for name in found):
        return None
    return [exp.Identifier(this=n.text, quoted=n.token_type is TokenType.IDENTIFIER) for (n,) in found]


def _items(tokens: Sequence[Token], sql: str, dialect: str) -> tuple[Item, ...]:
    """Return the values of a row; empty when one of them cannot be used in a SELECT over rows."""
    found: list[Item] = []
    first = 0
    for item in _split(tokens):
        if not item or item[-1].token_type is TokenType.STAR or any(t.token_type in _OF_QUERIES for t in item):
            return ()
        text = _text(item, sql)
        count = number(text, dialect).count
        found.append(Item(text, tuple(item), first, count))
        first += count
    return tuple(found)
