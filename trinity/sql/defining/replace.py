"""CREATE OR REPLACE TABLE where the table is there: other rows for a table that is defined alike, by one commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trinity.engine.changing.truncate import truncate
from trinity.errors import TrinityError
from trinity.making import check_owned
from trinity.spi import Column, TableDefinition
from trinity.sql.changing.overwrite import Overwrite, overwrite
from trinity.sql.queries.results import Rows, no_rows

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.table import Table

__all__ = ["replace_rows"]


def replace_rows(session: Session, table: Table, wanted: TableDefinition, query: str | None) -> Rows:
    """Empty a table that is defined as wanted, or give it the rows of a query.

    Args:
        session: where names are resolved.
        table: the table.
        wanted: what the statement defines.
        query: the text of the query behind AS; None without one.

    Returns:
        one row of counts; no rows without a query.

    Raises:
        TrinityError: NOT_SUPPORTED for a table that is defined otherwise, that Trinity did not make, or that has a key
            and is to get rows; as INSERT OVERWRITE.
    """
    check_owned(lambda: table, "CREATE OR REPLACE")
    now = table.definition
    if differing := [what for what, here, there in _facts(now, wanted) if here != there]:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"CREATE OR REPLACE: table '{table.name}' is there, with other {' and '.join(differing)}. ALTER it first, "
            "or DROP TABLE it, which ends its history.",
        )
    if query is None:
        truncate(table)
        return no_rows()
    return overwrite(session, table, Overwrite(query, now.visible, None), None)


def _facts(now: TableDefinition, wanted: TableDefinition) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a definition says, and what it is here and there."""
    yield "columns", _as_written(now), _as_written(wanted)
    yield "keys", now.primary_key, wanted.primary_key
    yield "partitions", now.partition_by, wanted.partition_by
    yield "options", _options(now), _options(wanted)
    yield "CHECK constraints", now.checks, wanted.checks


def _as_written(definition: TableDefinition) -> list[Column]:
    return [Column(c.name, c.type, c.nullable, c.default, c.comment) for c in definition.visible]


def _options(definition: TableDefinition) -> dict[str, str]:
    return {k: v for k, v in definition.properties.items() if not k.startswith(("trinity.", "_trinity"))}
