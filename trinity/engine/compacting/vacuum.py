"""Vacuum: forgets versions, and removes files that nothing needs."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import replace

from trinity.engine.feed.changelog import prune
from trinity.engine.target import Target
from trinity.merge.options import duration_ms
from trinity.spi import VacuumResult
from trinity.storage import not_ours


def vacuum(table: Target, retain: str | dt.timedelta) -> VacuumResult:
    """Vacuum a table, and its changelog. Arguments and errors as for :meth:`trinity.Table.vacuum`."""
    if table.definition.external:
        raise not_ours(str(table.name), "vacuum")
    before = int(time.time() * 1000) - duration_ms(retain, "vacuum(retain)")
    done = table.connector.metadata.vacuum(table.handle, before)
    gone = prune(table, table.connector.metadata.history(table.handle), before)
    return replace(done, files=done.files + len(gone), bytes=done.bytes + sum(entry.size for entry in gone))
