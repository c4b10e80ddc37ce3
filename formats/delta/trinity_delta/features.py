"""The protocol of a table: the features that its settings and columns need, derived as Delta's own writer does it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from trinity_delta.row_tracking import ENABLED, FEATURE
from trinity_delta.schema import CONSTRAINT, FEED, MODE, PARTITIONED, VECTORS, WIDENING

__all__ = ["CONDITIONAL_PUT", "DOMAIN_METADATA", "KEPT", "SUPPORTED", "protocol_of"]

CONDITIONAL_PUT: Final = "trinityConditionalPut"
"""A writer feature of Trinity's own. No other writer knows it, so every other one refuses to write: writers that do not
commit by a conditional put would overwrite commits. It demands nothing of readers.
"""
DOMAIN_METADATA: Final = "domainMetadata"
"""The feature under which a log keeps domain metadata, such as Trinity's."""
SUPPORTED: Final = "delta.feature."
"""Prefix of the settings that enable a feature by its name."""
_READERS: Final = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "typeWidening"})
_ALWAYS: Final = ("appendOnly", "invariants")
"""Features of Delta's oldest protocol, which Delta lists for every table."""
_SWITCHED: Final = {
    VECTORS: "deletionVectors",
    WIDENING: "typeWidening",
    FEED: "changeDataFeed",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    ENABLED: FEATURE,
    **dict.fromkeys(PARTITIONED, "materializePartitionColumns"),
}
"""Settings that need a feature when they are true."""
KEPT: Final = frozenset(
    {*_ALWAYS, *_SWITCHED.values(), "checkConstraints", "columnMapping", DOMAIN_METADATA, "timestampNtz"}
)
"""The features that Trinity supports in its own commits."""


def protocol_of(
    schema: str, settings: Mapping[str, str], present: Mapping[str, Any] | None = None, further: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the ``protocol`` action of a table; features that it has stay.

    Args:
        schema: the table's ``schemaString``.
        settings: the table's configuration.
        present: the present protocol.
        further: features to add in any case.
    """
    had = (present or {}).get("writerFeatures") or ()
    wanted = {*had, *_ALWAYS, *further, *_of_settings(settings), *_of_types(json.loads(schema))}
    wanted |= {DOMAIN_METADATA} if FEATURE in wanted else set()  # it holds the highest row id
    readers = sorted({*((present or {}).get("readerFeatures") or ()), *(wanted & _READERS)})
    version = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    return {**version, **({"readerFeatures": readers} if readers else {}), "writerFeatures": sorted(wanted)}


def _of_settings(settings: Mapping[str, str]) -> Iterator[str]:
    for key, value in settings.items():
        if key in _SWITCHED and value.lower() == "true":
            yield _SWITCHED[key]
        elif key.startswith(CONSTRAINT):
            yield "checkConstraints"
        elif key == MODE and value != "none":
            yield "columnMapping"


def _of_types(kind: Any) -> Iterator[str]:
    if kind == "timestamp_ntz":
        yield "timestampNtz"
    elif isinstance(kind, Mapping):
        for part in ("type", "elementType", "keyType", "valueType"):
            yield from _of_types(kind.get(part))
        for field in kind.get("fields", ()):
            yield from _of_types(field)
