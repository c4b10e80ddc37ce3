"""Loading of the change stream into one table per format, and its measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from trinity.demo.answers import Answers, answers_of
from trinity.demo.flights import COLUMNS, KEY
from trinity.session import Session
from trinity.table import Table

STAGES: Final = ("log", "resolved", "compacted")
"""States of a table, in their order."""


@dataclass(frozen=True)
class Figures:
    """Size and cost of one table, at one moment.

    Attributes:
        log_rows: row versions in log files.
        live_rows: rows of the merged read.
        read_s: seconds for the query by carrier over the merged read.
    """

    log_rows: int
    live_rows: int
    files: int
    bytes: int
    read_s: float


def table_of(session: Session, catalog: str) -> Table:
    """Return the demo's table in a catalog."""
    return session.table(f"{catalog}.default.flights")


def stage_of(table: Table) -> str:
    """Return the table's present stage, one of :data:`STAGES`."""
    files = table.splits().files
    if not files or any(f.tier.value == "log" for f in files):
        return "log"
    return "resolved" if any(f.deletes for f in files) else "compacted"


def create_tables(session: Session, catalogs: Sequence[str]) -> None:
    """Create the tables that do not exist yet."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    for catalog in catalogs:
        session.sql(
            f"CREATE TABLE IF NOT EXISTS {catalog}.default.flights "
            f"({columns}, PRIMARY KEY ({', '.join(KEY)}) NOT ENFORCED) "
            "TBLPROPERTIES ('watermark-key' = 'event_time', 'tombstone-key' = 'cancelled')"
        )


def load(table: Table, batches: Sequence[pa.Table], advance: Callable[[], None]) -> list[float]:
    """Upsert the micro-batches, and return the seconds of each commit; those of an earlier run are skipped (L4).

    After half of them the table is resolved, which gives it a base: later batches then change rows of the base.
    """
    times = []
    for number, batch in enumerate(batches, start=1):
        start = time.perf_counter()
        result = table.upsert(batch, txn=("flights", number))
        if not result.skipped:
            times.append(time.perf_counter() - start)
            if number == len(batches) // 2:
                table.compact("resolve")
        advance()
    return times


def measure(table: Table) -> tuple[Figures, Answers]:
    """Return the figures and the answers of the table's present version."""
    files = table.splits().files
    log = sum(f.rows for f in files if f.tier.value == "log")
    found, took = answers_of(table)
    return Figures(log, found.live, len(files), sum(f.size for f in files), took), found
