"""The definition as Trinity recorded it in table properties, also for older schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.table.metadata import TableMetadata

__all__ = ["DEFINITION", "recorded"]

DEFINITION: Final = "trinity.definition"
"""Table property: JSON of the definition, as an Iceberg schema cannot hold all of it.

With ``.<schema id>`` appended it is that of an older schema.
"""


def recorded(metadata: TableMetadata, schema_id: int) -> Mapping[str, Any] | None:
    """Return the definition at a schema, or None for an external table.

    A schema that another engine left has no record. It gets the next recorded definition, which lacks what came later,
    such as the column for stamps.
    """
    texts = {int(key.rpartition(".")[2]): text for key, text in metadata.properties.items() if _is_older(key)}
    later = [number for number in texts if number >= schema_id != metadata.current_schema_id]
    found: Mapping[str, Any] | None = json.loads(
        texts[min(later)] if later else metadata.properties.get(DEFINITION, "null")
    )
    return found


def _is_older(key: str) -> bool:
    return key.startswith(f"{DEFINITION}.") and key.removeprefix(f"{DEFINITION}.").isdecimal()
