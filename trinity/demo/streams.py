"""The demo's second scene: departures and arrivals as two streams into one row per flight, and totals by airline.

Each stream has its own order, so each has its own sequence group: a late departure changes no arrival. The totals are
sums and a maximum, which the table itself computes from rows in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.demo.flights import COLUMNS, KEY
from trinity.session import Session
from trinity.table import Table

_DEPARTURE: Final = ("dep_time", "dep_delay")
_ARRIVAL: Final = ("arr_time", "arr_delay", "air_time")


@dataclass(frozen=True)
class StreamAnswers:
    """Sums over the two tables, as whole numbers.

    Attributes:
        flown: flights that departed.
        delays: carrier -> (sum of the arrival delays in minutes, number of flights with one), from the flights' table.
        totals: the same from the table of totals.
    """

    flown: int
    delays: dict[str, tuple[int, int]]
    totals: dict[str, tuple[int, int]]


def create_stream_tables(session: Session, catalogs: Sequence[str]) -> None:
    """Create ``legs`` and ``airlines`` in each catalog, unless they exist."""
    columns = [f"{name} {COLUMNS[name]}" for name in (*KEY, *_DEPARTURE, *_ARRIVAL)]
    columns += ["left_seen TIMESTAMP", "landed_seen TIMESTAMP"]
    for catalog in catalogs:
        session.sql(
            f"CREATE TABLE IF NOT EXISTS {catalog}.default.legs ({', '.join(columns)}, "
            f"PRIMARY KEY ({', '.join(KEY)}) NOT ENFORCED) TBLPROPERTIES ('merge-engine' = 'partial-update', "
            f"'fields.left_seen.sequence-group' = '{','.join(_DEPARTURE)}', "
            f"'fields.landed_seen.sequence-group' = '{','.join(_ARRIVAL)}')"
        )
        session.sql(
            f"CREATE TABLE IF NOT EXISTS {catalog}.default.airlines (carrier STRING, delay BIGINT, flights BIGINT, "
            "worst INT, PRIMARY KEY (carrier) NOT ENFORCED) TBLPROPERTIES ('merge-engine' = 'aggregation', "
            "'fields.default-aggregate-function' = 'sum', 'fields.worst.aggregate-function' = 'max')"
        )


def load_streams(session: Session, catalog: str, batches: Sequence[pa.Table], advance: Callable[[], None]) -> None:
    """Upsert the micro-batches, each stream in its own commit; those that an earlier run committed are skipped (L4)."""
    legs, airlines = (session.table(f"{catalog}.default.{name}") for name in ("legs", "airlines"))
    for number, batch in enumerate(batches, start=1):
        landed = pc.equal(batch["status"], "arrived")
        arrivals = batch.filter(landed)
        _append(legs, batch.filter(pc.invert(landed)), _DEPARTURE, "left_seen", ("departures", number))
        _append(legs, arrivals, _ARRIVAL, "landed_seen", ("arrivals", number))
        timed = arrivals.filter(pc.is_valid(arrivals["arr_delay"]))
        totals = {
            "carrier": timed["carrier"],
            "delay": timed["arr_delay"].cast(pa.int64()),
            "flights": pa.repeat(pa.scalar(1, pa.int64()), timed.num_rows),
            "worst": timed["arr_delay"],
        }
        airlines.upsert(pa.table(totals), txn=("arrivals", number))
        advance()


def _append(table: Table, rows: pa.Table, columns: Sequence[str], seen: str, txn: tuple[str, int]) -> None:
    chosen = rows.select([*KEY, *columns, "event_time"]).rename_columns([*KEY, *columns, seen])
    table.upsert(chosen, txn=txn)


def stream_answers(session: Session, catalog: str) -> StreamAnswers:
    """Return sums over the present versions of a catalog's tables."""
    rows = session.sql(
        "SELECT carrier, COUNT(dep_time) AS flown, SUM(arr_delay) AS total, COUNT(arr_delay) AS n "
        f"FROM {catalog}.default.legs GROUP BY carrier ORDER BY carrier"
    ).collect()
    totals = session.sql(f"SELECT * FROM {catalog}.default.airlines ORDER BY carrier").collect()
    return StreamAnswers(
        flown=sum(r.flown for r in rows),
        delays={r.carrier: (r.total, r.n) for r in rows if r.n},
        totals={r.carrier: (r.delay, r.flights) for r in totals},
    )
