"""Loads the change stream into one table per format, and measures it."""

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

__all__ = ["STAGES", "Figures", "create_tables", "load", "measure", "stage_of", "table_of"]

STAGES: Final = ("log", "resolved", "compacted")
"""States that a table goes through once it is loaded."""


@dataclass(frozen=True)
class Figures:
    """Size and cost of one table, at one moment.

    Attributes:
        log_rows: row versions in log files.
        live_rows: rows of the merged read.
        files: data files.
        bytes: their size.
        read_s: seconds for the query by carrier over the merged read.
    """

    log_rows: int
    live_rows: int
    files: int
    bytes: int
    read_s: float


def table_of(session: Session, catalog: str) -> Table:
    """The demo's table in one catalog."""
    return session.table(f"{catalog}.default.flights")


def stage_of(table: Table) -> str:
    """One of :data:`STAGES`: where the table is."""
    files = table.splits().files
    if not files or any(f.tier.value == "log" for f in files):
        return "log"
    return "resolved" if any(f.deletes for f in files) else "compacted"


def create_tables(session: Session, catalogs: Sequence[str]) -> None:
    """Makes the tables that are not there yet."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    for catalog in catalogs:
        session.sql(
            f"CREATE TABLE IF NOT EXISTS {catalog}.default.flights "
            f"({columns}, PRIMARY KEY ({', '.join(KEY)}) NOT ENFORCED) "
            "TBLPROPERTIES ('watermark-key' = 'event_time', 'tombstone-key' = 'cancelled')"
        )


def load(table: Table, batches: Sequence[pa.Table], advance: Callable[[], None]) -> list[float]:
    """Upserts the micro-batches, one commit each; those that an earlier run committed are skipped (L4).

    After half of them the table is resolved, which gives it a base: what comes then has rows there to change.

    Returns:
        seconds of each commit that was made.
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
    """The figures and the answers of the table as it is now."""
    files = table.splits().files
    log = sum(f.rows for f in files if f.tier.value == "log")
    found, took = answers_of(table)
    return Figures(log, found.live, len(files), sum(f.size for f in files), took), found
