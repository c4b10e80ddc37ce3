"""Column mapping: the numbers and the names in data files that Delta gives to all fields, also nested ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from trinity_delta.schema import ID, MODE, PHYSICAL

__all__ = ["HIGHEST", "numbered"]

HIGHEST: Final = "delta.columnMapping.maxColumnId"
"""Setting: the highest number ever given."""


def numbered(schema: str, settings: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a schema and settings in which each field has a number. A field without a name in data files gets its own.

    Args:
        schema: the ``schemaString``, whose fields may be new.
        settings: the table's configuration.
    """
    if settings.get(MODE, "none") == "none":
        return schema, dict(settings)
    fresh = count(int(settings.get(HIGHEST, 0)) + 1)
    return json.dumps(_with_numbers(json.loads(schema), fresh)), {**settings, HIGHEST: str(next(fresh) - 1)}


def _with_numbers(kind: Any, fresh: Iterator[int]) -> Any:
    """Return a type with numbered fields, in the order in which they are written, each before those within it."""
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
