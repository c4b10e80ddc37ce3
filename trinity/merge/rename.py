"""Renamed columns: the key, the partitioning and the options that name them follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from trinity.merge.options import column_options
from trinity.spi import TableDefinition

__all__ = ["renamed"]

_COLUMN_LISTS: Final = (
    "watermark-key",
    "sequence.field",
    "tombstone-key",
    "rowkind.field",
    "partial-update.remove-record-on-sequence-group",
)
"""Options whose value is a list of columns."""


def renamed(definition: TableDefinition, names: Mapping[str, str]) -> TableDefinition:
    """Return the definition with other names for some of its columns; data files keep the old names.

    Args:
        definition: the table.
        names: name -> new name, all at once: two columns may swap their names.
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
        properties=_options(definition.properties, lower),
    )


def _options(properties: Mapping[str, str], lower: Mapping[str, str]) -> dict[str, str]:
    by_column = {f"fields.{columns}.{option}": (columns, option) for columns, option in column_options(properties)}
    found = {}
    for key, value in properties.items():
        if key in by_column:
            columns, option = by_column[key]
            key = f"fields.{_renamed_list(columns, lower)}.{option}"
            value = _renamed_list(value, lower) if option == "sequence-group" else value
        elif key in _COLUMN_LISTS:
            value = _renamed_list(value, lower)
        found[key] = value
    return found


def _renamed_list(text: str, lower: Mapping[str, str]) -> str:
    """Return a list of columns with the new names."""
    return ",".join(lower.get(name.strip().lower(), name.strip()) for name in text.split(","))
