"""DELETE, UPDATE, MERGE and TRUNCATE: the door to the row-change machinery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from trinity.errors import TrinityError
from trinity.sql.errors import spark_errors
from trinity.sql.names import existing_table
from trinity.sql.parse import Statement
from trinity.sql.references import Edit, apply_edits
from trinity.sql.results import counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.session import Session

__all__ = ["delete", "row_change"]


def row_change(session: Session, statement: Statement) -> DataFrame:
    """UPDATE, MERGE and TRUNCATE. Raises NOT_SUPPORTED: the machinery is not there yet."""
    what = statement.words(1)[0]
    raise TrinityError(
        "NOT_SUPPORTED", f"{what} is not supported yet; write changed rows with INSERT INTO, delete with DELETE."
    )


def delete(session: Session, statement: Statement) -> DataFrame:
    """DELETE FROM t [WHERE condition] on a keyed table (U5).

    Raises:
        TrinityError: NOT_SUPPORTED for a plain table, USING, RETURNING or a subquery; COLUMN_NOT_FOUND, ...
    """
    statement = statement.to_spark()
    node = statement.tree
    assert isinstance(node, exp.Delete)
    if any(node.args.get(k) for k in ("using", "returning", "limit", "order", "tables")):
        raise TrinityError("NOT_SUPPORTED", "DELETE takes only a WHERE; USING, LIMIT and RETURNING are not supported.")
    table = existing_table(session, node.this)
    condition = _condition(statement, node)
    with spark_errors():
        return counts(session, deleted=table.delete(condition).rows)


def _condition(statement: Statement, node: exp.Delete) -> str:
    """The WHERE as Spark SQL over bare columns of the target."""
    where = node.args.get("where")
    if where is None:
        return "TRUE"
    if where.find(exp.Query):
        raise TrinityError("NOT_SUPPORTED", "DELETE with a subquery is not supported yet; delete by a plain condition.")
    keyword = next(t for t in statement.tokens if t.token_type is TokenType.WHERE)
    start = keyword.end + 1
    qualifier = node.this.alias_or_name.lower()
    edits: list[Edit] = []
    for column in where.find_all(exp.Column):
        if column.table.lower() == qualifier:
            first, last = column.parts[0], column.parts[-1]
            edits.append((first.meta["start"] - start, last.meta["start"] - start, ""))
    return apply_edits(statement.text[start:], edits)
