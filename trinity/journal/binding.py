"""Parameters: numbered before a statement is rewritten, bound by their number after it.

A rewrite may repeat, reorder or drop parts of a statement, so the place of a ``?`` in the text says nothing afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import TokenType, exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.syntax.as_written import as_written
from trinity.syntax.parse import tokenize

__all__ = [
    "LOCKED_KEYS",
    "Bound",
    "bind",
    "generated",
    "locked_keys",
    "statements_in",
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


def statements_in(text: str, dialect: str) -> tuple[list[str], str]:
    """The statements of a text that are closed by a semicolon, and what follows the last one."""
    try:
        tokens = tokenize(text, dialect)
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
