"""CAST of strings to timestamps in ANSI mode: a text that is no timestamp is an error."""

from __future__ import annotations

import re
from typing import Final
from zoneinfo import ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_numpy
from trinity.clock import now
from trinity.engine.expressions.days import LAST_DAY, MICROS_OF_DAY, Numbers
from trinity.engine.expressions.text_values import DATE_PARTS, days_of, number_of, refuse_where, trimmed
from trinity.engine.writing.clocks import instants_of
from trinity.spi import DataType
from trinity.zones import LARGEST_OFFSET, normal_zone, zone_of

_CLOCK: Final = (
    "(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?"
)
_TIME: Final = f"(?s)^{DATE_PARTS.format(most='{4,6}', behind=_CLOCK)}$"
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?|\d\d:?\d\d|\d\d:\d\d:\d\d|\d{6})")
_NO_OFFSET: Final = ("UTC", "GMT", "UT", "Z")
_NO_REGIONS: Final = ("posix/", "right/", "localtime", "posixrules", "Factory")
"""Beginnings of the names of Python's zones that Java lacks."""
_SECOND: Final = 1_000_000
_CYCLE: Final = 146_097
"""Days of four hundred years, after which the calendar repeats."""
_FAR: Final = 100_000_000
"""Days since 1970 beyond which the offsets of a zone are the same in every cycle."""
_MOST_DAYS: Final = LAST_DAY + 3
"""Days since 1970 after which no local time in any zone is a TIMESTAMP."""


def times_of_texts(texts: pa.Array, kind: DataType, zone: str) -> pa.Array:
    """Read texts, none of them NULL, as times: a date, which a time of day and a zone may follow.

    A TIMESTAMP may be a time alone, of today. TIMESTAMP_NTZ ignores a zone in the text.

    Raises:
        TrinityError: TYPE_MISMATCH for another text.
    """
    found = pc.extract_regex(_with_date(texts, zone) if kind.name == "timestamp" else trimmed(texts), _TIME)
    refuse_where(pc.is_null(found), texts, kind)
    days, wrong = days_of(found)
    hour, minute, second = (number_of(found.field(part), 0) for part in ("hour", "minute", "second"))
    fraction = number_of(pc.utf8_rpad(pc.utf8_slice_codeunits(found.field("fraction"), 0, 6), 6, "0"), 0)
    wrong |= (hour > 23) | (minute > 59) | (second > 59) | (np.abs(days) > _MOST_DAYS)
    refuse_where(pa.array(wrong), texts, kind)
    # a time far from 1970 is converted one cycle nearer, where offsets are the same and no sum overflows
    cycles = np.where(days > _FAR, _CYCLE, np.where(days < -_FAR, -_CYCLE, 0))
    micros = (days - cycles) * MICROS_OF_DAY + ((hour * 60 + minute) * 60 + second) * _SECOND + fraction
    zones = found.field("zone").dictionary_encode()
    numbers, names = as_numpy(zones.indices), zones.dictionary.to_pylist()
    zoned = [zone if not name else _zone(name) for name in names]
    refuse_where(pa.array(np.array([z is None for z in zoned], bool)[numbers]), texts, kind)
    if kind.name == "timestamp":
        clocks = micros
        micros = clocks.copy()
        for number, its in enumerate(zoned):
            micros[numbers == number] = _instants(clocks[numbers == number], its)
    refuse_where(pa.array(_are_beyond(micros, cycles)), texts, kind)
    return pa.array(micros + cycles * MICROS_OF_DAY).cast(pa.timestamp("us")).cast(kind.to_arrow())


def _are_beyond(micros: Numbers, days: Numbers) -> np.ndarray:
    """Return True for times that are beyond the range of TIMESTAMP once the days are added to them."""
    found: np.ndarray = np.not_equal(days, 0)
    far = zip(micros[found].tolist(), days[found].tolist(), strict=True)
    found[found] = [not -(2**63) <= time + day * MICROS_OF_DAY < 2**63 for time, day in far]
    return found


def _with_date(texts: pa.Array, zone: str) -> pa.Array:
    """Return trimmed texts, with today's date put before those that are a time alone."""
    of_t = pc.starts_with(texts, "T")
    bare = trimmed(texts)
    alone = pc.or_(
        pc.and_(of_t, pc.match_substring_regex(bare, "^T[0-9]")), pc.match_substring_regex(bare, "^[0-9]{1,2}:")
    )
    if not pc.any(alone).as_py():
        return bare
    today = now().astimezone(zone_of(zone)).date().isoformat()
    return pc.if_else(alone, pc.replace_substring_regex(bare, "^T?", f"{today}T"), bare)


def _zone(text: str) -> str | int | None:
    """Return a zone of the tz database, the seconds of an offset from UTC, or None for what Java does not know."""
    text = text.strip("".join(map(chr, range(33))))
    text = re.sub(r"([+-])(\d):", r"\g<1>0\2:", text, count=1)
    text = re.sub(r"([+-])(\d\d):(\d)$", r"\1\2:0\3", text, count=1)
    if text in _NO_OFFSET:
        return 0
    if (offset := _OFFSET.fullmatch(text)) is not None:
        hours, minutes, seconds = (int(offset[2].replace(":", "").ljust(6, "0")[n : n + 2]) for n in (0, 2, 4))
        if len(offset[2]) == 1:
            hours, minutes, seconds = int(offset[2]), 0, 0
        total = (hours * 60 + minutes) * 60 + seconds
        fits = minutes < 60 and seconds < 60 and total <= LARGEST_OFFSET.total_seconds()
        return (total if offset[1] == "+" else -total) if fits else None
    if text.startswith(_NO_REGIONS) or any(sign in text[:4] for sign in "+-"):
        return None
    try:
        zone_of(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return normal_zone(text)


def _instants(clocks: Numbers, zone: str | int | None) -> Numbers:
    if isinstance(zone, int):
        return clocks - zone * _SECOND
    times = instants_of(pa.array(clocks).cast(pa.timestamp("us")), str(zone))
    return as_numpy(times.cast(pa.int64()))
