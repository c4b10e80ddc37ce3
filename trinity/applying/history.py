"""SCD type 2: a batch of events applied to the history of its rows, in one commit."""

from __future__ import annotations

from dataclasses import replace

from trinity.applying.events import Events, persisted_events, typed_events
from trinity.applying.intervals import History
from trinity.applying.words import Words
from trinity.calls.spark import spark_errors
from trinity.engine.appending.append import append_own, checked_txn, is_recorded
from trinity.engine.changing.statement import rerun
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.engine.reading.merged_read import stored_winners
from trinity.engine.reading.spark.columns import to_user_columns
from trinity.engine.spark.settings import pinned
from trinity.engine.target import Target
from trinity.hidden import DELETED
from trinity.spark_names import DataFrame
from trinity.spi import ROW_KIND, CommitResult, ReadScope, TableDefinition, TransactionId, parse_type
from trinity.syntax.quoting import quoted

__all__ = ["apply_to_history"]


def apply_to_history(
    table: Target, source: DataFrame, words: Words, definition: TableDefinition, txn: TransactionId | None = None
) -> CommitResult:
    """Apply events to those applied before; try again if others changed the same rows meanwhile (L7).

    Args:
        table: the target, of the shape that the arguments need.
        source: the events.
        words: the arguments of ``apply_changes``.
        definition: the target's definition.
        txn: see :meth:`trinity.Table.upsert`.

    Raises:
        TrinityError: what an event is refused for; TRANSACTION_CONFLICT after ``commit.retry.timeout``.
    """
    if txn is not None and is_recorded(table, txn := checked_txn(txn)):
        return CommitResult(table.splits().version, skipped=True)
    keys = [definition.column(name) for name in words.keys]
    with pinned(source.sparkSession), spark_errors():
        events = typed_events(table, source, words, definition)
        with persisted_events(events, keys) as persisted:
            return rerun(table, lambda: _attempt(table, persisted, words, txn))


def _attempt(table: Target, events: Events, words: Words, txn: TransactionId | None) -> CommitResult:
    splits = table.splits()
    definition = splits.definition
    at = table.handle.pinned(splits.version, definition.id)
    within = ReadScope(bounds=events.bounds if events.count else {})
    narrowed = replace(splits, files=tuple(f for f in splits.files if events.count and within.concerns(f)))
    keys = [definition.column(name) for name in words.keys]
    # a TIME is not stored as such: then only the other columns find the rows
    names = [c.name for c in keys if parse_type(c.type).name != "time"]
    with reporting_dropped_table(table.connector, at), spark_errors():
        touched = events.rows.select(*map(quoted, names)).distinct() if names else None
        stored = stored_winners(events.rows.sparkSession, narrowed, touched)
        stored = to_user_columns(stored, narrowed, (ROW_KIND, DELETED))
        rows = History(definition, words).changed(stored, events.rows)
        return append_own(table, rows, at, splits, txn, within.bounds)
