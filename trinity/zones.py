"""Converts Spark's names of time zones to those of Python and Arrow."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final
from zoneinfo import ZoneInfo

LARGEST_OFFSET: Final = dt.timedelta(hours=18)
"""The largest offset from UTC that Java knows, on either side."""

_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2}))?(?::?(\d{1,2}))?", re.IGNORECASE)
_SHORT: Final = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "EST": "-05:00", "HST": "-10:00", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "MST": "-07:00", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "Z": "UTC",
}  # fmt: skip
"""Java's short names, which Spark accepts too."""


def normal_zone(name: str) -> str:
    """Return a zone of the tz database, or an offset such as ``+05:30``, for any name that Spark accepts."""
    name = _SHORT.get(name, name)
    found = _OFFSET.fullmatch(name)
    if found is None:
        return name
    sign, hours, minutes, _ = found.groups()
    return f"{sign}{int(hours):02d}:{int(minutes or 0):02d}"


def zone_of(name: str) -> dt.tzinfo:
    """Return the zone of a name. Raises ``ZoneInfoNotFoundError`` or ``ValueError`` for an unknown name."""
    normal = normal_zone(name)
    if normal[:1] not in ("+", "-"):
        return ZoneInfo(normal)
    hours, minutes = int(normal[1:3]), int(normal[4:6])
    return dt.timezone((1 if normal[0] == "+" else -1) * dt.timedelta(hours=hours, minutes=minutes))
