"""The protocol of a table: the features that its settings and columns need, and those that Trinity reads and writes.

They are derived as Delta's own writer does it. A version or a feature that Trinity does not know is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage import Location
from trinity_delta.row_tracking import ENABLED, FEATURE
from trinity_delta.schema import CONSTRAINT, FEED, MODE, PARTITIONED, VECTORS, WIDENING, every_field, fields_of

__all__ = [
    "CONDITIONAL_PUT",
    "DOMAIN_METADATA",
    "KEPT",
    "SUPPORTED",
    "check_own_writable",
    "check_readable",
    "check_writable",
    "protocol_of",
    "refused",
]

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

_READABLE: Final = frozenset(
    {
        "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
        "vacuumProtocolCheck", "variantShredding", "variantShredding-preview", "variantType", "variantType-preview",
    }
)  # fmt: skip
"""Reader features that Delta's own Spark reader supports for the native scan. Those of VARIANT matter only where a
column has that type, and such a column is refused by its name.
"""
_HIGHEST: Final = {"minReaderVersion": 3, "minWriterVersion": 7}
"""The highest versions of the protocol that Trinity knows."""
_WRITABLE: Final = _READABLE | {
    "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "checkpointProtection", "clustering",
    "domainMetadata", "generatedColumns", "identityColumns", "inCommitTimestamp", "invariants",
    "materializePartitionColumns", "rowTracking",
}  # fmt: skip
"""Writer features that an append satisfies, provided that no column uses those that compute values."""
_COMPUTED: Final = {
    "delta.generationExpression": "a generated column",
    "delta.identity.start": "an identity column",
    "delta.invariants": "a column invariant",
}
_ISOLATION: Final = "delta.isolationLevel"


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


def check_readable(table: TableHandle, protocol: Mapping[str, Any]) -> None:
    """Refuse a protocol with a version or a feature that Trinity does not read. Raises NOT_SUPPORTED naming it."""
    _check_version(table, protocol, "minReaderVersion")
    if unknown := set(protocol.get("readerFeatures") or ()) - _READABLE:
        raise refused(table, f"the features {', '.join(sorted(unknown))}, which Trinity does not read")


def check_writable(table: TableHandle, metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> None:
    """Refuse a table for which an append is not supported. Raises NOT_SUPPORTED naming the feature or column."""
    features, on_disk = set(protocol.get("writerFeatures") or ()), Location.of(table.location).on_disk
    _check_version(table, protocol, "minWriterVersion")
    if unknown := features - _WRITABLE - (set() if on_disk else {CONDITIONAL_PUT}):
        raise refused(table, f"the features {', '.join(sorted(unknown))}, which Trinity does not write")
    for field in every_field(fields_of(metadata)):
        for key, what in _COMPUTED.items():
            if key in field["metadata"]:
                raise refused(table, f"{what}, '{field['name']}', which Trinity does not compute or check")


def check_own_writable(table: TableHandle, metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> None:
    """Refuse to write where other engines' settings ask for what Trinity does not do. Raises NOT_SUPPORTED."""
    if not Location.of(table.location).on_disk and CONDITIONAL_PUT not in (protocol.get("writerFeatures") or ()):
        raise refused(table, f"no feature {CONDITIONAL_PUT}, so others might put their commits over those of Trinity")
    check_writable(table, metadata, protocol)
    level = metadata["configuration"].get(_ISOLATION, "Serializable")
    if level != "Serializable":
        raise refused(table, f"'{_ISOLATION}' = '{level}', under which commits could overlook one another")


def _check_version(table: TableHandle, protocol: Mapping[str, Any], key: str) -> None:
    if protocol[key] > _HIGHEST[key]:
        raise refused(table, f"'{key}' {protocol[key]}, of which Trinity does not know what it asks for")


def refused(table: TableHandle, what: str) -> TrinityError:
    """Return the error of a table with something that Trinity does not support."""
    return TrinityError(
        "NOT_SUPPORTED",
        f"Delta table '{table.full_name}' has {what}; use the engine that made it, or drop this there.",
    )
