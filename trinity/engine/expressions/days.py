"""The calendar of days since 1970, for the whole range of DATE: Arrow's calendar ends at the year 32767."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

MICROS_OF_DAY: Final = 86_400_000_000
LAST_DAY: Final = 2**63 // MICROS_OF_DAY - 1
"""The last day, counted from 1970, whose times all fit TIMESTAMP: microseconds in 64 bits."""
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


def days_since_1970(dates: pa.Array) -> Numbers:
    """Return dates, none of them NULL, as numbers."""
    found: Numbers = dates.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def months_of(days: Numbers) -> Numbers:
    """Return the months of days, counted from January 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def first_days(months: Numbers) -> Numbers:
    """Return the first days of months."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def parts(days: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the years of days, their months from 1 to 12, and their days of the month."""
    months = months_of(days)
    return months // 12 + 1970, months % 12 + 1, days - first_days(months) + 1


def day_of_year(days: Numbers) -> Numbers:
    """Return the number of each day in its year, from 1."""
    return days - first_days(months_of(days) // 12 * 12) + 1


def week_of_year(days: Numbers) -> Numbers:
    """Return the number of the week by ISO 8601: a week belongs to the year of its Thursday."""
    return (day_of_year(days - (days + 3) % 7 + 3) + 6) // 7


def month_ends(days: Numbers) -> Numbers:
    """Return the last days of the months of days."""
    return first_days(months_of(days) + 1) - 1


def months_later(days: Numbers, number: int) -> Numbers:
    """Add months to days. Where the new month is shorter, the result is its last day."""
    months = months_of(days)
    later = first_days(months + number)
    found: Numbers = np.minimum(later + days - first_days(months), first_days(months + number + 1) - 1)
    return found
