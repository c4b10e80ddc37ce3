"""The queries of a row-changing statement as Arrow data, where this process runs them: its source, its subqueries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from trinity.engine.expressions import Refused
from trinity.engine.not_local import NotLocal
from trinity.engine.spark.types import spark_type
from trinity.errors import TrinityError
from trinity.hidden import HIDDEN_PREFIX
from trinity.sql.changing.scope import Known, Relation, Scope, Side
from trinity.sql.changing.source import Source, alias_of, check_aliases, joined_nodes, names_of
from trinity.sql.local.insert import reader_as
from trinity.sql.local.run import LocalRows, Pinned, local_rows, with_names
from trinity.sql.parsing.reader import Piece
from trinity.sql.parsing.row_change import CommonTable
from trinity.syntax.parse import Statement, parse
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.spi import SplitSource, TableHandle
    from trinity.table import Table

__all__ = ["LocalQueries"]


class LocalQueries:
    """The queries of one statement; all their reads of a table see one version.

    Attributes:
        held: name -> the rows of a subquery.

    Args:
        session: where names are resolved.
        target: the table that the statement changes, and the version of it that is read.
        common: the queries of a leading WITH.
    """

    def __init__(self, session: Session, target: tuple[Table, SplitSource], common: Sequence[CommonTable]) -> None:
        self.held: dict[str, pa.Table] = {}
        self._session = session
        self._common = common
        self._pinned = Pinned()
        self._pinned.splits[str(target[0].name), None] = target[1]

    @property
    def common_names(self) -> frozenset[str]:
        """The names of the queries of WITH, in lower case."""
        return frozenset(common.name.lower() for common in self._common)

    @property
    def reads(self) -> list[TableHandle]:
        """The tables that are read at their newest version, pinned."""
        return [read.handle for read in self._pinned.newest.values()]

    def check(self) -> None:
        """Look at all queries of WITH, also those that nothing names. Raises as :meth:`source`."""
        for common in self._common:
            self._rows(self._within_common(f"SELECT * FROM {common.quoted_name}", common.body.dialect))

    def source(self, statement: Statement, target_alias: str) -> Source:
        """Run the source's query.

        Args:
            statement: ``SELECT * FROM`` the source.
            target_alias: the target's alias.

        Raises:
            TrinityError: as a query; INVALID_ARGUMENTS when the target has the same alias.
            Refused: where only Spark runs it.
        """
        statement = self._within_common(statement.text, statement.dialect)
        assert isinstance(statement.tree, exp.Select)
        nodes = joined_nodes(statement.tree)
        if len(nodes) > 1:
            raise Refused("only Spark joins the tables of a source")
        check_aliases(nodes, target_alias)
        found = self._rows(statement)
        if len({name.lower() for name in found.names}) < len(found.names):
            raise Refused("its source has a column name twice")
        alias = alias_of(nodes[0], target_alias)
        columns = {
            column.name.lower(): Known(f"{quoted(alias)}.{quoted(column.name)}", spark_type(str(column.type)))
            for column in found.relation.columns
        }
        full = {id(r.node): r.full for r in found.references}
        side = Side("source", alias, (Relation(names_of(nodes[0], full), columns),), columns)
        return Source(_read(found), side)

    def subquery(self, piece: Piece, scope: Scope) -> str:
        """Run a subquery that is about no row around it; return the text of a query that selects its rows.

        Args:
            piece: the query.
            scope: the columns of the rows around it.

        Raises:
            TrinityError: as a query.
            Refused: where only Spark runs it.
        """
        statement = with_names(self._within_common(piece.text, piece.dialect))
        try:
            rows = _read(self._rows(statement))
        except TrinityError as error:
            columns = {c.name.lower() for c in statement.tree.find_all(exp.Column)}
            if error.code == "COLUMN_NOT_FOUND" and any(columns & side.columns.keys() for side in scope.sides):
                raise Refused("a subquery names a column of the rows around it") from None
            raise
        name = f"{HIDDEN_PREFIX}rows{len(self.held)}"
        self.held[name] = rows
        return f"SELECT * FROM {name}"

    def _within_common(self, text: str, dialect: str) -> Statement:
        """Return a query in Spark's dialect, behind the statement's WITH."""
        if self._common:
            words = "WITH RECURSIVE" if self._common[0].recursive else "WITH"
            inner = f"SELECT * FROM ({text})" if text.lstrip()[:4].upper() == "WITH" else text
            text = f"{words} {', '.join(common.text for common in self._common)} {inner}"
        return parse(text, dialect).to_spark()

    def _rows(self, statement: Statement) -> LocalRows:
        found = local_rows(self._session, statement, self._pinned)
        if isinstance(found, NotLocal):
            raise Refused(found.reason)
        return found


def _read(found: LocalRows) -> pa.Table:
    return reader_as(found.relation, found.names).read_all()
