"""SCD type 2 by Spark: a batch of events applied to the history of its rows, in one commit."""

from __future__ import annotations

from trinity.applying.arguments import ApplyArguments
from trinity.applying.plan import HistoryPlan
from trinity.applying.spark.events import Events, persisted_events, typed_events
from trinity.applying.spark.intervals import History
from trinity.calls import spark_errors
from trinity.engine.changing.spark.stored_winners import stored_winners
from trinity.engine.changing.statement import rerun
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.hidden import DELETED
from trinity.spark.settings import pinned
from trinity.spark_names import DataFrame
from trinity.spi import ROW_KIND, CommitResult, TransactionId, parse_type
from trinity.syntax.quoting import quoted
from trinity.target import Target


def apply_by_spark(
    table: Target, source: DataFrame, arguments: ApplyArguments, txn: TransactionId | None
) -> CommitResult:
    """Apply events; arguments and errors as for :func:`~trinity.applying.history.apply_to_history`."""
    plan = HistoryPlan(table, table.splits(), arguments)
    with pinned(source.sparkSession), spark_errors():
        events = typed_events(plan, source)
        with persisted_events(events, plan.bounded) as persisted:
            return rerun(table, lambda: _attempt(HistoryPlan(table, table.splits(), arguments), persisted, txn))


def _attempt(plan: HistoryPlan, events: Events, txn: TransactionId | None) -> CommitResult:
    fold = plan.touched(events.bounds if events.count else None)
    # a TIME is not stored as such: then only the other columns find the rows
    names = [name for name in plan.key if parse_type(plan.definition.column(name).type).name != "time"]
    with reporting_dropped_table(plan.table.connector, plan.at), spark_errors():
        touched = events.rows.select(*map(quoted, names)).distinct() if names else None
        stored = stored_winners(events.rows.sparkSession, fold, touched)
        stored = to_user_columns(stored, fold.splits, (ROW_KIND, DELETED))
        return plan.append(History(plan).changed(stored, events.rows), events.bounds, txn)
