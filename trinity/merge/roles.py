"""Roles of columns in a table, and the definition without a column that has none."""

from __future__ import annotations

from dataclasses import replace

from trinity.merge.options import column_options
from trinity.merge.parse import merge_spec
from trinity.spi import Column, TableDefinition

__all__ = ["role_of", "roles_of", "without_column"]


def role_of(definition: TableDefinition, name: str) -> str | None:
    """Return the reason why rows of a table need a column, as text for people; None when they do not."""
    if name in definition.partition_columns:
        return "a partition column"
    if not definition.keyed:
        return None
    spec = merge_spec(definition)
    for columns, role in (
        (spec.key, "part of the primary key"),
        (spec.ordering, "the watermark"),
        ((spec.tombstone,), "the tombstone"),
        ((spec.row_kind,), "the row kind"),
    ):
        if name in columns:
            return role
    for group in spec.groups:
        if name in group.sequence:
            return f"the sequence of {', '.join(group.protected)}"
        if group.protected == (name,):
            return f"all that the sequence group of {', '.join(group.sequence)} protects"
    return None


def roles_of(definition: TableDefinition) -> dict[str, list[str]]:
    """Return for each visible column what it is in the table, in a word each."""
    found: dict[str, list[str]] = {c.name: [] for c in definition.visible}
    spec = merge_spec(definition) if definition.keyed else None
    marks = [(definition.partition_columns, "partition")]
    if spec is not None:
        single = ((spec.tombstone, "tombstone"), (spec.row_kind, "row kind"))
        sequences = [(group.sequence, "sequence") for group in spec.groups]
        functions = [((name,), function.name) for name, function in spec.functions.items()]
        kinds = [((name,), word) for name, word in single if name is not None]
        marks = [(spec.key, "key"), (spec.ordering, "watermark"), *kinds, *sequences, *functions, *marks]
    for names, word in marks:
        for name in names:
            if name in found and word not in found[name]:
                found[name].append(word)
    return found


def without_column(definition: TableDefinition, column: Column) -> TableDefinition:
    """Return the definition without a column that no row needs, without its options, and out of its sequence group."""
    return replace(
        definition,
        columns=tuple(c for c in definition.columns if c is not column),
        dropped=(*definition.dropped, column),
        properties=_options(definition, column.name),
    )


def _options(definition: TableDefinition, name: str) -> dict[str, str]:
    """Return the properties without those of a column; no sequence group protects it any more."""
    found = dict(definition.properties)
    for (columns, option), value in column_options(definition.properties).items():
        key = f"fields.{columns}.{option}"
        if columns.strip().lower() == name.lower():
            del found[key]
        elif option == "sequence-group":
            found[key] = ",".join(p.strip() for p in value.split(",") if p.strip().lower() != name.lower())
    return found
