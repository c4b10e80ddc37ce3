"""SQL parsed to a tree that can be written as it was: functions, types and operators keep their spelling."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Final

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.postgres import PostgresParser
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


_POSTGRES_SYNTAX: Final = frozenset({
    "CAST", "EXTRACT", "JSON_OBJECTAGG", "JSON_TABLE", "JSON_VALUE", "NORMALIZE", "OVERLAY", "POSITION", "SUBSTRING",
    "TRIM", "XMLELEMENT", "XMLTABLE",
})  # fmt: skip
"""PostgreSQL's functions with a grammar of their own."""


def _json_object(parser: PostgresParser) -> exp.Expr:
    """Parse ``json_object(keys, values)``, a function like others, or the constructor ``JSON_OBJECT(key: value)``."""
    start = parser._index
    arguments = parser._parse_csv(parser._parse_assignment)
    if parser._curr is not None and parser._curr.token_type is TokenType.R_PAREN:
        return exp.Anonymous(this="json_object", expressions=arguments)
    parser._retreat(start)
    found: exp.Expr = parser._parse_json_object(agg=False)
    return found


_UNITS: Final = frozenset({"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})
"""Words after the text of an interval that say what its numbers are."""


class AsWrittenPostgres(Postgres):
    """PostgreSQL's dialect without functions known to sqlglot, which would write ``to_hex(a)`` as ``HEX(a)``."""

    NORMALIZE_FUNCTIONS = False

    class Parser(PostgresParser):
        """The parser, which reads almost every function as an unknown name before parentheses."""

        FUNCTIONS = {k: v for k, v in PostgresParser.FUNCTIONS.items() if k == "ARRAY"}  # noqa: RUF012
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            **{k: v for k, v in PostgresParser.FUNCTION_PARSERS.items() if k in _POSTGRES_SYNTAX},
            "JSON_OBJECT": _json_object,
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            k: v for k, v in PostgresParser.NO_PAREN_FUNCTION_PARSERS.items() if k in ("ANY", "CASE", "VARIADIC")
        }

        def _parse_interval(
            self, require_interval: bool = True, parse_function_unit: bool = True
        ) -> exp.Add | exp.Interval | None:
            """Parse an interval; one without a unit is a text, of which sqlglot would keep the first number alone."""
            first, text, unit = self._curr, self._next, self._tokens[self._index + 2 : self._index + 3]
            alone = not unit or unit[0].text.upper() not in _UNITS
            if first is None or text is None or first.token_type is not TokenType.INTERVAL or not alone:
                return super()._parse_interval(require_interval, parse_function_unit)
            if text.token_type is not TokenType.STRING:
                return super()._parse_interval(require_interval, parse_function_unit)
            self._advance(2)
            return exp.cast(exp.Literal.string(text.text), exp.DType.INTERVAL)  # type: ignore[return-value]

    class Generator(PostgresGenerator):
        """The generator, which writes a power as the operator that was read."""

        MULTI_ARG_DISTINCT = True
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **PostgresGenerator.TRANSFORMS,
            exp.Pow: lambda self, power: self.binary(power, "^"),
            exp.CurrentTime: lambda *_: "CURRENT_TIME",
        }


_AS_WRITTEN: Final[dict[str, type[Dialect]]] = {"spark": AsWritten, "postgres": AsWrittenPostgres}


def as_written(dialect: str) -> str | type[Dialect]:
    """Return the dialect of sqlglot in which a text that is parsed and written again stays as it was."""
    return _AS_WRITTEN.get(dialect, dialect)


def parsed(text: str, dialect: str) -> exp.Expr:
    """Parse a statement, or an expression, in the dialect of :func:`as_written`. Raise SYNTAX_ERROR."""
    if dialect == "postgres":
        _check_misread(text)
    try:
        tree = sqlglot.parse_one(text, dialect=as_written(dialect))
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        where = f"Line {first.get('line')}, column {first.get('col')}: " if first else ""
        raise TrinityError("SYNTAX_ERROR", f"{where}{first.get('description') or error}") from error
    except (SqlglotError, ValueError) as error:
        raise TrinityError("SYNTAX_ERROR", f"The statement cannot be parsed: {error}.") from error
    return tree


def _check_misread(text: str) -> None:
    """Refuse what sqlglot reads as something else: the operator ``@``, ``0x1F`` and ``1_000``, and ``INT ARRAY``."""
    tokens = tokenize(text, "postgres")
    for before, token, following in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        what = ""
        if token.token_type is TokenType.PARAMETER and token.text == "@":
            what = "'@' before a value; write abs()"
        elif token.token_type in (TokenType.HEX_STRING, TokenType.BIT_STRING) and text[token.start] == "0":
            what = f"'{text[token.start : token.end + 1]}'; write the number by decimal digits"
        elif token.token_type is TokenType.NUMBER and re.match(r"[^\W\d]", text[token.end + 1 : token.end + 2]):
            what = f"'{text[token.start : token.end + 2]}…'; write the number by decimal digits"
        elif token.token_type is TokenType.ARRAY and (following is None or following.text not in ("[", "(")):
            named = before is not None and before.token_type in (TokenType.ALIAS, TokenType.DOT)
            what = "" if named else "ARRAY after a type; write []"
        if what:
            raise TrinityError("NOT_SUPPORTED", f"Line {token.line}: Trinity cannot rewrite {what}.")


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
