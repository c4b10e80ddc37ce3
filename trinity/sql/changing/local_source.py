"""The source of a MERGE or UPDATE ... FROM as Arrow data, where this process runs its query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from trinity.engine.expressions import Refused
from trinity.engine.not_local import NotLocal
from trinity.engine.spark.types import spark_type
from trinity.sql.changing.scope import Known, Relation, Side
from trinity.sql.changing.source import Source, alias_of, check_aliases, joined_nodes, names_of
from trinity.sql.local.insert import reader_as
from trinity.sql.local.run import local_rows
from trinity.syntax.parse import Statement
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.spi import TableHandle

__all__ = ["read_local_source"]


def read_local_source(session: Session, statement: Statement, target_alias: str) -> tuple[Source, list[TableHandle]]:
    """Run the source's query; return its rows, and the tables that it reads at their newest version, pinned.

    Args:
        session: where names are resolved.
        statement: ``SELECT * FROM`` the source.
        target_alias: the target's alias.

    Raises:
        TrinityError: as a query; INVALID_ARGUMENTS when the target has the same alias.
        Refused: where only Spark runs it.
    """
    statement = statement.to_spark()
    assert isinstance(statement.tree, exp.Select)
    nodes = joined_nodes(statement.tree)
    if len(nodes) > 1:
        raise Refused("only Spark joins the tables of a source")
    check_aliases(nodes, target_alias)
    found = local_rows(session, statement)
    if isinstance(found, NotLocal):
        raise Refused(found.reason)
    if len({name.lower() for name in found.names}) < len(found.names):
        raise Refused("its source has a column name twice")
    alias = alias_of(nodes[0], target_alias)
    columns = {
        column.name.lower(): Known(f"{quoted(alias)}.{quoted(column.name)}", spark_type(str(column.type)))
        for column in found.relation.columns
    }
    full = {id(r.node): r.full for r in found.references}
    side = Side("source", alias, (Relation(names_of(nodes[0], full), columns),), columns)
    rows = reader_as(found.relation, found.names).read_all()
    return Source(rows, side), [read.handle for read in found.reads]
