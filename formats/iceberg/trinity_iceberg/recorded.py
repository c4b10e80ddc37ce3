"""The definition as Trinity recorded it in table properties, also for older versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from pyiceberg.table.metadata import TableMetadata

__all__ = [
    "DEFINITION",
    "STATE",
    "definitions",
    "facts",
    "kept",
    "lost",
    "mark_of",
    "newest",
    "recorded",
    "unneeded",
]

DEFINITION: Final = "trinity.definition"
"""Table property: JSON of the definition, as an Iceberg schema cannot hold all of it.

With ``.<schema id>`` appended it is that of an older schema, and with ``.<schema id>.<version>`` that of the versions
of a schema up to a version, after which key or properties changed.
"""

STATE: Final = "trinity.state"
"""Table property: JSON object with the facts that the newest Trinity commit carries, its version, and a mark."""
_MARK: Final = "definition"
"""The mark: a digest of the definition. It shows that Trinity made the table, and what others did to the definition."""


def facts(metadata: TableMetadata) -> dict[str, str]:
    """Return the facts that the newest Trinity commit put on record."""
    found: dict[str, str] = json.loads(metadata.properties.get(STATE, "{}"))
    return found


def mark_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the mark of the definition among table properties; empty where there is none."""
    text = properties.get(DEFINITION)
    return {} if text is None else {_MARK: hashlib.sha256(text.encode()).hexdigest()[:16]}


def lost(metadata: TableMetadata) -> dict[str, str]:
    """Return the mark of the definition that another engine took away from a table of Trinity's, or changed there.

    It is empty for a table that has its definition, and for one of others.
    """
    mark = {key: value for key, value in facts(metadata).items() if key == _MARK}
    return {} if mark == mark_of(metadata.properties) else mark


def definitions(metadata: TableMetadata) -> dict[str, str]:
    """Return the properties with the definitions of all versions."""
    return {k: v for k, v in metadata.properties.items() if k == DEFINITION or k.startswith(f"{DEFINITION}.")}


def kept(metadata: TableMetadata, definition: str, *, same_schema: bool) -> dict[str, str]:
    """Return the properties that keep the present definition for versions until now, as another one is put.

    Args:
        metadata: the table before that.
        definition: the text of the present definition.
        same_schema: whether the other one may have the same schema.
    """
    schema = metadata.current_schema_id
    return {f"{DEFINITION}.{schema}{f'.{newest(metadata)}' if same_schema else ''}": definition}


def newest(metadata: TableMetadata) -> int:
    """Return the newest version; 0 for a table without snapshots."""
    snapshot = metadata.current_snapshot()
    return (snapshot.sequence_number or 0) if snapshot else 0


def recorded(metadata: TableMetadata, schema_id: int, version: int) -> Mapping[str, Any] | None:
    """Return the definition of a version, which has a schema; or None for an external table."""
    definition: Mapping[str, Any] | None = json.loads(
        metadata.properties.get(_property(metadata, schema_id, version), "null")
    )
    return definition


def unneeded(metadata: TableMetadata, gone: Collection[int]) -> list[str]:
    """Return the properties with definitions of no version but those whose snapshots are gone."""
    current = metadata.current_schema_id
    needed = {
        _property(metadata, current if s.schema_id is None else s.schema_id, s.sequence_number or 0)
        for s in metadata.snapshots
        if s.snapshot_id not in gone
    }
    return sorted(key for key in metadata.properties if key.startswith(f"{DEFINITION}.") and key not in needed)


def _property(metadata: TableMetadata, schema_id: int, version: int) -> str:
    """Return the name of the property with the definition of a version.

    A schema that another engine left has no record. It gets the next recorded definition, which lacks what came later,
    such as the column for stamps.
    """
    keys = [key for key in metadata.properties if key.startswith(f"{DEFINITION}.")]
    places = {key: key.removeprefix(f"{DEFINITION}.").split(".") for key in keys}
    known = {tuple(map(int, place)): key for key, place in places.items()}
    same = [place for place in known if len(place) == 2 and place[0] == schema_id and place[1] >= version]
    later = [place for place in known if len(place) == 1 and place[0] >= schema_id != metadata.current_schema_id]
    return known[min(same or later)] if same or later else DEFINITION
