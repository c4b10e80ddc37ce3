"""CREATE TABLE: the checked definition of a new table, from columns and options as a user gave them (K1, U3, V1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from trinity.definition.checks import with_check
from trinity.depth import deep_recursion
from trinity.errors import TrinityError
from trinity.merge.kept_values import with_last_values_kept
from trinity.merge.properties import MergeEngine, Properties, canonical_properties
from trinity.messages import shown_value
from trinity.names import TableName, checked_name
from trinity.spi import CARRIED, HIDDEN_PREFIX, ROW_KIND, Check, Column, TableDefinition, parse_partition, parse_type

_BY_COLUMN: Final = tuple(engine.value for engine in MergeEngine if engine.by_column)


def define_table(
    name: TableName,
    columns: Sequence[Column],
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    properties: Properties,
    property_prefixes: tuple[str, ...],
    checks: Mapping[str, str],
) -> TableDefinition:
    """Return the definition of a new table: canonical types and properties, keys NOT NULL, hidden columns added.

    Raises:
        TrinityError: INVALID_ARGUMENTS, DUPLICATE_COLUMN_NAME, COLUMN_NOT_FOUND, INVALID_TABLE_PROPERTY, TYPE_MISMATCH,
            SYNTAX_ERROR (a DEFAULT), NOT_SUPPORTED.
    """
    canonical = canonical_properties(properties, property_prefixes)
    schema_and_name = name.schema, name.table
    draft = TableDefinition(*schema_and_name, tuple(columns), tuple(primary_key), (), canonical, catalog=name.catalog)
    _check_columns(draft.full_name, columns)
    key = tuple(draft.column(name).name for name in primary_key)
    stored = [
        Column(c.name, str(parse_type(c.type)), c.nullable and c.name not in key, c.default, c.comment) for c in columns
    ]
    by_column = canonical.get("merge-engine", "").strip().lower().replace("_", "-") in _BY_COLUMN
    if key and (by_column or _needs_row_kind(canonical)):
        stored.append(Column(ROW_KIND, "int"))
    if key and by_column:
        stored.append(Column(CARRIED, "string"))
    definition = replace(draft, columns=tuple(stored), primary_key=key, partition_by=_partitions(draft, partition_by))
    definition = with_last_values_kept(definition)
    for check, expression in checks.items():
        definition = with_check(definition, Check(check, expression))
    return definition.numbered()


def _partitions(draft: TableDefinition, given: Sequence[str]) -> tuple[str, ...]:
    """Return the partition fields in their canonical spelling."""
    fields = [parse_partition(text, [c.name for c in draft.columns]) for text in given]
    found: list[str] = []
    for field in fields:
        if str(field) in found:
            raise TrinityError(
                "DUPLICATE_COLUMN_NAME", f"Table '{draft.full_name}' is partitioned by '{field}' more than once."
            )
        found.append(str(field))
        kind = parse_type(draft.column(field.column).type)
        # for floats the formats' partition values would differ from K2: there 0.0 and -0.0 are different values
        if kind.nested or kind.is_floating:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{draft.full_name}' cannot be partitioned by column '{field.column}' of type {kind}; use a "
                "column of another type.",
            )
    if len({f.column for f in fields if f.identity}) == len(draft.columns):
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{draft.full_name}' cannot be partitioned by all of its columns; leave one out.",
        )
    return tuple(found)


def _needs_row_kind(properties: Mapping[str, str]) -> bool:
    """Return True when no visible column can mark deleted rows (U6): with ``ignore-delete`` a row kind cannot."""
    if "tombstone-key" in properties:
        return False
    return "rowkind.field" not in properties or properties.get("ignore-delete", "false").strip().lower() == "true"


def _check_columns(table: str, columns: Sequence[Column]) -> None:
    if not columns:
        raise TrinityError("INVALID_ARGUMENTS", f"Table '{table}' needs at least one column.")
    seen: set[str] = set()
    for column in columns:
        lower = column.name.lower()
        if lower in seen:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"Table '{table}' names column '{column.name}' more than once.")
        check_column(table, column)
        seen.add(lower)


@deep_recursion()
def check_column(table: str, column: Column) -> None:
    """Refuse a reserved or invalid name (N1, INVALID_ARGUMENTS), and a DEFAULT that is no expression (SYNTAX_ERROR)."""
    checked_name(column.name, "Column")
    if column.name.lower().startswith(HIDDEN_PREFIX):
        raise TrinityError(
            "INVALID_ARGUMENTS", f"Column '{column.name}': names that begin with {HIDDEN_PREFIX} are Trinity's own."
        )
    if column.default is None:
        return
    from trinity.syntax.parse import expression_or_none

    if expression_or_none(column.default) is None:
        raise TrinityError(
            "SYNTAX_ERROR",
            f"Table '{table}': DEFAULT {shown_value(column.default)} of column '{column.name}' is no expression.",
        )
