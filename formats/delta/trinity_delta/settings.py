"""Delta's table settings that Trinity supports in its own commits: spelling and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from trinity.errors import TrinityError
from trinity.storage import duration_ms
from trinity_delta.features import KEPT, SUPPORTED
from trinity_delta.row_tracking import ENABLED, MATERIALIZED
from trinity_delta.schema import CONSTRAINT, MODE

__all__ = [
    "are_kept",
    "checked_settings",
    "checkpoint_interval",
    "cleans_up",
    "known_settings",
    "log_retention_ms",
    "retention_ms",
]

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
