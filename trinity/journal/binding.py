"""Parameters: numbered before a statement is rewritten, bound by their number afterwards.

A rewrite may repeat, reorder or drop parts of a statement, so the order of the ``?`` in its text is lost.
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

LOCKED_KEYS: Final = -1
"""Position of the parameter that holds the hashes of the locked keys, or NULL when the whole table is locked."""


@dataclass(frozen=True)
class Bound:
    """SQL with parameters ``$1``, ``$2``, ..., and the positions of their values.

    Attributes:
        parameters: for ``$1``, ``$2``, ... the position (from 0) among the caller's parameters; or
            :data:`LOCKED_KEYS`. Positions after the caller's last one are those of the values computed beforehand.
    """

    sql: str
    parameters: tuple[int, ...] = ()


def statements_in(text: str, dialect: str) -> tuple[list[str], str]:
    """Return the statements of a text that end with a semicolon, and the text after the last one."""
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
    """Return the expression of the array of the locked keys' hashes; NULL when the whole table is locked."""
    return trees.cast(trees.parameter(LOCKED_KEYS + 1), "bigint[]")


def bind(tree: exp.Expr, dialect: str) -> Bound:
    """Generate the SQL; each occurrence of a parameter gets its own number, and so its own type.

    The tree's parameters are renumbered in place: do not use it afterwards.
    """
    order: list[int] = []
    for node in list(tree.find_all(exp.Parameter)):
        order.append(int(node.this.name) - 1)
        node.set("this", exp.Literal.number(len(order)))
    return Bound(generate_sql(tree, dialect), tuple(order))


def generate_sql(tree: exp.Expr, dialect: str) -> str:
    """Return the text of a tree, which must not be used afterwards.

    Raises:
        TrinityError: NOT_SUPPORTED for parts that sqlglot would leave out.
    """
    try:
        return tree.sql(dialect=as_written(dialect), comments=False, copy=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise TrinityError("NOT_SUPPORTED", f"The statement cannot be rewritten: {error}.") from error
