"""Spark's SQL, parsed to a tree that can be written as it was: functions, types and operators keep their spelling."""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from trinity.errors import TrinityError
from trinity.syntax.parse import TrinitySpark, tokenize

_KEYWORD_SYNTAX: Final = frozenset(
    {"CAST", "TRY_CAST", "EXTRACT", "TRIM", "OVERLAY", "POSITION", "CEIL", "FLOOR", "SUBSTRING", "SUBSTR"}
)
"""Functions with a grammar of their own."""
_NESTED: Final = frozenset({"ARRAY", "MAP", "STRUCT"})
"""Functions after which a bracket takes an element."""
_TYPES: Final = frozenset({exp.DataType.Type.TIME, exp.DataType.Type.CHAR, exp.DataType.Type.VARCHAR})
"""Types that sqlglot writes as other types, since Spark used to lack them."""


class AsWritten(TrinitySpark):
    """Spark's dialect without functions known to sqlglot, which would write ``date_format(a, 'y')`` with ``'yyyy'``."""

    NORMALIZE_FUNCTIONS = False

    class Parser(TrinitySpark.Parser):
        """The parser, which reads almost every function as an unknown name before parentheses."""

        FUNCTIONS = {k: v for k, v in SparkParser.FUNCTIONS.items() if k in _NESTED}  # noqa: RUF012
        FUNCTION_PARSERS = {k: v for k, v in SparkParser.FUNCTION_PARSERS.items() if k in _KEYWORD_SYNTAX}  # noqa: RUF012

    class Generator(TrinitySpark.Generator):
        """The generator, which writes types under the names that were read."""

        TYPE_MAPPING = {k: v for k, v in SparkGenerator.TYPE_MAPPING.items() if k not in _TYPES}  # noqa: RUF012


def as_written(dialect: str) -> str | type[Dialect]:
    """Return the dialect of sqlglot in which a text that is parsed and written again stays as it was."""
    return AsWritten if dialect == "spark" else dialect


def parsed(text: str, dialect: str) -> exp.Expr:
    """Parse a statement, or an expression, in the dialect of :func:`as_written`. Raise SYNTAX_ERROR."""
    try:
        tree = sqlglot.parse_one(text, dialect=as_written(dialect))
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        where = f"Line {first.get('line')}, column {first.get('col')}: " if first else ""
        raise TrinityError("SYNTAX_ERROR", f"{where}{first.get('description') or error}") from error
    except (SqlglotError, ValueError) as error:
        raise TrinityError("SYNTAX_ERROR", f"The statement cannot be parsed: {error}.") from error
    return tree


def tree_as_written(text: str, kind: type[exp.Expr] | None) -> exp.Expr:
    """Return the tree of a statement, or of an expression (``exp.Condition``), which :func:`written` writes as it was.

    Raises:
        TrinityError: NOT_SUPPORTED if the text can be parsed only with sqlglot's knowledge of functions.
    """
    parser, tokens = AsWritten().parser(), tokenize(text)
    try:
        [tree] = parser.parse(tokens, text) if kind is None else parser.parse_into(kind, tokens, text)
    except ParseError as error:
        raise TrinityError(
            "NOT_SUPPORTED",
            "A predicate with a subquery is used as a value beside something that cannot be written again as it was: "
            f"{error}. Write the predicate as EXISTS.",
        ) from error
    assert tree is not None
    return tree


def written(tree: exp.Expr) -> str:
    """Return the text of a tree of :func:`tree_as_written`."""
    return tree.sql(dialect=AsWritten)
