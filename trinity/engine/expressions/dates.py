"""Parts of dates and timestamps, and days added to dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.engine.expressions.casts import cast
from trinity.engine.expressions.coercion import widened
from trinity.engine.expressions.days import Numbers, day_of_year, days_since_1970, month_ends, parts, week_of_year
from trinity.engine.expressions.node import Compiled, Datum, Refused, as_array
from trinity.engine.expressions.rows import of_rows
from trinity.engine.writing.clocks import clocks_of
from trinity.spi import INTEGERS, DataType
from trinity.zones import normal_zone

_Timezone = Callable[[], str]
_DATE: Final = DataType("date")
_INT: Final = DataType("int")

DATE_PARTS: Final[Mapping[type[exp.Expr], Callable[[Numbers], Numbers]]] = {
    exp.Year: lambda days: parts(days)[0],
    exp.Month: lambda days: parts(days)[1],
    exp.Day: lambda days: parts(days)[2],
    exp.DayOfMonth: lambda days: parts(days)[2],
    exp.Quarter: lambda days: (parts(days)[1] + 2) // 3,
    exp.DayOfYear: day_of_year,
    exp.DayOfWeek: lambda days: (days + 4) % 7 + 1,
    exp.WeekOfYear: week_of_year,
}
"""Function of dates -> its kernel, which takes days since 1970."""
TIME_PARTS: Final[Mapping[type[exp.Expr], Callable[[Any], Any]]] = {
    exp.Hour: pc.hour, exp.Minute: pc.minute, exp.Second: pc.second,
}  # fmt: skip
"""Function of times -> its kernel, which takes timestamps without zone."""


def as_date(value: Compiled, timezone: _Timezone) -> Compiled:
    """Cast a value to DATE. Raises Refused for types that only Spark casts to DATE."""
    return cast(value, _DATE, timezone)


def date_part(function: type[exp.Expr], value: Compiled, timezone: _Timezone) -> Compiled:
    """Return a part of a date."""
    return of_days(_INT, DATE_PARTS[function], value, timezone)


def last_day(value: Compiled, timezone: _Timezone) -> Compiled:
    """Return the last day of a date's month."""
    return of_days(_DATE, month_ends, value, timezone)


def weekday(value: Compiled, timezone: _Timezone) -> Compiled:
    """Return the day of the week: 0 is Monday."""
    return of_days(_INT, lambda days: (days + 3) % 7, value, timezone)


def of_days(kind: DataType, kernel: Callable[[Numbers], Numbers], value: Compiled, timezone: _Timezone) -> Compiled:
    """Apply a kernel to dates, which it takes as days since 1970; ``kind`` is the type of the result."""

    def run(found: pa.Array) -> pa.Array:
        return pa.array(kernel(days_since_1970(found)).astype(np.int32)).cast(kind.to_arrow())

    return of_rows(kind, run, as_date(value, timezone))


def time_part(function: type[exp.Expr], value: Compiled, timezone: _Timezone) -> Compiled:
    """Return a part of a timestamp, in the session's zone. Raises Refused for other types."""
    kernel = TIME_PARTS[function]
    if value.type.name == "timestamp":
        zone = normal_zone(timezone())

        def run(rows: pa.RecordBatch) -> Datum:
            return kernel(clocks_of(as_array(value.run(rows), len(rows)), zone)).cast(pa.int32())

        return Compiled.over(_INT, run, value)
    if value.type.name != "timestamp_ntz":
        raise Refused(f"only Spark takes parts of {value.type}")
    return value.mapped(lambda found: kernel(found).cast(pa.int32()), _INT)


def days_after(value: Compiled, days: Compiled, timezone: _Timezone, *, before: bool = False) -> Compiled:
    """Return a date plus or minus a number of days. Raises Refused for other types."""
    if days.type.name not in INTEGERS[:3]:
        raise Refused(f"only Spark adds {days.type} to a date")
    first, number = as_date(value, timezone), widened(days, _INT, timezone)
    kernel = pc.subtract if before else pc.add  # unchecked, since Spark wraps around, too, where DATE overflows

    def run(rows: pa.RecordBatch) -> Datum:
        return kernel(first.run(rows).cast(pa.int32()), number.run(rows)).cast(pa.date32())

    return Compiled.over(_DATE, run, first, number)


def days_between(end: Compiled, start: Compiled, timezone: _Timezone) -> Compiled:
    """Return the number of days between two dates."""
    last, first = as_date(end, timezone), as_date(start, timezone)

    def run(rows: pa.RecordBatch) -> Datum:
        return pc.subtract(last.run(rows).cast(pa.int32()), first.run(rows).cast(pa.int32()))

    return Compiled.over(_INT, run, last, first)
