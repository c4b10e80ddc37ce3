"""Queries over Trinity's tables in this process."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from trinity.engine.executes import NotLocal, ThisProcess
from trinity.engine.expressions import Refused, ScopeColumn, or_refuse, refusals_as_values
from trinity.engine.reading.explain import in_words
from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.plan import ReadPlan, plan_read
from trinity.engine.time_travel import splits_at
from trinity.errors import TrinityError
from trinity.predicates.comparisons import bare
from trinity.spark.frames import small_table
from trinity.spi import Column, SplitSource, parse_type
from trinity.sql.local.insert import reader_with_names
from trinity.sql.local.relations import Pages, Relation, new_field
from trinity.sql.local.select import compile_query
from trinity.sql.queries.instants import local_instant
from trinity.sql.queries.reads import Read
from trinity.sql.queries.references import Reference, find_references
from trinity.sql.queries.results import Rows
from trinity.syntax.parse import Statement

if TYPE_CHECKING:
    from trinity.session import Session


_NUMBER: Final = "trinity_reference"
"""Key in the meta of a table's node: the index of its reference."""


def local_query(session: Session, statement: Statement, process: ThisProcess) -> Rows | NotLocal:
    """Return the rows of a query, at the present versions of its tables. They are read when they are asked for.

    Raises:
        TrinityError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND, COLUMN_NOT_FOUND, TYPE_MISMATCH, ...
    """
    found = local_rows(session, statement, process)
    if isinstance(found, NotLocal):
        return found
    return partial(reader_with_names, found.relation, found.names)


def local_explain(session: Session, statement: Statement, process: ThisProcess) -> Rows | NotLocal:
    """Return the plans of a query's reads as one row of text. Raises as :func:`local_query`."""
    found = local_rows(session, statement, process)
    if isinstance(found, NotLocal):
        return found
    engines = "this process" if isinstance(found.relation, Pages) else "this process, and DuckDB in it"
    words = [*(in_words(plan, "this process") for plan in found.plans), f"the query is run by {engines}"]
    return small_table({"plan": "string"}, [("\n\n".join(words),)])


@dataclass(frozen=True)
class LocalRows:
    """The rows of a query.

    Attributes:
        relation: the rows.
        references: the Trinity tables that the query names.
        reads: the Trinity tables that it reads at their newest version.
        plans: the plan of each read of a table.
    """

    relation: Relation
    references: Sequence[Reference]
    reads: tuple[Read, ...]
    plans: tuple[ReadPlan, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.relation.columns]


class Pinned:
    """The versions of tables that a statement reads, so that all its queries read the same.

    Attributes:
        splits: (name of a table, version or time that the text names, None for neither) -> the version that is read.
        newest: the tables that are read at their newest version, by name.
    """

    def __init__(self) -> None:
        self.splits: dict[tuple[str, int | dt.datetime | None], SplitSource] = {}
        self.newest: dict[str, Read] = {}

    def of(self, reference: Reference, moment: dt.datetime | None) -> SplitSource:
        """Return the version of a table that a reference names: by its number, by ``moment``, or the newest one."""
        table, version = reference.table, reference.travel.version
        at = (str(table.name), version if moment is None else moment)
        if at not in self.splits:
            self.splits[at] = splits_at(table, version, moment)
        found = self.splits[at]
        if at[1] is None and at[0] not in self.newest:
            self.newest[at[0]] = Read(table.handle.pinned(found.version, found.definition.id), found)
        return found


@refusals_as_values
def local_rows(
    session: Session, statement: Statement, process: ThisProcess, pinned: Pinned | None = None
) -> LocalRows | NotLocal:
    """Return the rows of a query; ``pinned`` has the versions that other queries of the same statement read."""
    if not isinstance(statement.tree, exp.Query | exp.Values):
        return NotLocal(f"only Spark runs {' '.join(statement.words(1))}")
    statement = statement.to_spark()
    references = find_references(session, statement)
    tables = _Tables(session, process, references, Pinned() if pinned is None else pinned)
    try:
        found = compile_query(
            statement.tree, tables.scan, tables.shape, lambda: session.timezone, any_order=process.alone
        )
    except TrinityError as error:
        if process.alone:
            raise
        return NotLocal(f"it says what is wrong: {error.message}")
    reason = process.why_not_read(f for splits in tables.pinned.splits.values() for f in splits.files)
    return reason or LocalRows(found, references, tuple(tables.pinned.newest.values()), tuple(tables.plans))


class _Tables:
    """The tables that a statement reads, each at one version."""

    def __init__(self, session: Session, process: ThisProcess, references: Sequence[Reference], pinned: Pinned) -> None:
        self.session = session
        self.process = process
        self.pinned = pinned
        self.references = references
        self.plans: list[ReadPlan] = []
        for number, reference in enumerate(references):
            reference.node.meta[_NUMBER] = number  # in meta, since copies of the node keep it

    def scan(self, node: exp.Table, names: Sequence[str] | None, condition: exp.Expr | None) -> Relation:
        """Return the rows of a table that the query names, as :data:`~trinity.sql.local.select.Scan` does."""
        splits = self._version(node)
        wanted = [c for c in splits.definition.visible if names is None or c.name.lower() in names]
        columns = wanted or list(splits.definition.visible)[:1]
        where = _unqualified(condition, node) if condition is not None else None
        plan = plan_read(splits, where, timezone=lambda: self.session.timezone)
        or_refuse(plan.not_local)
        self.plans.append(plan)
        return _rows(plan, columns)

    def shape(self, node: exp.Table) -> Relation:
        """Return a relation without rows that has the columns of a table that the query names."""
        columns = self._version(node).definition.visible
        return Pages(tuple(ScopeColumn(c.name, new_field(), parse_type(c.type)) for c in columns), lambda: iter(()))

    def _version(self, node: exp.Table) -> SplitSource:
        """Return the version of a table that the query names. Raises Refused for a name that is no Trinity table."""
        number = node.meta.get(_NUMBER)
        if number is None:
            if self.process.alone and isinstance(node.this, exp.Identifier):  # a name, not a table function
                raise self.session.table_missing(self.session.table_name([part.name for part in node.parts]))
            raise Refused(f"'{node.sql(dialect='spark')}' is no table of Trinity's")
        reference = self.references[number]
        if reference.travel.changes is not None:
            raise Refused("only Spark reads changes in a query")
        return self.pinned.of(reference, self._moment(reference.travel.timestamp))

    def _moment(self, text: str | None) -> dt.datetime | None:
        return None if text is None else or_refuse(local_instant(self.session, text))


def _unqualified(condition: exp.Expr, table: exp.Table) -> exp.Expr | None:
    """Return a condition with bare column names; None if it names columns of something other than the table."""
    names = ("", (table.alias or table.name).lower())
    columns = condition.find_all(exp.Column)
    if any(len(c.parts) > 2 or c.text("table").lower() not in names for c in columns):
        return None
    return bare(condition)


def _rows(plan: ReadPlan, columns: Sequence[Column]) -> Pages:
    """Return the rows of a plan, under new field names."""
    shown = tuple(ScopeColumn(column.name, new_field(), parse_type(column.type)) for column in columns)
    schema = pa.schema([(c.field, c.type.to_arrow()) for c in shown])

    def pages() -> Iterator[pa.RecordBatch]:
        found = LocalExecutor(columns).rows(plan)
        assert not isinstance(found, NotLocal)
        return (pa.RecordBatch.from_arrays(page.columns, schema=schema) for page in found)

    return Pages(shown, pages)
