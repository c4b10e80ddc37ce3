"""Queries that Spark can parse and sqlglot cannot: Spark's own parser finds the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import Token, TokenType

from trinity.engine.spark.reach import elements
from trinity.engine.spark.remote import is_remote
from trinity.errors import TrinityError
from trinity.sql.parsing.names import read_name
from trinity.syntax.parse import tokenize

if TYPE_CHECKING:
    from trinity.session import Session

__all__ = ["FoundName", "names_by_spark"]

FoundName = tuple[list[str], int, int, bool]
"""(parts, first character, character after the last, True if the keyword TABLE is before it)."""


def names_by_spark(session: Session, text: str, refusal: TrinityError) -> list[FoundName]:
    """Return the table names of a query in Spark's dialect, except names of its WITH queries.

    Args:
        session: the session whose Spark parses the query.
        text: the query.
        refusal: the error to raise when Spark cannot parse it either.
    """
    from py4j.protocol import Py4JJavaError

    from trinity.spark_names import PySparkException

    if is_remote(session.spark):
        raise refusal
    try:
        plan = session.spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except (PySparkException, Py4JJavaError):
        raise refusal from None
    tokens = tokenize(text)
    ctes: set[str] = set()
    found = [_name(tokens, start) for start in _relations(plan, ctes)]
    return [f for f in found if not (len(f[0]) == 1 and f[0][0].lower() in ctes)]


def _name(tokens: list[Token], start: int) -> FoundName:
    at = next(i for i, t in enumerate(tokens) if t.start >= start)
    parts, end = read_name(tokens, at)
    after_table = at > 0 and tokens[at - 1].token_type is TokenType.TABLE
    return parts, tokens[at].start, tokens[end - 1].end + 1, after_table


def _relations(plan: Any, ctes: set[str]) -> Iterator[int]:
    """Yield first characters of the unresolved relations of a plan, with those of subqueries and WITH queries."""
    kind = plan.getClass().getSimpleName()
    if kind == "UnresolvedRelation":
        yield plan.origin().startIndex().get()
    if kind == "UnresolvedWith":
        for pair in elements(plan.cteRelations()):
            ctes.add(str(pair.productElement(0)).lower())
            yield from _relations(pair.productElement(1), ctes)
    for child in [*elements(plan.children()), *elements(plan.subqueries())]:
        yield from _relations(child, ctes)
