"""Parts of dates and timestamps, and days added to dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.engine.expressions.casts import cast
from trinity.engine.expressions.coercion import widened
from trinity.engine.expressions.families import TIMES, WHOLE
from trinity.engine.expressions.node import Compiled, Datum, Refused, as_array
from trinity.engine.writing.clocks import clocks_of
from trinity.spi import DataType
from trinity.zones import normal_zone

__all__ = ["DATE_PARTS", "TIME_PARTS", "as_date", "date_part", "days_after", "days_between", "time_part"]

_Timezone = Callable[[], str]
_DATE: Final = DataType("date")
_INT: Final = DataType("int")

DATE_PARTS: Final[Mapping[type[exp.Expr], Callable[[Any], Any]]] = {
    exp.Year: pc.year,
    exp.Month: pc.month,
    exp.Day: pc.day,
    exp.DayOfMonth: pc.day,
    exp.Quarter: pc.quarter,
    exp.DayOfYear: pc.day_of_year,
    exp.DayOfWeek: lambda days: pc.day_of_week(days, count_from_zero=False, week_start=7),
}
"""Function -> its kernel."""
TIME_PARTS: Final[Mapping[type[exp.Expr], Callable[[Any], Any]]] = {
    exp.Hour: pc.hour, exp.Minute: pc.minute, exp.Second: pc.second,
}  # fmt: skip
"""The same, of functions of times."""


def as_date(value: Compiled, timezone: _Timezone) -> Compiled:
    """Return a value as a DATE. Raises Refused for what is none already, nor a timestamp."""
    if value.type.name not in TIMES:
        raise Refused(f"only Spark makes a date of {value.type}")
    return cast(value, _DATE, timezone)


def date_part(function: type[exp.Expr], value: Compiled, timezone: _Timezone) -> Compiled:
    """Return a part of a date."""
    kernel, days = DATE_PARTS[function], as_date(value, timezone)
    return Compiled(_INT, lambda rows: kernel(days.run(rows)).cast(pa.int32()), days.fields, may_fail=days.may_fail)


def time_part(function: type[exp.Expr], value: Compiled, timezone: _Timezone) -> Compiled:
    """Return a part of a timestamp, in the session's zone. Raises Refused for other types."""
    kernel = TIME_PARTS[function]
    if value.type.name == "timestamp":
        zone = normal_zone(timezone())

        def run(rows: pa.RecordBatch) -> Datum:
            return kernel(clocks_of(as_array(value.run(rows), len(rows)), zone)).cast(pa.int32())

        return Compiled(_INT, run, value.fields, may_fail=value.may_fail)
    if value.type.name != "timestamp_ntz":
        raise Refused(f"only Spark takes parts of {value.type}")
    return Compiled(_INT, lambda rows: kernel(value.run(rows)).cast(pa.int32()), value.fields, may_fail=value.may_fail)


def days_after(value: Compiled, days: Compiled, timezone: _Timezone, *, before: bool = False) -> Compiled:
    """Return the date some days after another one, or before it. Raises Refused for other types."""
    if days.type.name not in WHOLE[:3]:
        raise Refused(f"only Spark adds {days.type} to a date")
    first, number = as_date(value, timezone), widened(days, _INT, timezone)
    kernel = pc.subtract if before else pc.add  # beyond what DATE can hold Spark goes on at the other end, too

    def run(rows: pa.RecordBatch) -> Datum:
        return kernel(first.run(rows).cast(pa.int32()), number.run(rows)).cast(pa.date32())

    return Compiled(_DATE, run, first.fields | number.fields, may_fail=first.may_fail or number.may_fail)


def days_between(end: Compiled, start: Compiled, timezone: _Timezone) -> Compiled:
    """Return the number of days from one date to another one."""
    last, first = as_date(end, timezone), as_date(start, timezone)

    def run(rows: pa.RecordBatch) -> Datum:
        return pc.subtract(last.run(rows).cast(pa.int32()), first.run(rows).cast(pa.int32()))

    return Compiled(_INT, run, last.fields | first.fields, may_fail=last.may_fail or first.may_fail)
