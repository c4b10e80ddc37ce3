"""Column mapping: the numbers, and the names in data files, that Delta gives to all fields, nested ones too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from trinity_delta.schema import ID, MODE, PHYSICAL

__all__ = ["numbered"]

_HIGHEST: Final = "delta.columnMapping.maxColumnId"
"""Setting: the highest number that was ever given."""


def numbered(schema: str, settings: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A ``schemaString`` and settings in which each field has a number; those without a name in data files keep theirs.

    Args:
        schema: a table's, of which fields may be new.
        settings: its configuration.
    """
    if settings.get(MODE, "none") == "none":
        return schema, dict(settings)
    fresh = count(int(settings.get(_HIGHEST, 0)) + 1)
    return json.dumps(_with_numbers(json.loads(schema), fresh)), {**settings, _HIGHEST: str(next(fresh) - 1)}


def _with_numbers(kind: Any, fresh: Iterator[int]) -> Any:
    """A type, whose fields get their numbers in the order in which it is written, each before those within it."""
    if not isinstance(kind, Mapping):
        return kind
    found = dict(kind)
    for part in ("elementType", "keyType", "valueType"):
        if part in kind:
            found[part] = _with_numbers(kind[part], fresh)
    if "fields" in kind:
        found["fields"] = [_field(field, fresh) for field in kind["fields"]]
    return found


def _field(field: Mapping[str, Any], fresh: Iterator[int]) -> dict[str, Any]:
    metadata = dict(field["metadata"])
    if ID not in metadata:
        metadata[ID] = next(fresh)
    metadata.setdefault(PHYSICAL, field["name"])
    return {**field, "metadata": metadata, "type": _with_numbers(field["type"], fresh)}
