"""Loads the change stream into one table per format, and measures it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from trinity.demo.answers import Answers, answers_of
from trinity.demo.flights import COLUMNS, KEY
from trinity.session import Session
from trinity.table import Table

__all__ = ["Figures", "create_tables", "load", "measure", "table_of"]


@dataclass(frozen=True)
class Figures:
    """Size and cost of one table, at one moment.

    Attributes:
        log_rows: row versions in log files.
        base_rows: rows in compacted files.
        live_rows: rows of the merged read.
        files: data files.
        bytes: their size.
        read_s: seconds for the query by carrier over the merged read.
    """

    log_rows: int
    base_rows: int
    live_rows: int
    files: int
    bytes: int
    read_s: float

    @property
    def compacted(self) -> bool:
        """True when there is no log left."""
        return self.log_rows == 0 and self.base_rows > 0


def table_of(session: Session, catalog: str) -> Table:
    """The demo's table in one catalog."""
    return session.table(f"{catalog}.default.flights")


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

    Returns:
        seconds of each commit that was made.
    """
    times = []
    for number, batch in enumerate(batches, start=1):
        start = time.perf_counter()
        result = table.upsert(batch, txn=("flights", number))
        if not result.skipped:
            times.append(time.perf_counter() - start)
        advance()
    return times


def measure(table: Table) -> tuple[Figures, Answers]:
    """The figures and the answers of the table as it is now."""
    splits = table.splits()
    by_tier = {tier: sum(f.rows for f in splits.files if f.tier.value == tier) for tier in ("log", "base")}
    found, took = answers_of(table)
    size = sum(f.size for f in splits.files)
    return Figures(by_tier["log"], by_tier["base"], found.live, len(splits.files), size, took), found
