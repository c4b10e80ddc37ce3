"""Table properties: their canonical spelling, and the refusal of unknown ones (V1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from trinity.errors import TrinityError, nearest
from trinity.spi import RowChangeParadigm

__all__ = ["TABLE_PROPERTIES", "canonical_properties", "commit_timeout_s", "duration_ms", "keeps_versions"]

TABLE_PROPERTIES: Final[dict[str, str]] = {
    "merge-engine": "how row versions fold: deduplicate",
    "watermark-key": "columns 'a[,b]' whose largest value is the freshest row",
    "sequence.field": "another name of watermark-key",
    "sequence.field.sort-order": "ascending (default) or descending",
    "tombstone-key": "the column that marks a deleted row",
    "tombstone-string-key-value": "the value of a string tombstone column that means deleted",
    "tombstone.retention": "how long compaction keeps tombstones, as '30 days'; for ever by default",
    "keep-versions": "true: compaction leaves old row versions readable, unless tombstone.retention is set",
    "rowkind.field": "a string column with +I, -U, +U or -D",
    "ignore-delete": "true: retracts (-U, -D) are dropped",
    "row-change-paradigm": " or ".join(p.value for p in RowChangeParadigm),
    "bucket": "number of buckets of the base; chosen by size by default",
    "commit.retry.timeout": "how long a statement is retried after conflicts, as '10 minutes'",
    "comment": "free text",
}
"""Every property that Trinity itself reads, with a line about it."""

_COLUMN_OPTION: Final = re.compile(r"(?i)^fields\.(.+)\.([a-z_-]+)$")


def canonical_properties(given: Mapping[str, str], passed_through: tuple[str, ...] = ()) -> dict[str, str]:
    """Properties under their canonical keys: lower case, hyphens; column names within keys as they are.

    Args:
        given: properties as a user wrote them, any case, hyphens or underscores.
        passed_through: prefixes of the format's own properties, which are kept unread.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY for an unknown key (with the nearest known one), or for two
            spellings of one key.
    """
    found: dict[str, str] = {}
    for key, value in given.items():
        canonical = key if key.startswith(passed_through or ("\0",)) else _canonical_key(key)
        if canonical in found:
            raise TrinityError(
                "INVALID_TABLE_PROPERTY", f"Table property '{canonical}' is given more than once; keep one of them."
            )
        found[canonical] = str(value)
    return found


def _canonical_key(key: str) -> str:
    if _COLUMN_OPTION.match(key):
        raise TrinityError(
            "INVALID_TABLE_PROPERTY",
            f"Table property '{key}' belongs to merge engines other than deduplicate, which has no options by column.",
        )
    canonical = key.lower().replace("_", "-")
    if canonical not in TABLE_PROPERTIES:
        raise TrinityError(
            "INVALID_TABLE_PROPERTY",
            f"Table property '{key}' is unknown.{nearest(canonical, tuple(TABLE_PROPERTIES))} "
            f"Known: {', '.join(sorted(TABLE_PROPERTIES))}.",
        )
    return canonical


_UNITS: Final = {
    "ms": 1, "millisecond": 1, "s": 1000, "sec": 1000, "second": 1000, "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "week": 7 * 86_400_000,
}  # fmt: skip


def duration_ms(text: str, what: str) -> int:
    """Milliseconds of a duration such as ``7 days``, ``10 min`` or ``0 seconds``.

    Args:
        text: a whole number and a unit.
        what: the option or argument, for the message.

    Raises:
        TrinityError: INVALID_ARGUMENTS when it is no such text.
    """
    match = re.fullmatch(r"\s*(\d+)\s*([a-zA-Z]+)\s*", str(text))
    unit = match and (_UNITS.get(match[2].lower()) or _UNITS.get(match[2].lower().removesuffix("s")))
    if not match or not unit:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"{what}: '{text}' is no duration; write a number and a unit, such as '7 days'."
        )
    return int(match[1]) * unit


def keeps_versions(properties: Mapping[str, str]) -> bool:
    """Whether compaction has to leave all row versions: a journal without a retention."""
    return properties.get("keep-versions", "").lower() == "true" and "tombstone.retention" not in properties


def commit_timeout_s(properties: Mapping[str, str]) -> float:
    """How long a commit, or a statement that lost a race, is tried again: ``commit.retry.timeout``, in seconds."""
    return duration_ms(properties.get("commit.retry.timeout", "10 minutes"), "'commit.retry.timeout'") / 1000
