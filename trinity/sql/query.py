"""Queries: Trinity's tables become merged reads, everything else is Spark's as the user wrote it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.sql.errors import from_spark, quiet, spark_errors
from trinity.sql.fallback import names_by_spark
from trinity.sql.names import quote
from trinity.sql.parse import Statement, parse
from trinity.sql.pushdown import key_predicate
from trinity.sql.references import Edit, Reference, apply_edits, column_edits, find_references, resolve

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

    from trinity.session import Session, TableName
    from trinity.spi import SplitSource
    from trinity.table import Table

_QUOTED: Final = r"`((?:[^`]|``)+)`"

__all__ = ["explain", "rewritten", "run_query", "run_text", "run_unparsed"]


def run_query(session: Session, statement: Statement) -> DataFrame:
    """Runs any statement that Spark can run, over Trinity's tables and Spark's own.

    Returns:
        Spark's DataFrame, lazy for a query. It is pinned to the versions that were newest when it was made.

    Raises:
        TrinityError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND, COLUMN_NOT_FOUND, TYPE_MISMATCH, SYNTAX_ERROR, ...
    """
    spark_statement = statement.to_spark()
    with rewritten(session, spark_statement) as text:
        return run_text(session, text)


def explain(session: Session, statement: Statement) -> DataFrame:
    """EXPLAIN [EXTENDED | CODEGEN | COST | FORMATTED] of a query over Trinity's tables."""
    tokens = statement.tokens
    modes = ("EXTENDED", "CODEGEN", "COST", "FORMATTED")
    first = tokens[2 if len(tokens) > 2 and tokens[1].text.upper() in modes else 1] if len(tokens) > 1 else tokens[0]
    query = parse(statement.text[first.start :], statement.dialect).to_spark()
    with rewritten(session, query) as text:
        return run_text(session, statement.text[: first.start] + text)


def run_unparsed(session: Session, text: str, refusal: TrinityError) -> DataFrame:
    """Runs a query in Spark's dialect that sqlglot refused with ``refusal``; raises it when Spark does so, too."""
    reads = _Reads(session)
    try:
        edits: list[Edit] = []
        for parts, start, end, after_table in names_by_spark(session, text, refusal):
            table = resolve(session, parts)
            if table is not None:
                view = reads.newest(table)
                edits.append((start, end, view if after_table else f"({view} AS {quote(parts[-1])})"))
        return run_text(session, apply_edits(text, edits))
    finally:
        reads.drop()


def run_text(session: Session, text: str) -> DataFrame:
    """Runs Spark SQL text as it is, with Spark's errors as Trinity's."""
    from pyspark.errors import PySparkException

    try:
        with quiet():
            return session.spark.sql(text)
    except PySparkException as error:
        raise _missing_table(session, error) or from_spark(error) from error


def _missing_table(session: Session, error: PySparkException) -> TrinityError | None:
    """For a table that neither Trinity nor Spark knows: the error with Trinity's nearest name."""
    condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
    if condition == "REQUIRES_SINGLE_PART_NAMESPACE":  # Spark took the catalog for a part of the schema
        parts = [*re.findall(_QUOTED, parameters.get("namespace", "")), "_"]
    elif condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        parts = re.findall(_QUOTED, parameters.get("relationName", ""))
    else:
        return None
    try:
        return session.table_missing(session.table_name(parts))
    except TrinityError as other:  # an unknown catalog, or no name of ours
        return other if other.code == "CATALOG_NOT_FOUND" else None


@contextmanager
def rewritten(session: Session, statement: Statement) -> Iterator[str]:
    """The statement's text with every Trinity table replaced by a temporary view of its merged rows.

    The views live as long as the context; a DataFrame made from the text does not need them any more.
    """
    reads = _Reads(session)
    try:
        references = find_references(session, statement)
        edits = [_reference_edit(reads, r) for r in references]
        yield apply_edits(statement.text, [*edits, *column_edits(statement, references)])
    finally:
        reads.drop()


def _reference_edit(reads: _Reads, reference: Reference) -> Edit:
    # in parentheses, an alias (or sample, or pivot) of the user's own can follow without a change
    return reference.start, reference.end, f"({reads.view(reference)} AS {quote(reference.alias)})"


class _Reads:
    """The merged reads of one statement, each registered once; all reads of a table see one version."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.splits: dict[tuple[TableName, int | str | None], SplitSource] = {}
        self.views: dict[tuple[TableName, int | str | None, str | None], str] = {}

    def view(self, reference: Reference) -> str:
        """The name of the view with this reference's rows."""
        name = reference.table.name
        wanted = reference.travel.version if reference.travel.timestamp is None else reference.travel.timestamp
        return self._registered(name, wanted, lambda: self._splits(reference), reference.node)

    def _registered(
        self, name: TableName, wanted: int | str | None, splits_of: Callable[[], SplitSource], node: exp.Table | None
    ) -> str:
        if (name, wanted) not in self.splits:
            self.splits[name, wanted] = splits_of()
        splits = self.splits[name, wanted]
        where = key_predicate(node, splits.definition) if node is not None else None
        if (name, wanted, where) not in self.views:
            view = f"_trinity_read_{uuid.uuid4().hex}"
            self._read(splits, where).createOrReplaceTempView(view)
            self.views[name, wanted, where] = view
        return self.views[name, wanted, where]

    def newest(self, table: Table) -> str:
        """The name of the view with the newest rows of a table."""
        return self._registered(table.name, None, lambda: table.splits(), None)

    def _read(self, splits: SplitSource, where: str | None) -> DataFrame:
        from pyspark.errors import PySparkException

        from trinity.engine.read import merged_read

        if where is not None:
            try:
                with quiet():
                    return merged_read(self.session.spark, splits, where)
            except PySparkException:  # a hint that does not fit the column's type: let the query itself say so
                pass
        return merged_read(self.session.spark, splits)

    def _splits(self, reference: Reference) -> SplitSource:
        travel = reference.travel
        if travel.timestamp is None:
            return reference.table.splits(travel.version)
        return reference.table.splits_at(None, self._instant(travel.timestamp))

    def _instant(self, text: str) -> str:
        """The time that a TIMESTAMP AS OF expression stands for, as text in the session's time zone."""
        with spark_errors():
            value = self.session.spark.sql(f"SELECT CAST(CAST({text} AS TIMESTAMP) AS STRING)").head()
        if value is None or value[0] is None:
            raise TrinityError("INVALID_ARGUMENTS", f"TIMESTAMP AS OF {text} is NULL; give a time.")
        return str(value[0])

    def drop(self) -> None:
        """Removes the views."""
        for view in self.views.values():
            self.session.spark.catalog.dropTempView(view)
