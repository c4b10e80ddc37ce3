"""The merged reads of one statement: each table pinned once, and registered as a temporary view."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from trinity.calls import quiet
from trinity.engine.time_travel import splits_at
from trinity.errors import TrinityError
from trinity.sql.queries.instants import instant
from trinity.sql.queries.pushdown import key_predicate
from trinity.sql.queries.references import Edit, Reference, apply_edits, column_edits, find_references, is_inner_cte
from trinity.syntax.operands import with_plain_comparisons
from trinity.syntax.parse import Statement, parse
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.engine.feed.interval import Bound
    from trinity.engine.reading.plan import ReadPlan
    from trinity.names import TableName
    from trinity.session import Session
    from trinity.spi import SplitSource, TableDefinition, TableHandle
    from trinity.syntax.changes import ChangesClause, Edge
    from trinity.table import Table


def spelled_out(statement: Statement) -> Statement:
    """Rewrite a statement in Spark's dialect: INs are three-valued (M1), and comparisons pad CHAR columns (K2).

    Raises:
        TrinityError: NOT_SUPPORTED as :func:`trinity.syntax.three_valued.three_valued`.
    """
    from trinity.syntax.three_valued import three_valued

    text = with_plain_comparisons(three_valued(statement.tree, statement.text))
    return statement if text is statement.text else parse(text, "spark")


@dataclass(frozen=True)
class Read:
    """A table that a statement reads.

    Attributes:
        handle: its handle, pinned to the version that is read.
        splits: that version.
    """

    handle: TableHandle
    splits: SplitSource


class Reads:
    """The temporary views by which one statement reads tables; all its reads of a table see one version.

    Of its target it reads the version that it changes.

    Attributes:
        session: the session.
        common: name of a WITH query in lower case -> name of the view with its rows.
        views: name of each registered view -> its rows.
    """

    def __init__(self, session: Session, target: tuple[Table, SplitSource] | None = None) -> None:
        self.session = session
        self.common: dict[str, str] = {}
        self._splits: dict[tuple[TableName, int | str | None], SplitSource] = {}
        if target is not None:
            self._splits[target[0].name, None] = target[1]
        self._newest: dict[TableName, Read] = {}
        self._views: dict[tuple[TableName, int | str | None, exp.Expr | None], str] = {}
        self._plans: list[ReadPlan] = []
        self.views: dict[str, DataFrame] = {}

    @property
    def newest(self) -> tuple[Read, ...]:
        """The tables that were read at their newest version, for conflict checks: older versions never change."""
        return tuple(self._newest.values())

    def definition(self, table: Table) -> TableDefinition:
        """Return the definition of a table's newest version, which later reads see, too. Does not count as a read."""
        return self._pinned(table, None, table.splits).definition

    def rewritten(self, statement: Statement) -> str:
        """Return a statement's text in Spark's dialect, with a view for every Trinity table and WITH query."""
        statement = spelled_out(statement)
        return apply_edits(statement.text, self.edits(statement, self.references(statement)))

    def plan_texts(self) -> list[str]:
        """Return the plan of each merged read as text."""
        from trinity.engine.reading.explain import in_words

        return [in_words(plan) for plan in self._plans]

    def references(self, statement: Statement) -> list[Reference]:
        """Return the Trinity tables that a statement names."""
        return find_references(self.session, statement, self.common)

    def edits(self, statement: Statement, references: Sequence[Reference]) -> list[Edit]:
        """Return the edits by which :meth:`rewritten` replaces references and names of WITH queries by views."""
        tables = [_edit(r.start, r.end, self.view(r), r.alias) for r in references]
        return [*tables, *self._common_edits(statement), *column_edits(statement, references)]

    def _common_edits(self, statement: Statement) -> Iterator[Edit]:
        for node in statement.tree.find_all(exp.Table) if self.common else ():
            identifier = node.this
            if len(node.parts) != 1 or not isinstance(identifier, exp.Identifier) or is_inner_cte(node):
                continue
            view = self.common.get(identifier.name.lower())
            if view is not None and "start" in identifier.meta:
                yield _edit(identifier.meta["start"], identifier.meta["end"] + 1, view, identifier.name)

    def view(self, reference: Reference) -> str:
        """Return the name of the view with this reference's rows."""
        travel = reference.travel
        if travel.changes is not None:
            return self.register(self._changes(reference.table, travel.changes))
        wanted = travel.version if travel.timestamp is None else travel.timestamp
        return self._view(reference.table, wanted, lambda: self._splits_of(reference), reference.node)

    def newest_view(self, table: Table) -> str:
        """Return the name of the view with the newest rows of a table."""
        return self._view(table, None, table.splits, None)

    def register(self, rows: DataFrame) -> str:
        """Register a view with these rows, and return its name."""
        view = f"_trinity_read_{uuid.uuid4().hex}"
        rows.createOrReplaceTempView(view)
        self.views[view] = rows
        return view

    def _view(
        self, table: Table, wanted: int | str | None, splits_of: Callable[[], SplitSource], node: exp.Table | None
    ) -> str:
        name, splits = table.name, self._pinned(table, wanted, splits_of)
        if wanted is None:
            self._newest[name] = Read(table.handle.pinned(splits.version, splits.definition.id), splits)
        where = key_predicate(node, splits.definition) if node is not None else None
        if (name, wanted, where) not in self._views:
            self._views[name, wanted, where] = self.register(self._read(splits, where))
        return self._views[name, wanted, where]

    def _pinned(self, table: Table, wanted: int | str | None, splits_of: Callable[[], SplitSource]) -> SplitSource:
        if (table.name, wanted) not in self._splits:
            self._splits[table.name, wanted] = splits_of()
        return self._splits[table.name, wanted]

    def _read(self, splits: SplitSource, where: exp.Expr | None) -> DataFrame:
        from trinity.spark_names import PySparkException

        if where is not None:
            try:
                with quiet():
                    return self._planned(splits, where)
            except PySparkException:  # the hint does not fit the column's type: the query itself raises the error
                pass
        return self._planned(splits, None)

    def _planned(self, splits: SplitSource, where: exp.Expr | None) -> DataFrame:
        from trinity.engine.reading.spark.executor import SparkExecutor
        from trinity.engine.reading.spark.merged_read import merged_plan

        plan = merged_plan(self.session.spark, splits, where)
        rows = SparkExecutor(self.session.spark).rows(plan)
        self._plans.append(plan)
        return rows

    def _splits_of(self, reference: Reference) -> SplitSource:
        travel = reference.travel
        if travel.timestamp is None:
            return reference.table.splits(travel.version)
        return splits_at(reference.table, None, instant(self.session, travel.timestamp))

    def _changes(self, table: Table, clause: ChangesClause) -> DataFrame:
        from trinity.engine.feed.shape import FeedMode
        from trinity.engine.feed.spark.change_feed import change_feed

        options = dict(clause.options)
        mode = options.pop("deduplicationmode", "dropCarryovers")
        updates = options.pop("computeupdates", "true").lower()
        if options or updates not in ("true", "false"):
            wrong = ", ".join(f"'{name}'" for name in options) or f"computeUpdates = '{updates}'"
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Changes of table '{table.name}': {wrong} is no option; there are deduplicationMode (dropCarryovers, "
                "netChanges) and computeUpdates (true, false).",
            )
        start, end = self._bound(table, clause.start), self._bound(table, clause.end) if clause.end else None
        return change_feed(table, start, end, FeedMode.of(mode, compute_updates=updates == "true", preimages=True))

    def _bound(self, table: Table, edge: Edge) -> Bound:
        from trinity.engine.feed.interval import Bound

        if edge.is_time:
            return Bound(instant(self.session, edge.value), edge.inclusive)
        if not edge.value.isdigit():
            raise TrinityError("INVALID_ARGUMENTS", f"Table '{table.name}': a version is a number, not '{edge.value}'.")
        return Bound(int(edge.value), edge.inclusive)

    def close(self) -> None:
        """Drop the views; DataFrames made from them do not need them."""
        for view in self.views:
            self.session.spark.catalog.dropTempView(view)


def _edit(start: int, end: int, view: str, alias: str) -> Edit:
    # in parentheses, so that the user's own alias, sample or pivot may follow
    return start, end, f"({view} AS {quoted(alias)})"
