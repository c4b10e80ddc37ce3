"""The protocol of a table: the features that its settings and columns call for, as Delta's own writer derives them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from trinity_delta.row_tracking import ENABLED, FEATURE
from trinity_delta.schema import CONSTRAINT, FEED, MODE, PARTITIONED, VECTORS, WIDENING

__all__ = ["CONDITIONAL_PUT", "DOMAIN_METADATA", "KEPT", "SUPPORTED", "protocol_of"]

CONDITIONAL_PUT: Final = "trinityConditionalPut"
"""A writer feature of Trinity's. No other writer knows it, so each one refuses to write: those that do not commit by a
conditional put would overwrite commits. It asks nothing of readers."""
DOMAIN_METADATA: Final = "domainMetadata"
"""The feature under which a log keeps domain metadata, as Trinity's."""
SUPPORTED: Final = "delta.feature."
"""Prefix of the settings that ask for a feature by its name."""
_READERS: Final = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "typeWidening"})
_ALWAYS: Final = ("appendOnly", "invariants")
"""Features of Delta's oldest protocol, which it lists for every table."""
_SWITCHED: Final = {
    VECTORS: "deletionVectors",
    WIDENING: "typeWidening",
    FEED: "changeDataFeed",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    ENABLED: FEATURE,
    **dict.fromkeys(PARTITIONED, "materializePartitionColumns"),
}
"""Settings that call for a feature where they are true."""
KEPT: Final = frozenset(
    {*_ALWAYS, *_SWITCHED.values(), "checkConstraints", "columnMapping", DOMAIN_METADATA, "timestampNtz"}
)
"""The features that Trinity keeps to where it commits by itself."""


def protocol_of(
    schema: str, settings: Mapping[str, str], present: Mapping[str, Any] | None = None, further: Iterable[str] = ()
) -> dict[str, Any]:
    """The ``protocol`` action of a table; a feature that it had stays.

    Args:
        schema: its ``schemaString``.
        settings: its configuration.
        present: the protocol that it has.
        further: features that it is to have whatever it holds.
    """
    had = (present or {}).get("writerFeatures") or ()
    wanted = {*had, *_ALWAYS, *further, *_of_settings(settings), *_of_types(json.loads(schema))}
    wanted |= {DOMAIN_METADATA} if FEATURE in wanted else set()  # where the highest number of a row is kept
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
