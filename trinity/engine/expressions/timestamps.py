"""Timestamps plus intervals, and timestamps truncated to a unit: both change the local time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.calls import current_work
from trinity.engine.expressions.casts import cast
from trinity.engine.expressions.dates import as_date, days_after, of_days
from trinity.engine.expressions.days import (
    LAST_DAY,
    MICROS_OF_DAY,
    Numbers,
    days_since_1970,
    first_days,
    months_later,
    months_of,
)
from trinity.engine.expressions.literals import constant
from trinity.engine.expressions.node import Compiled, Refused
from trinity.engine.expressions.rows import of_rows
from trinity.engine.writing.clocks import clocks_of, instants_of, starts_of_days
from trinity.errors import TrinityError
from trinity.spi import INTEGERS, DataType
from trinity.zones import normal_zone

_Timezone = Callable[[], str]
_DATE: Final = DataType("date")
_INT: Final = DataType("int")
_TIMESTAMP: Final = DataType("timestamp")
_MICROS: Final = {
    "WEEK": 7 * MICROS_OF_DAY, "DAY": MICROS_OF_DAY, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
    "MILLISECOND": 1000, "MICROSECOND": 1,
}  # fmt: skip
_MONTHS: Final = {"YEAR": 12, "MONTH": 1}


@dataclass(frozen=True)
class Interval:
    """An interval of time: a number of months, or of microseconds.

    Attributes:
        months: number of months; None for an interval of days and times.
        micros: microseconds.
        of_days: True when the interval has no unit below a day.
    """

    months: int | None
    micros: int = 0
    of_days: bool = True

    def negated(self) -> Interval:
        """Return the interval with its sign reversed."""
        return replace(self, months=None if self.months is None else -self.months, micros=-self.micros)


def interval_of(tree: exp.Expr) -> Interval | None:
    """Return the interval of INTERVAL literals or a sum of them; None for other expressions.

    Raises:
        Refused: for months that are added to days, and for units and numbers that only Spark reads.
    """
    tree = tree.unnest()
    if isinstance(tree, exp.Add) and isinstance(tree.this, exp.Interval | exp.Add):
        one, other = interval_of(tree.this), interval_of(tree.expression)
        if one is None or other is None:
            return None
        if (one.months is None) != (other.months is None):
            raise Refused("only Spark joins months with days")
        months = None if one.months is None or other.months is None else one.months + other.months
        return Interval(months, one.micros + other.micros, one.of_days and other.of_days)
    if not isinstance(tree, exp.Interval):
        return None
    unit = tree.text("unit").upper().removesuffix("S")
    number = tree.this.sql() if isinstance(tree.this, exp.Neg) else tree.name
    if not re.fullmatch("-?[0-9]{1,8}", number):
        raise Refused.of(tree)
    if unit in _MONTHS:
        return Interval(int(number) * _MONTHS[unit])
    if unit in _MICROS:
        return Interval(None, int(number) * _MICROS[unit], unit in ("WEEK", "DAY"))
    raise Refused.of(tree)


def days_of(tree: exp.Expr) -> int | None:
    """Return the days of an INTERVAL; None for other expressions. Raises Refused for an interval of other units."""
    interval = interval_of(tree)
    if interval is None:
        return None
    if interval.months is not None or not interval.of_days:
        raise Refused(f"only Spark makes steps of '{tree.sql(dialect='spark')}'")
    return interval.micros // MICROS_OF_DAY


def now() -> Compiled:
    """Return the time at which the statement began."""
    moment = pa.scalar(current_work().moment, _TIMESTAMP.to_arrow())
    return Compiled(_TIMESTAMP, lambda _: moment)


def later(value: Compiled, interval: Interval, timezone: _Timezone) -> Compiled:
    """Return a time plus an interval. Raises Refused for types that are no times."""
    kind = value.type
    if not kind.is_datetime:
        raise Refused(f"only Spark adds an interval to {kind}")
    if kind == _DATE and interval.months is not None:
        return months_after(value, constant(_INT, interval.months), timezone)
    if kind == _DATE and interval.of_days:
        return days_after(value, constant(_INT, interval.micros // MICROS_OF_DAY), timezone)
    if kind == _DATE:
        return later(cast(value, _TIMESTAMP, timezone), interval, timezone)
    zone = _zone(kind, timezone)
    days = int(interval.micros / MICROS_OF_DAY)  # towards zero, as Java divides
    rest = interval.micros - days * MICROS_OF_DAY

    def kernel(found: pa.Array) -> pa.Array:
        if interval.months is not None:
            return _on_clocks(found, zone, lambda clocks: _months_later(clocks, interval.months or 0))
        moved = _on_clocks(found, zone, lambda clocks: _moved(clocks, days * MICROS_OF_DAY)) if days else found
        return pa.array(_moved(_numbers(moved), rest)).cast(found.type)

    return of_rows(kind, kernel, value, may_fail=True)


def months_after(value: Compiled, number: Compiled, timezone: _Timezone) -> Compiled:
    """Return ADD_MONTHS. Raises Refused for a number that is no literal."""
    if not number.constant or number.type.name not in INTEGERS[:3] or number.is_null:
        raise Refused("only Spark adds months whose number is no literal")
    months = int(number.value)

    def kernel(found: pa.Array) -> pa.Array:
        days = months_later(days_since_1970(found), months)
        if (np.abs(days) >= 2**31).any():
            raise _out_of_range_error(_DATE)
        return pa.array(days.astype(np.int32)).cast(pa.date32())

    return of_rows(_DATE, kernel, as_date(value, timezone), may_fail=True)


def cut_date(value: Compiled, unit: Compiled, timezone: _Timezone) -> Compiled:
    """Return TRUNC: the first day of a week, month, quarter or year. Raises Refused for another unit."""
    first = _FIRST_DAYS.get(_unit(unit))
    if first is None:
        raise Refused("only Spark cuts dates to this unit")
    return of_days(_DATE, first, value, timezone)


def cut_time(value: Compiled, unit: Compiled, timezone: _Timezone) -> Compiled:
    """Return DATE_TRUNC. Raises Refused for other units, and for types that are no times."""
    name = _unit(unit)
    if not (value.type.is_datetime or value.type.is_text):
        raise Refused(f"only Spark cuts {value.type}")
    value, zone = cast(value, _TIMESTAMP, timezone), normal_zone(timezone())
    first = _FIRST_DAYS.get(name)
    micros = _MICROS.get({"DD": "DAY"}.get(name, name))
    if first is None and micros is None:
        raise Refused(f"only Spark cuts timestamps to '{name}'")

    def kernel(found: pa.Array) -> pa.Array:
        if first is not None:
            days = first(_numbers(clocks_of(found, zone)) // MICROS_OF_DAY)
            return starts_of_days(_times(_joined(days, np.zeros(len(days), np.int64))), zone).cast(found.type)
        if micros is None or micros <= _MICROS["SECOND"]:
            return pa.array(_cut(_numbers(found), micros or 1)).cast(found.type)
        return _on_clocks(found, zone, lambda clocks: _cut(clocks, micros))

    return of_rows(_TIMESTAMP, kernel, value, may_fail=True)


def _unit(unit: Compiled) -> str:
    if not unit.constant or not unit.type.is_text or unit.is_null:
        raise Refused("only Spark cuts to a unit that is no literal")
    return str(unit.value).upper()


def _weeks(days: Numbers) -> Numbers:
    return days - (days + 3) % 7


_FIRST_DAYS: Final[dict[str, Callable[[Numbers], Numbers]]] = {
    "WEEK": _weeks,
    **dict.fromkeys(("MONTH", "MM", "MON"), lambda days: first_days(months_of(days))),
    "QUARTER": lambda days: first_days(months_of(days) // 3 * 3),
    **dict.fromkeys(("YEAR", "YYYY", "YY"), lambda days: first_days(months_of(days) // 12 * 12)),
}
"""Unit -> function that returns the first day of the unit for each day."""


def _zone(kind: DataType, timezone: _Timezone) -> str:
    return normal_zone(timezone()) if kind == _TIMESTAMP else "UTC"


def _numbers(times: pa.Array) -> Numbers:
    found: Numbers = times.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return found


def _times(micros: Numbers) -> pa.Array:
    return pa.array(micros).cast(pa.timestamp("us"))


def _on_clocks(found: pa.Array, zone: str, change: Callable[[Numbers], Numbers]) -> pa.Array:
    """Change the local times; each keeps its UTC offset where the zone has that offset at the new local time."""
    if zone == "UTC":
        return pa.array(change(_numbers(found))).cast(found.type)
    given, clocks = _numbers(found), _numbers(clocks_of(found, zone))
    wanted = change(clocks)
    kept = pa.array(wanted - (clocks - given)).cast(found.type)
    same = pc.equal(clocks_of(kept, zone), _times(wanted))
    return pc.if_else(same, kept, instants_of(_times(wanted), zone).cast(found.type))


def _moved(micros: Numbers, by: int) -> Numbers:
    if len(micros) and (int(micros.min()) + by < -(2**63) or int(micros.max()) + by >= 2**63):
        raise _out_of_range_error(_TIMESTAMP)
    return micros + by


def _months_later(clocks: Numbers, months: int) -> Numbers:
    return _joined(months_later(clocks // MICROS_OF_DAY, months), clocks % MICROS_OF_DAY)


def _cut(micros: Numbers, unit: int) -> Numbers:
    cut = micros - micros % unit
    if (cut > micros).any():
        raise _out_of_range_error(_TIMESTAMP)
    return cut


def _joined(days: Numbers, micros: Numbers) -> Numbers:
    """Return times as microseconds since 1970, from days and microseconds of the day."""
    if (np.abs(days) <= LAST_DAY).all():
        return days * MICROS_OF_DAY + micros
    exact = days.astype(object) * MICROS_OF_DAY + micros
    if ((exact < -(2**63)) | (exact >= 2**63)).any():
        raise _out_of_range_error(_TIMESTAMP)
    return exact.astype(np.int64)


def _out_of_range_error(kind: DataType) -> TrinityError:
    return TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"A time is before the first {kind}, or after the last one.")
