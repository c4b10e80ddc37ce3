"""``evolve=True``: a table gets the data's new columns and wider types, as far as stored rows keep their meaning."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from trinity.definition import evolve
from trinity.engine.values import altering
from trinity.engine.writing.casts import assignable
from trinity.errors import TrinityError
from trinity.hidden import DELTA_FEED, ICEBERG_FEED
from trinity.spi import Column, DataType, TableDefinition, parse_given_type, parse_type, type_text
from trinity.syntax.collations import check_not_collated
from trinity.target import Target


def follow(table: Target, given: pa.Schema) -> None:
    """Change the table's columns as :func:`evolved` does, in one commit; without a commit where they fit already.

    The commit starts from the newest definition, so that a change by another writer meanwhile is kept.

    Raises:
        TrinityError: as :func:`evolved`; NOT_SUPPORTED for an external table; the errors of ALTER TABLE.
    """
    if evolved(definition := table.definition, given) is not definition:
        altering.alter(table, partial(evolved, given=given))


def evolved(definition: TableDefinition, given: pa.Schema) -> TableDefinition:
    """Return the definition with the data's new columns at the end, nullable, and with its wider types.

    A VARCHAR stays, since texts of data have no declared length; so does a column that partitions the table. If nothing
    changes, the same object is returned.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a new column whose name is that of a change feed's column, or invalid (N1);
            TYPE_MISMATCH for a column that can neither store the data's values nor be widened to their type, and for a
            new column without a type; NOT_SUPPORTED for a new column with a collation.
    """
    for field in given:
        definition = _with_field(definition, field)
    return definition


def _with_field(definition: TableDefinition, field: pa.Field) -> TableDefinition:
    column = next((c for c in definition.columns if c.name.lower() == field.name.lower()), None)
    found = _type(field)
    if column is None:
        if field.name.lower() in (*DELTA_FEED, *ICEBERG_FEED):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Column '{field.name}' of the data says in a change feed what changed, and table "
                f"'{definition.full_name}' has no such column: with it no feed of the table could be read. Leave it "
                "out, or rename it; trinity.cdc.delta_changes makes row versions of the rows of a feed.",
            )
        if found is None:
            raise TrinityError(
                "TYPE_MISMATCH",
                f"Column '{field.name}' of the data is NULL throughout and has no type, by which table "
                f"'{definition.full_name}' could take it; cast it, or leave it out.",
            )
        check_not_collated(field)
        return evolve.added(definition, Column(field.name, str(found)))
    if column.hidden or found is None:
        return definition
    kind = parse_type(column.type)
    if found != kind and kind.name != "varchar" and evolve.widens(kind, found):
        if column.name not in definition.partition_columns:
            return evolve.with_type(definition, column.name, str(found))
    elif not assignable(found, kind):
        raise TrinityError(
            "TYPE_MISMATCH",
            f"Column '{column.name}' of table '{definition.full_name}' is of type {kind}, the data has {found} there, "
            "and the one can neither be stored as the other nor be widened to it; cast it first.",
        )
    return definition


def _type(field: pa.Field) -> DataType | None:
    """Return the type of a column of the data; None for a column of untyped NULLs."""
    if pa.types.is_null(field.type):
        return None
    try:
        return parse_given_type(type_text(field.type))
    except TrinityError as error:
        raise TrinityError("TYPE_MISMATCH", f"Column '{field.name}': {error.message}") from error
