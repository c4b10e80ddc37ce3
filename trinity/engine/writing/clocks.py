"""Conversion between instants and the local times of a zone ("clocks"), with Spark's results.

Arrow knows the offset changes of a zone only until 2037; later ones follow the zone's last rule.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.zones import zone_of

_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICRO: Final = dt.timedelta(microseconds=1)
_LATE: Final = (dt.datetime(2037, 1, 1) - _EPOCH) // _MICRO
_CYCLE: Final = 146_097 * 86_400_000_000
"""Microseconds of four hundred years, after which the calendar repeats, days of the week included."""


def instants_of(clocks: pa.Array, zone: str) -> pa.Array:
    """Convert a zone's clocks to instants as Spark does: the earlier of two; a clock in a gap moves on by the gap."""
    found = pc.assume_timezone(clocks, zone, ambiguous="earliest", nonexistent="earliest")
    found = pc.add(found, pc.subtract(clocks, pc.local_timestamp(found)))
    return _with_late(clocks, found, zone, _clock_to_instant)


def _clock_to_instant(clock: dt.datetime, tz: dt.tzinfo) -> dt.timedelta:
    return -(clock.replace(tzinfo=tz).utcoffset() or dt.timedelta())


def starts_of_days(midnights: pa.Array, zone: str) -> pa.Array:
    """Return the first instants of days in a zone. If midnight is in a gap, the day begins at the end of the gap."""
    found = pc.assume_timezone(midnights, zone, ambiguous="earliest", nonexistent="latest")
    return _with_late(midnights, found, zone, _clock_to_instant)


def clocks_of(instants: pa.Array, zone: str) -> pa.Array:
    """Convert instants to a zone's clocks."""
    found = pc.local_timestamp(instants.cast(pa.timestamp(instants.type.unit, zone)))

    def offset(clock: dt.datetime, tz: dt.tzinfo) -> dt.timedelta:
        return clock.replace(tzinfo=dt.UTC).astimezone(tz).utcoffset() or dt.timedelta()

    return _with_late(instants, found, zone, offset)


def _with_late(
    values: pa.Array, found: pa.Array, zone: str, offset: Callable[[dt.datetime, dt.tzinfo], dt.timedelta]
) -> pa.Array:
    """Return the values ``found``, except for late ones: these Python's zones convert, one by one."""
    if values.type.unit != "us" or zone == "UTC" or zone[:1] in "+-":
        return found
    micros = values.cast(pa.int64())
    late = pc.greater_equal(micros, _LATE)
    if not pc.any(late).as_py():
        return found
    tz = zone_of(zone)
    given: np.ndarray = as_numpy(micros.filter(late))
    instants, again = np.unique((given - _LATE) % _CYCLE + _LATE, return_inverse=True)
    offsets = np.array([offset(_EPOCH + int(instant) * _MICRO, tz) // _MICRO for instant in instants], np.int64)
    moved: Any = as_arrow(given + offsets[again])
    return pc.replace_with_mask(found.cast(pa.int64()), pc.fill_null(late, False), moved).cast(found.type)
