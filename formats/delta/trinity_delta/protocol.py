"""The settings and the protocol of a table: what Trinity supports in its own commits, reads and writes.

The features that settings and columns need are derived as Delta's own writer does it. A version or a feature that
Trinity does not know is refused; of settings, spelling and values are checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.merge.properties import duration_ms
from trinity.spi import TableHandle
from trinity.storage import Location
from trinity_delta.row_tracking import ENABLED, FEATURE, MATERIALIZED
from trinity_delta.schema import CONSTRAINT, FEED, MODE, PARTITIONED, VECTORS, WIDENING, every_field, fields_of

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
    """Return the ``protocol`` action of a table: features for its schema and settings, the present and further ones."""
    had = (present or {}).get("writerFeatures") or ()
    wanted = {*had, *_ALWAYS, *further, *_of_settings(settings), *_of_types(json.loads(schema))}
    wanted |= {DOMAIN_METADATA} if FEATURE in wanted else set()  # row tracking keeps its highest number there
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
    fields, partitions = fields_of(metadata), {name.lower() for name in metadata["partitionColumns"]}
    if texts := [f["name"] for f in fields if f["type"] == "binary" and f["name"].lower() in partitions]:
        raise refused(
            table, f"a partitioning by the binary column '{texts[0]}', whose values engines escape differently"
        )
    for field in every_field(fields):
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


_INTERVAL: Final = "delta.checkpointInterval"
_RETENTION: Final = "delta.deletedFileRetentionDuration"
_LOG_RETENTION: Final = "delta.logRetentionDuration"
_CLEANUP: Final = "delta.enableExpiredLogCleanup"
_UNITS: Final = ("week", "day", "hour", "minute", "second", "millisecond")
_DURATION: Final = re.compile(rf"interval((?:\s+\d+\s+(?:{'|'.join(_UNITS)})s?)+)", re.IGNORECASE)


def _is_flag(value: str) -> bool:
    return value.lower() in ("true", "false")


def _is_count(value: str) -> bool:
    return value.isdecimal() and int(value) > 0


def _is_duration(value: str) -> bool:
    return _DURATION.fullmatch(value.strip()) is not None


_KNOWN: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    **dict.fromkeys(
        (
            "delta.appendOnly",
            "delta.enableChangeDataFeed",
            "delta.enableDeletionVectors",
            _CLEANUP,
            "delta.enableInCommitTimestamps",
            "delta.enableMaterializePartitionColumnsFeature",
            ENABLED,
            "delta.enableTypeWidening",
        ),
        (_is_flag, "'true' or 'false'"),
    ),
    _INTERVAL: (_is_count, "a positive number of commits"),
    **dict.fromkeys((_RETENTION, _LOG_RETENTION), (_is_duration, "an interval such as 'interval 7 days'")),
    MODE: (lambda value: value in ("none", "name"), "'none' or 'name'"),
    "delta.dataSkippingNumIndexedCols": (lambda value: value == "-1" or value.isdecimal(), "a number of columns"),
    "delta.dataSkippingStatsColumns": (bool, "names of columns"),
    "delta.isolationLevel": (lambda value: value == "Serializable", "'Serializable'"),
}


_NOTED: Final = frozenset(
    {
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        *MATERIALIZED,
    }
)
"""Settings in which a table records the effects of its other settings."""


def known_settings() -> dict[str, str]:
    """Return each supported setting with the values that it takes."""
    return {name: wanted for name, (_, wanted) in sorted(_KNOWN.items())}


def checked_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return settings with Delta's own spelling of their names.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY for an unsupported setting, or a value that is not allowed.
    """
    spelled = {name.lower(): name for name in _KNOWN}
    found: dict[str, str] = {}
    for key, value in given.items():
        if key.startswith(CONSTRAINT) or (key.removeprefix(SUPPORTED) in KEPT and value == "supported"):
            found[key] = value
            continue
        name = spelled.get(key.lower())
        if name is None:
            raise TrinityError(
                "INVALID_TABLE_PROPERTY",
                f"Table property '{key}' is none that Trinity keeps to in an object store; known are: "
                f"{', '.join(known_settings())}.",
            )
        allowed, wanted = _KNOWN[name]
        if not allowed(value):
            raise TrinityError("INVALID_TABLE_PROPERTY", f"Table property '{name}' is '{value}'; give {wanted}.")
        found[name] = value
    return found


def are_kept(settings: Mapping[str, str]) -> bool:
    """Return whether Trinity supports all of a table's Delta settings, with their values."""
    own = {key: text for key, text in settings.items() if key.lower().startswith("delta.") and key not in _NOTED}
    try:
        return bool(checked_settings(own)) or not own
    except TrinityError:
        return False


def checkpoint_interval(settings: Mapping[str, str]) -> int:
    """Return the number of commits from one checkpoint to the next; Delta's default is 10."""
    return int(settings.get(_INTERVAL, 10))


def retention_ms(settings: Mapping[str, str]) -> int:
    """Return how long Delta's own VACUUM keeps a removed file, milliseconds; Delta's default is a week."""
    return _interval_ms(settings, _RETENTION, "7 days")


def log_retention_ms(settings: Mapping[str, str]) -> int:
    """Return how long the log keeps versions, milliseconds; Delta's default is 30 days."""
    return _interval_ms(settings, _LOG_RETENTION, "30 days")


def cleans_up(settings: Mapping[str, str]) -> bool:
    """Return whether the log is cleaned up, which is Delta's default."""
    return settings.get(_CLEANUP, "true").lower() == "true"


def _interval_ms(settings: Mapping[str, str], name: str, default: str) -> int:
    words = settings.get(name, default).lower().removeprefix("interval").split()
    parts = zip(words[::2], words[1::2], strict=True)
    return sum(duration_ms(f"{number} {unit}", name) for number, unit in parts)
