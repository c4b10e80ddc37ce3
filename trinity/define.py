"""CREATE TABLE: from what a user wrote to a checked definition (K1, U3, V1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlglot

from trinity.errors import TrinityError
from trinity.merge import MergeSpec, canonical_properties
from trinity.spi import HIDDEN_PREFIX, ROW_KIND, Column, TableDefinition, parse_type

__all__ = ["define_table"]


def define_table(
    schema: str,
    table: str,
    columns: Sequence[Column],
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    properties: Mapping[str, str],
    property_prefixes: tuple[str, ...],
) -> TableDefinition:
    """The definition of a new table: canonical types and properties, keys NOT NULL, hidden columns added.

    Raises:
        TrinityError: INVALID_ARGUMENTS, DUPLICATE_COLUMN_NAME, COLUMN_NOT_FOUND, INVALID_TABLE_PROPERTY, TYPE_MISMATCH,
            SYNTAX_ERROR (a DEFAULT), NOT_SUPPORTED.
    """
    _check_columns(f"{schema}.{table}", columns)
    if partition_by:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{schema}.{table}': PARTITIONED BY ({', '.join(partition_by)}) is not available yet; leave it out, "
            "the base of a keyed table is bucketed by its key.",
        )
    options = canonical_properties(properties, property_prefixes)
    draft = TableDefinition(schema, table, tuple(columns), tuple(primary_key), (), options)
    key = tuple(draft.column(name).name for name in primary_key)
    stored = [
        Column(c.name, str(parse_type(c.type)), c.nullable and c.name not in key, c.default, c.comment) for c in columns
    ]
    if key and _needs_row_kind(options):
        stored.append(Column(ROW_KIND, "int"))
    definition = TableDefinition(schema, table, tuple(stored), key, (), options)
    MergeSpec.of(definition)
    return definition


def _needs_row_kind(options: Mapping[str, str]) -> bool:
    """True when no visible column can mark a writer's delete (U6): ``ignore-delete`` would drop a -D."""
    if "tombstone-key" in options:
        return False
    return "rowkind.field" not in options or options.get("ignore-delete", "false").strip().lower() == "true"


def _check_columns(table: str, columns: Sequence[Column]) -> None:
    if not columns:
        raise TrinityError("INVALID_ARGUMENTS", f"Table '{table}' needs at least one column.")
    seen: set[str] = set()
    for column in columns:
        lower = column.name.lower()
        if lower in seen:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"Table '{table}' names column '{column.name}' more than once.")
        if lower.startswith(HIDDEN_PREFIX):
            raise TrinityError(
                "INVALID_ARGUMENTS", f"Column '{column.name}': names that begin with {HIDDEN_PREFIX} are Trinity's own."
            )
        _check_default(table, column)
        seen.add(lower)


def _check_default(table: str, column: Column) -> None:
    if column.default is None:
        return
    try:
        sqlglot.parse_one(column.default, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise TrinityError(
            "SYNTAX_ERROR", f"Table '{table}': DEFAULT {column.default} of column '{column.name}' is no expression."
        ) from error
