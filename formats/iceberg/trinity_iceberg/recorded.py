"""The definition as Trinity put it on record: in table properties, of older schemas too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.table.metadata import TableMetadata

__all__ = ["DEFINITION", "recorded"]

DEFINITION: Final = "trinity.definition"
"""Table property: JSON of the definition, which says what a schema of Iceberg cannot.

With ``.<schema id>`` behind it that of an older schema."""


def recorded(metadata: TableMetadata, schema_id: int) -> Mapping[str, Any] | None:
    """The definition at a schema, or None for a table of others.

    A schema that another engine left is of the time before the next one on record: what came later, as the column for
    stamps, it does not have.
    """
    texts = {int(key.rpartition(".")[2]): text for key, text in metadata.properties.items() if _is_older(key)}
    later = [number for number in texts if number >= schema_id != metadata.current_schema_id]
    found: Mapping[str, Any] | None = json.loads(
        texts[min(later)] if later else metadata.properties.get(DEFINITION, "null")
    )
    return found


def _is_older(key: str) -> bool:
    return key.startswith(f"{DEFINITION}.") and key.removeprefix(f"{DEFINITION}.").isdecimal()
