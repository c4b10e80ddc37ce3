"""The clauses that read changes: Spark 4.2's ``t CHANGES FROM …`` and Delta's ``table_changes('t', …)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlglot import TokenType, exp

from trinity.errors import TrinityError

if TYPE_CHECKING:
    from sqlglot.parsers.spark import SparkParser

CLAUSE: Final = "trinity_changes"
"""Key of the :class:`ChangesClause` in the ``meta`` of a node."""
TABLE_CHANGES: Final = "TABLE_CHANGES"
"""The name of the function ``table_changes``."""
_FORM: Final = "CHANGES FROM VERSION 3 TO VERSION 9, or table_changes('t', 3, 9)"


@dataclass(frozen=True)
class Edge:
    """One end of a range of changes.

    Attributes:
        value: SQL text of a version or of a timestamp.
        is_time: True for a timestamp.
        inclusive: True to include the changes of that version, or at that time.
    """

    value: str
    is_time: bool
    inclusive: bool = True


@dataclass(frozen=True)
class ChangesClause:
    """The changes that a clause asks for.

    Attributes:
        start: where they begin.
        end: where they end; None for the newest version.
        options: the options of WITH, names in lower case.
    """

    start: Edge
    end: Edge | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def changes_clause(parser: SparkParser) -> exp.Version | None:
    """Parse ``CHANGES FROM …`` as a version clause with a :class:`ChangesClause` in its ``meta``.

    Return None if something else is next.

    Raises:
        TrinityError: SYNTAX_ERROR.
    """
    if not _words(parser, "CHANGES", "FROM"):
        return None
    start = _edge(parser)
    end = _edge(parser) if _words(parser, "TO") else None
    found = exp.Version(this="CHANGES", kind="FROM")
    found.meta[CLAUSE] = ChangesClause(start, end, _options(parser))
    return found


def _edge(parser: SparkParser) -> Edge:
    for word in ("VERSION", "TIMESTAMP"):
        if _words(parser, word):
            value = _value(parser)
            exclusive = _words(parser, "EXCLUSIVE")
            if not exclusive:
                _words(parser, "INCLUSIVE")
            return Edge(value, word == "TIMESTAMP", not exclusive)
    raise _refused("VERSION or TIMESTAMP is missing")


def _options(parser: SparkParser) -> dict[str, str]:
    found: dict[str, str] = {}
    if not _words(parser, "WITH", "("):
        return found
    while not _words(parser, ")"):
        name = parser._curr
        if name is None:
            raise _refused("')' is missing")
        parser._advance()
        _words(parser, "=")
        value = parser._curr
        if value is None or value.token_type in (TokenType.R_PAREN, TokenType.COMMA):
            raise _refused(f"option '{name.text}' has no value")
        parser._advance()
        found[name.text.lower()] = value.text
        _words(parser, ",")
    return found


def table_changes(parser: SparkParser) -> exp.Expr:
    """Parse the call ``table_changes(table, start[, end])`` after its opening parenthesis.

    As in Delta both ends are inclusive; they are versions, or timestamps as text.
    """
    first = parser._tokens[parser._index - 2]
    arguments: list[tuple[exp.Expr, str]] = []
    while parser._curr and parser._curr.token_type != TokenType.R_PAREN:
        before = parser._curr
        value = parser._parse_bitwise()
        if value is None:
            break
        arguments.append((value, parser.sql[before.start : parser._prev.end + 1]))
        parser._match(TokenType.COMMA)
    call = exp.Anonymous(this=first.text, expressions=[value for value, _ in arguments])
    last = parser._curr or parser._prev
    call.meta.update(start=first.start, end=last.end)
    if len(arguments) in (2, 3) and all(_is_text(value) for value, _ in arguments[:1]):
        edges = [Edge(text, _is_text(value)) for value, text in arguments[1:]]
        call.meta[CLAUSE] = ChangesClause(edges[0], edges[1] if len(edges) > 1 else None)
    return call


def _is_text(value: exp.Expr) -> bool:
    return isinstance(value, exp.Literal) and bool(value.is_string)


def _value(parser: SparkParser) -> str:
    first: Any = parser._curr
    if first is None or parser._parse_bitwise() is None:
        raise _refused("a version or a time is missing")
    return parser.sql[first.start : parser._prev.end + 1]


def _words(parser: SparkParser, *words: str) -> bool:
    return bool(parser._match_text_seq(*words))


def _refused(what: str) -> TrinityError:
    return TrinityError("SYNTAX_ERROR", f"In a CHANGES clause {what}; write {_FORM}.")
