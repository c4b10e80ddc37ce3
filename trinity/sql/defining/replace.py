"""CREATE OR REPLACE TABLE where the table is there: other rows for one that is defined alike, else another table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trinity.engine.changing.replace import replace_table
from trinity.engine.changing.statement import rerun
from trinity.engine.changing.truncate import truncate
from trinity.making import check_owned
from trinity.spi import Column, TableDefinition
from trinity.sql.changing.overwrite import Overwrite, overwrite
from trinity.sql.queries.results import Rows, counts, no_rows

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.table import Table

__all__ = ["Replacement", "replace"]


@dataclass(frozen=True)
class Replacement:
    """What a statement puts in the place of a table.

    Attributes:
        definition: the definition that it gives to rows of some columns; of none where it names the columns itself.
        rows: runs the query behind AS anew, and returns its rows; None without a query.
        query: the query's text; None without one, and for WITH NO DATA.
    """

    definition: Callable[[Any], TableDefinition]
    rows: Callable[[], Any] | None = None
    query: str | None = None


def replace(session: Session, table: Table, wanted: Replacement) -> Rows:
    """Put another table in the place of one, or other rows into one that is defined alike; in one commit.

    Returns:
        one row of counts; no rows without a query.

    Raises:
        TrinityError: NOT_SUPPORTED for a table that Trinity did not make; as CREATE TABLE, or INSERT OVERWRITE.
    """
    check_owned(lambda: table, "CREATE OR REPLACE")

    def attempt() -> Rows | None:
        seen = table.splits()  # before the query is: it may read the table
        rows = wanted.rows() if wanted.rows else None
        definition, now = wanted.definition(rows), seen.definition
        if _facts(now) == _facts(definition) and (wanted.query is None or not now.keyed):
            return None
        done = replace_table(table, seen, definition, rows if wanted.query is not None else None)
        return counts(inserted=done.rows) if wanted.rows else no_rows()

    done = rerun(table, attempt)
    if done is None and wanted.query is not None:
        return overwrite(session, table, Overwrite(wanted.query, table.definition.visible, None), None)
    if done is None:
        truncate(table)
    return done or (counts() if wanted.rows else no_rows())


def _facts(definition: TableDefinition) -> tuple[Any, ...]:
    """Return what CREATE TABLE says of a table."""
    columns = [Column(c.name, c.type, c.nullable, c.default, c.comment) for c in definition.visible]
    options = {k: v for k, v in definition.properties.items() if not k.startswith(("trinity.", "_trinity"))}
    return columns, definition.primary_key, definition.partition_by, options, definition.checks
