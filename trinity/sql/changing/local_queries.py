"""The source and the subqueries of a row-changing statement as Arrow data, where this process runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from trinity.engine.executes import ThisProcess
from trinity.engine.expressions import VOID, Refused, or_refuse
from trinity.spark.types import spark_type
from trinity.sql.changing.scope import Relation, ResolvedColumn, Scope, Side
from trinity.sql.changing.source import MergeSource, alias_of, check_aliases, joined, names_of
from trinity.sql.local.correlated import OuterQuery, rows_name, rows_seen
from trinity.sql.local.insert import reader_with_names
from trinity.sql.local.run import LocalRows, Pinned, local_rows
from trinity.sql.parsing.row_change import CommonTable
from trinity.sql.queries.references import joined_nodes
from trinity.syntax.parse import Statement, expression_or_none, parse
from trinity.syntax.quoting import quoted
from trinity.syntax.reader import Piece

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.spi import SplitSource, TableHandle
    from trinity.table import Table


class LocalQueries:
    """The queries of one row-changing statement, which all read the same version of a table.

    Of the target they read the version that the statement changes.

    Attributes:
        rows_of: generated name of a subquery -> its rows.
    """

    def __init__(
        self,
        session: Session,
        process: ThisProcess,
        target: tuple[Table, SplitSource],
        common: Sequence[CommonTable],
    ) -> None:
        self.rows_of: dict[str, pa.Table] = {}
        self._session = session
        self._process = process
        self._common = common
        self._pinned = Pinned()
        self._pinned.splits[str(target[0].name), None] = target[1]

    @property
    def common_names(self) -> frozenset[str]:
        """The names of the queries of WITH, in lower case."""
        return frozenset(common.name.lower() for common in self._common)

    @property
    def reads(self) -> list[TableHandle]:
        """Pinned handles of the tables that are read at their newest version."""
        return [read.handle for read in self._pinned.newest.values()]

    def check(self) -> None:
        """Check all queries of WITH, even those that the statement does not use. Raises as :meth:`source`."""
        for common in self._common:
            self._rows(self._within_common(f"SELECT * FROM {common.quoted_name}", common.body.dialect))

    def source(self, statement: Statement, target_alias: str) -> MergeSource:
        """Run the query of the source.

        Raises:
            TrinityError: the errors of :meth:`trinity.Session.sql` for a query; INVALID_ARGUMENTS when the target
                has the same alias.
            Refused: for a query that only Spark can run.
        """
        whole = self._within_common(statement.text, statement.dialect) if self._common else statement.to_spark()
        assert isinstance(whole.tree, exp.Select)
        nodes = joined_nodes(whole.tree)
        check_aliases(nodes, target_alias)
        found = self._rows(whole)
        full = {id(r.node): r.full for r in found.references}
        names = [names_of(node, full) for node in nodes]
        if len(nodes) > 1:

            def rows_of(text: str) -> LocalRows:
                return self._rows(self._within_common(text, statement.dialect))

            aliases = [n.alias_or_name for n in nodes]
            join = joined(statement.text, aliases, names, lambda text: _types_of(rows_of(text)))
            rows = rows_of(join.text)
            return MergeSource(_read(rows), join.side, _chars(rows))
        if len({name.lower() for name in found.names}) < len(found.names):
            raise Refused("its source has a column name twice")
        alias = alias_of(nodes[0], target_alias)
        columns = {
            name.lower(): ResolvedColumn(f"{quoted(alias)}.{quoted(name)}", kind) for name, kind in _types_of(found)
        }
        return MergeSource(_read(found), Side("source", alias, (Relation(names[0], columns),), columns), _chars(found))

    def subquery(self, piece: Piece, scope: Scope, word: str) -> str:
        """Run a subquery for all outer rows; return the text of a query that selects the rows that an outer row sees.

        Raises:
            TrinityError: the errors of :meth:`trinity.Session.sql` for a query.
            Refused: for a subquery that only Spark can run.
        """
        statement = self._within_common(piece.text, piece.dialect)
        outer = OuterQuery(
            partial(_named_column, scope), lambda name: any(name.lower() in side.columns for side in scope.sides)
        )

        def rows_of(query: exp.Expr) -> LocalRows:
            return self._rows(replace(statement, tree=query))

        def keep_rows(query: exp.Expr) -> str:
            name = rows_name(len(self.rows_of))
            self.rows_of[name] = _read(rows_of(query))
            return name

        rows = rows_seen(statement.tree, word, outer, lambda query: rows_of(query).names, keep_rows)
        text = rows.sql(dialect="spark")
        read = expression_or_none(f"({text})")
        if read is None or read.unnest() != rows:
            raise Refused(f"only Spark finds rows by '{text}'")
        return text

    def _within_common(self, text: str, dialect: str) -> Statement:
        """Return a query in Spark's dialect, after the WITH of the statement."""
        if self._common:
            words = "WITH RECURSIVE" if self._common[0].recursive else "WITH"
            inner = f"SELECT * FROM ({text})" if text.lstrip()[:4].upper() == "WITH" else text
            text = f"{words} {', '.join(common.text for common in self._common)} {inner}"
        return parse(text, dialect).to_spark()

    def _rows(self, statement: Statement) -> LocalRows:
        found = or_refuse(local_rows(self._session, statement, self._process, self._pinned))
        for column in found.relation.columns:
            if column.type == VOID:
                raise Refused(f"its column '{column.name}' is NULL without a type")
        return found


def _named_column(scope: Scope, parts: Sequence[str]) -> tuple[int, exp.Expr | None] | None:
    """Return the column of a statement's target or source that a name means.

    The result is that of ``named`` of :class:`~trinity.sql.local.correlated.OuterQuery`.
    """
    found = scope.find(parts)
    return None if found is None else (found[0], expression_or_none(found[1].text or ""))


def _types_of(found: LocalRows) -> list[tuple[str, str]]:
    return [(column.name, spark_type(str(column.type))) for column in found.relation.columns]


def _chars(found: LocalRows) -> dict[str, str]:
    return {column.name: str(column.type) for column in found.relation.columns if column.type.name == "char"}


def _read(found: LocalRows) -> pa.Table:
    return reader_with_names(found.relation, found.names).read_all()
