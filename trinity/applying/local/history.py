"""SCD type 2 in this process: a batch of events applied to the history of its rows, in one commit."""

from __future__ import annotations

import pyarrow as pa

from trinity.applying.arguments import ApplyArguments
from trinity.applying.local.events import key_bounds, typed_events
from trinity.applying.local.intervals import History, why_not_local
from trinity.applying.plan import HistoryPlan
from trinity.engine.changing.local.stored_winners import stored_winners
from trinity.engine.changing.statement import rerun
from trinity.engine.executes import NotLocal, ThisProcess
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.spi import CommitResult, TransactionId
from trinity.target import Target


def apply_here(
    table: Target, source: pa.Table, arguments: ApplyArguments, txn: TransactionId | None, process: ThisProcess
) -> CommitResult | NotLocal:
    """Apply events, or return why only Spark does.

    Arguments and errors are those of :func:`~trinity.applying.history.apply_to_history`.
    """
    return rerun(table, lambda: _attempt(HistoryPlan(table, table.splits(), arguments), source, txn, process))


def _attempt(
    plan: HistoryPlan, source: pa.Table, txn: TransactionId | None, process: ThisProcess
) -> CommitResult | NotLocal:
    if (why := why_not_local(plan.definition.visible)) is not None:
        return why
    events = typed_events(plan, source)
    if isinstance(events, NotLocal):
        return events
    bounds = key_bounds(events, plan.bounded)
    fold = plan.touched(bounds)
    if (why := process.why_not_read(fold.splits.files)) is not None:
        return why
    with reporting_dropped_table(plan.table.connector, plan.at):
        stored = stored_winners(fold, events.select(plan.key), plan.definition.visible)
        if isinstance(stored, NotLocal):
            return stored
        return plan.append(History.of(plan, stored, events).changed(), bounds, txn)
