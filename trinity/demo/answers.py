"""The demo's queries of every table, and DuckDB's answers from the source file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from trinity.demo.flights import KEY
from trinity.errors import TrinityError
from trinity.table import Table


@dataclass(frozen=True)
class Answers:
    """Answers as whole numbers, which can be compared exactly.

    Attributes:
        live: rows of the table: flights that were not cancelled.
        flown: flights that departed.
        cancelled: flights that were cancelled.
        delays: carrier -> (sum of the arrival delays in minutes, number of flights with one).
    """

    live: int
    flown: int
    cancelled: int
    delays: dict[str, tuple[int, int]]

    def mean_delay(self, carrier: str) -> float:
        """Return the mean arrival delay of a carrier, in minutes."""
        total, count = self.delays[carrier]
        return total / count

    @property
    def ranking(self) -> list[str]:
        """Carriers, the one with the largest mean delay first."""
        return sorted(self.delays, key=self.mean_delay, reverse=True)


def answers_of(table: Table) -> tuple[Answers, float]:
    """Return the table's answers, from the merged read and from the log; and the seconds of the merged read."""
    start = time.perf_counter()
    rows = table.session.sql(
        "SELECT carrier, COUNT(*) AS live, COUNT(dep_time) AS flown, SUM(arr_delay) AS total, COUNT(arr_delay) AS n "
        f"FROM {table.name} GROUP BY carrier"
    ).collect()
    took = time.perf_counter() - start
    log = table.log().to_arrow()
    cancelled = log.filter(log["cancelled"]).group_by(list(KEY)).aggregate([]).num_rows
    delays = {r.carrier: (r.total, r.n) for r in sorted(rows, key=lambda r: str(r.carrier)) if r.n}
    return Answers(sum(r.live for r in rows), sum(r.flown for r in rows), cancelled, delays), took


def truth(source: Path) -> Answers:
    """Return DuckDB's answers, computed only from the source file.

    Raises:
        TrinityError: CONFIGURATION_INVALID when DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise TrinityError(
            "CONFIGURATION_INVALID", "The demo checks its answers with DuckDB; run: pip install 'trinity-merge[demo]'."
        ) from error
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT carrier, count(dep_time), count(*) - count(dep_time), sum(arr_delay), count(arr_delay) "
            "FROM read_csv(?, nullstr = 'NA', sample_size = -1) GROUP BY carrier ORDER BY carrier",
            [str(source)],
        ).fetchall()
    flown = sum(r[1] for r in rows)
    return Answers(flown, flown, sum(r[2] for r in rows), {r[0]: (int(r[3]), r[4]) for r in rows})
