"""Queries: Trinity's tables become merged reads; everything else goes to Spark as the user wrote it.

If Spark can parse a query and sqlglot cannot, Spark's parser finds the tables in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from sqlglot import Token, TokenType

from trinity.calls import spark_errors
from trinity.engine.sql_permissions import guard_statement
from trinity.errors import TrinityError
from trinity.names import split_name
from trinity.spark.reach import elements
from trinity.spark.remote import is_remote, query_over
from trinity.spark.settings import pinned
from trinity.sql.queries.reads import Read, Reads
from trinity.sql.queries.references import Edit, apply_edits, resolve
from trinity.sql.queries.results import Rows
from trinity.syntax.parse import Statement, parse, tokenize
from trinity.syntax.quoting import quoted
from trinity.syntax.reader import Piece, Reader

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

    from trinity.session import Session

NO_VIEWS: Final[Mapping[str, DataFrame]] = {}


def run_query(session: Session, statement: Statement) -> DataFrame:
    """Run any statement that Spark can run, over Trinity's tables and Spark's own.

    The DataFrame is lazy for a query, and pinned to the versions that were newest at this call.

    Raises:
        TrinityError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND, COLUMN_NOT_FOUND, TYPE_MISMATCH, SYNTAX_ERROR, ...
    """
    return run_query_of(session, statement)[0]


def run_query_of(session: Session, statement: Statement) -> tuple[DataFrame, tuple[Read, ...]]:
    """Run a statement as :func:`run_query`; also return the Trinity tables that it reads at their newest version."""
    with closing(Reads(session)) as reads:
        text = reads.rewritten(statement.to_spark())
        return run_text(session, text, reads.views), reads.newest


def explain(session: Session, statement: Statement) -> Rows:
    """Run EXPLAIN [EXTENDED | CODEGEN | COST | FORMATTED] query: the plans of Trinity's reads, then Spark's plan."""
    from trinity.spark.frames import small_table

    first = explained(statement)[0]
    query = parse(statement.text[first.start :], statement.dialect).to_spark()
    with closing(Reads(session)) as reads:
        text = reads.rewritten(query)
        plan = run_text(session, statement.text[: first.start] + text)
        words = reads.plan_texts()
        if not words:
            return plan
        found = "\n\n".join([*words, *(row[0] for row in plan.collect())])
        return small_table({"plan": "string"}, [(found,)])


def explained_query(statement: Statement) -> Statement | None:
    """Return the query of a bare EXPLAIN; None for one with a mode, which is about Spark's plan."""
    first = explained(statement)[0]
    return parse(statement.text[first.start :], statement.dialect) if first is statement.tokens[1] else None


def explained(statement: Statement) -> tuple[Token, ...]:
    """Return the tokens of the statement after EXPLAIN and its mode; all tokens if nothing follows."""
    tokens = statement.tokens
    modes = ("EXTENDED", "CODEGEN", "COST", "FORMATTED")
    first = 2 if len(tokens) > 2 and tokens[1].text.upper() in modes else 1
    return tokens[first:] or tokens


def run_unparsed(session: Session, text: str, refusal: TrinityError) -> DataFrame:
    """Run a query in Spark's dialect that sqlglot refused. Raise ``refusal``, its error, if Spark refuses it, too."""
    with closing(Reads(session)) as reads:
        edits: list[Edit] = []
        for parts, start, end, after_table in _names_by_spark(session, text, refusal):
            table = resolve(session, parts)
            if table is not None:
                view = reads.newest_view(table)
                edits.append((start, end, view if after_table else f"({view} AS {quoted(parts[-1])})"))
        return run_text(session, apply_edits(text, edits), reads.views)


def run_text(session: Session, text: str, views: Mapping[str, DataFrame] = NO_VIEWS) -> DataFrame:
    """Run Spark SQL text as it is. Raise Spark's errors as Trinity's.

    ``views`` are the rows of the temporary views that the text names: name -> rows. The views may be dropped before the
    rows of the result are computed.
    """
    with pinned(session.spark):
        return run_as_set(session, text, views)


def run_as_set(session: Session, text: str, views: Mapping[str, DataFrame] = NO_VIEWS) -> DataFrame:
    """Run Spark SQL text under the user's settings instead of Trinity's: SET and RESET must change those."""
    guard_statement(session, text)
    spark = session.spark  # raises its error, if Spark is refused, before pyspark is imported
    from trinity.spark_names import PySparkException

    with spark_errors():
        try:
            return query_over(spark, text, views)
        except PySparkException as error:
            if (missing := _missing_table(session, error)) is not None:
                raise missing from error
            raise


def _missing_table(session: Session, error: PySparkException) -> TrinityError | None:
    """Return the error for a table that neither Trinity nor Spark has, with Trinity's nearest name.

    None for other errors of Spark.
    """
    condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
    if condition == "REQUIRES_SINGLE_PART_NAMESPACE":  # Spark read the catalog as a part of the schema
        text = f"{parameters.get('namespace', '')}.`_`"
    elif condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        text = parameters.get("relationName", "")
    else:
        return None
    try:
        return session.table_missing(session.table_name(split_name(text)))
    except TrinityError as other:  # an unknown catalog, or an invalid name
        return other if other.code == "CATALOG_NOT_FOUND" else None


_FoundName = tuple[Sequence[str], int, int, bool]
"""A table name in a text: (parts, start offset, end offset, whether the keyword TABLE precedes it)."""


def _names_by_spark(session: Session, text: str, refusal: TrinityError) -> list[_FoundName]:
    """Return the table names of a query, except those of its WITH. Raise ``refusal`` if Spark refuses it, too."""
    from py4j.protocol import Py4JJavaError

    from trinity.spark_names import PySparkException

    if is_remote(session.spark):
        raise refusal
    try:
        plan = session.spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except (PySparkException, Py4JJavaError):
        raise refusal from None
    piece = Piece(text, "spark", tuple(tokenize(text)))
    ctes: set[str] = set()
    found = [_name(piece, start) for start in _relations(plan, ctes)]
    return [f for f in found if not (len(f[0]) == 1 and f[0][0].lower() in ctes)]


def _name(piece: Piece, start: int) -> _FoundName:
    at = next(i for i, t in enumerate(piece.tokens) if t.start >= start)
    reader = Reader(piece, at)
    parts, name = reader.name(), reader.read_since(at)
    after_table = at > 0 and piece.tokens[at - 1].token_type is TokenType.TABLE
    return parts, name.start, name.tokens[-1].end + 1, after_table


def _relations(plan: Any, ctes: set[str]) -> Iterator[int]:
    """Yield the offsets in the text of a plan's unresolved relations, including subqueries and WITH queries.

    Adds the names of WITH queries, in lower case, to ``ctes``.
    """
    kind = plan.getClass().getSimpleName()
    if kind == "UnresolvedRelation":
        yield plan.origin().startIndex().get()
    if kind == "UnresolvedWith":
        for pair in elements(plan.cteRelations()):
            ctes.add(str(pair.productElement(0)).lower())
            yield from _relations(pair.productElement(1), ctes)
    for child in [*elements(plan.children()), *elements(plan.subqueries())]:
        yield from _relations(child, ctes)
