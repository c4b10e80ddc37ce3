"""Roles of columns in a table, and the definition with columns renamed, or without one that has no role.

The key, the partitioning and the properties that name a renamed column follow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from trinity.errors import TrinityError
from trinity.merge.properties import column_options
from trinity.merge.spec import merge_spec
from trinity.spi import Column, TableDefinition


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
    """Return the roles of each visible column in the table, such as its part in the key; a word for each role."""
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
    """Return the definition without a column that no row needs, its properties, and its part in a sequence group."""
    return replace(
        definition,
        columns=tuple(c for c in definition.columns if c is not column),
        dropped=(*definition.dropped, column),
        properties=_options_without(definition, column.name),
    )


def _options_without(definition: TableDefinition, name: str) -> dict[str, str]:
    """Return the properties without those of a column; no sequence group protects it any more."""
    found = dict(definition.properties)
    for (columns, option), value in column_options(definition.properties).items():
        key = f"fields.{columns}.{option}"
        if columns.strip().lower() == name.lower():
            del found[key]
        elif option == "sequence-group":
            found[key] = ",".join(p.strip() for p in value.split(",") if p.strip().lower() != name.lower())
    return {key: value for key, value in found.items() if not _is_of_column(key, name)}


_OF_COLUMN: Final = ".column."
"""What comes before a column's name in a format's own property, as in ``write.metadata.metrics.column.v``."""


def _is_of_column(key: str, name: str) -> bool:
    """Return whether a format's own property is about a column, or about a field within it."""
    return key.partition(_OF_COLUMN)[2].partition(".")[0].lower() == name.lower()


_COLUMN_LISTS: Final = (
    "watermark-key",
    "sequence.field",
    "tombstone-key",
    "rowkind.field",
    "partial-update.remove-record-on-sequence-group",
)
"""Properties whose value is a list of columns."""


def renamed(definition: TableDefinition, names: Mapping[str, str]) -> TableDefinition:
    """Return the definition with other names for some of its columns; data files keep the old names.

    The names change all at once: two columns may swap theirs.
    """
    lower = {old.lower(): new for old, new in names.items()}
    columns = (
        replace(c, name=names[c.name], stored=None if c.stored_name == names[c.name] else c.stored_name)
        if c.name in names
        else c
        for c in definition.columns
    )
    fields = [replace(f, column=names.get(f.column, f.column)) for f in definition.partition_fields]
    return replace(
        definition,
        columns=tuple(columns),
        primary_key=tuple(names.get(k, k) for k in definition.primary_key),
        partition_by=tuple(map(str, fields)),
        properties=_options_renamed(definition.properties, lower),
    )


def _options_renamed(properties: Mapping[str, str], lower: Mapping[str, str]) -> dict[str, str]:
    by_column = {f"fields.{columns}.{option}": (columns, option) for columns, option in column_options(properties)}
    found = {}
    for key, value in properties.items():
        if key in by_column:
            columns, option = by_column[key]
            renamed_key = f"fields.{_renamed_list(key, columns, lower)}.{option}"
            value = _renamed_list(key, value, lower) if option == "sequence-group" else value
            key = renamed_key
        elif key in _COLUMN_LISTS:
            value = _renamed_list(key, value, lower)
        elif _OF_COLUMN in key:
            start, _, column = key.partition(_OF_COLUMN)
            name, dot, within = column.partition(".")
            key = f"{start}{_OF_COLUMN}{lower.get(name.lower(), name)}{dot}{within}"
        found[key] = value
    return found


def _renamed_list(key: str, text: str, lower: Mapping[str, str]) -> str:
    """Return a property's list of columns with the new names."""
    names = [lower.get(name.strip().lower(), name.strip()) for name in text.split(",")]
    for name in names:
        if "," in name or name != name.strip():
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Column '{name}' cannot have this name: property '{key}' names the column, in a list between commas.",
            )
    return ",".join(names)
