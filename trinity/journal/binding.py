"""Parameters: numbered before a statement is rewritten, bound by their number after it.

A rewrite may repeat, reorder or drop parts of a statement, so the place of a ``?`` in the text says nothing afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, TokenError, UnsupportedError

from trinity.errors import TrinityError
from trinity.journal import trees
from trinity.sql.as_written import as_written

__all__ = [
    "LOCKED_KEYS",
    "Bound",
    "Numbered",
    "bind",
    "generated",
    "locked_keys",
    "number",
    "statements_in",
    "tokens_of",
]

LOCKED_KEYS: Final = -1
"""Position of the parameter that holds the hashes of the locked keys, or NULL when the whole table is locked."""


@dataclass(frozen=True)
class Bound:
    """SQL whose parameters are written ``$1``, ``$2``, ... and where their values come from.

    Attributes:
        sql: the text.
        parameters: for ``$1``, ``$2``, ... the position (from 0) among the caller's parameters; or
            :data:`LOCKED_KEYS`. Positions after the caller's last one are those of the values computed beforehand.
    """

    sql: str
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True)
class Numbered:
    """A statement whose ``?`` became ``$1``, ``$2``, ...

    Attributes:
        text: the statement.
        count: how many parameters it has.
        tokens: the tokens of the original text.
        pieces: the original text, cut where a ``?`` stands.
    """

    text: str
    count: int
    tokens: tuple[Token, ...]
    pieces: tuple[str, ...]

    def filled(self, values: Sequence[str]) -> str:
        """The statement with a text in the place of each ``?``; blanks keep it apart from its neighbours."""
        found: list[str] = []
        for piece, value, following in zip(self.pieces[:-1], values, self.pieces[1:], strict=True):
            before = " " if _IN_WORD.search(piece) or piece.endswith(("'", '"')) else ""
            after = "" if not following or following[0].isspace() else " "
            found += [piece, before, value, after]
        return "".join([*found, self.pieces[-1]])


_IN_WORD: Final = re.compile(r"[\w$]\Z")
"""The end of a word, which a text that follows would lengthen."""


def tokens_of(sql: str, dialect: str) -> list[Token]:
    """The tokens of a text. Raises SYNTAX_ERROR for an unfinished string, name or comment."""
    lexer = Dialect.get_or_raise(dialect)
    try:
        tokens = list(lexer.tokenize(sql))
        if len(tokens) > 1 and tokens[0].token_type in (TokenType.SHOW, TokenType.COMMAND):
            # sqlglot keeps what follows such a word as one string; under another word it is read as usual
            first = tokens[0]
            masked = sql[: first.start] + "x" * len(first.text) + sql[first.end + 1 :]
            tokens = [first, *list(lexer.tokenize(masked))[1:]]
        return tokens
    except TokenError as error:
        raise TrinityError("SYNTAX_ERROR", f"The statement cannot be read: {error}.") from error


def number(sql: str, dialect: str) -> Numbered:
    """Numbers the ``?`` of one statement; those in strings, names and comments are none.

    Raises:
        TrinityError: SYNTAX_ERROR for no statement, more than one, or ``$1`` in the text.
    """
    tokens = tokens_of(sql, dialect)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise TrinityError("SYNTAX_ERROR", "There is no statement in the text.")
    pieces: list[str] = []
    start = 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.token_type is TokenType.SEMICOLON:
            raise TrinityError(
                "SYNTAX_ERROR", f"Line {token.line}: execute() runs one statement, and a second begins here."
            )
        if token.token_type is TokenType.PARAMETER and token.text == "$":
            raise TrinityError("SYNTAX_ERROR", f"Line {token.line}: parameters are written '?', not '$1'.")
        if _is_parameter(token, before):
            place = token.start + token.text.index("?")
            pieces.append(sql[start:place])
            start = place + 1
    pieces.append(sql[start : tokens[-1].end + 1])
    found = Numbered("", len(pieces) - 1, tuple(tokens), tuple(pieces))
    # sqlglot reads $1,$2 as the beginning of a string between dollars; filled() sets them apart
    return replace(found, text=found.filled([f"${n + 1}" for n in range(found.count)]))


def _is_parameter(token: Token, before: Token | None) -> bool:
    """Whether a token is a parameter, or begins or ends with one: ``?::`` and, after no operand, ``?|`` of ``?||``."""
    if token.token_type in (TokenType.PLACEHOLDER, TokenType.QDCOLON):
        return token.text in ("?", "?::")
    if token.token_type not in (TokenType.QMARK_PIPE, TokenType.QMARK_AMP, TokenType.AT_QMARK):
        return False
    return before is None or not _ends_operand(before)


def _ends_operand(token: Token) -> bool:
    """Whether a token can end an operand, so that an operator follows."""
    if token.token_type in _OPERAND_ENDS:
        return True
    return bool(_IN_WORD.search(token.text)) and token.text.upper() not in _BEFORE_OPERANDS


_OPERAND_ENDS: Final = frozenset({
    TokenType.STRING, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.PLACEHOLDER,
})  # fmt: skip

_BEFORE_OPERANDS: Final = frozenset({
    "SELECT", "DISTINCT", "ALL", "WHERE", "HAVING", "ON", "BY", "AND", "OR", "NOT", "CASE", "WHEN", "THEN", "ELSE",
    "BETWEEN", "LIKE", "ILIKE", "FROM", "RETURNING", "LIMIT", "OFFSET", "IN", "USING",
})  # fmt: skip
"""Words after which an operand stands."""


def statements_in(text: str, dialect: str) -> tuple[list[str], str]:
    """The statements of a text that are closed by a semicolon, and what follows the last one."""
    try:
        tokens = tokens_of(text, dialect)
    except TrinityError:  # a string or comment goes on in the next line
        return [], text
    found: list[str] = []
    start, empty = 0, True
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if not empty:
                found.append(text[start : token.start].strip())
            start, empty = token.end + 1, True
        else:
            empty = False
    return found, "" if empty else text[start:]


def locked_keys() -> exp.Expr:
    """The hashes of the locked keys, as an array; NULL when the whole table is locked."""
    return trees.cast(trees.parameter(LOCKED_KEYS + 1), "bigint[]")


def bind(tree: exp.Expr, dialect: str) -> Bound:
    """Generates the SQL; each occurrence of a parameter becomes one of its own, so that each has its own type.

    The tree is used up: its parameters are numbered anew.
    """
    order: list[int] = []
    for node in list(tree.find_all(exp.Parameter)):
        order.append(int(node.this.name) - 1)
        node.set("this", exp.Literal.number(len(order)))
    return Bound(generated(tree, dialect), tuple(order))


def generated(tree: exp.Expr, dialect: str) -> str:
    """The text of a tree that is not needed any more.

    Raises:
        TrinityError: NOT_SUPPORTED for what sqlglot would leave out.
    """
    try:
        return tree.sql(dialect=as_written(dialect), comments=False, copy=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise TrinityError("NOT_SUPPORTED", f"The statement cannot be rewritten: {error}.") from error
