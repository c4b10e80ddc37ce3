"""SCD type 2: a batch of events applied to the history of its rows, in one commit."""

from __future__ import annotations

from typing import Any

from trinity.applying.arguments import ApplyArguments
from trinity.applying.local.history import apply_here
from trinity.engine.appending.append import checked_txn, is_recorded, is_spark_frame, source_frame
from trinity.engine.executes import execute
from trinity.spi import CommitResult, TransactionId
from trinity.target import Target


def apply_to_history(table: Target, rows: Any, arguments: ApplyArguments, txn: TransactionId | None) -> CommitResult:
    """Apply events, Spark's or Arrow data; try again if others changed the same rows meanwhile (L7).

    Raises:
        TrinityError: the refusal of an event; TRANSACTION_CONFLICT after ``commit.retry.timeout``.
    """
    if txn is not None and is_recorded(table, txn := checked_txn(txn)):
        return CommitResult(table.splits().version, skipped=True)

    def by_spark() -> CommitResult:
        from trinity.applying.spark.history import apply_by_spark

        return apply_by_spark(table, source_frame(table.session.spark, rows), arguments, txn)

    if is_spark_frame(rows):
        return by_spark()
    return execute(
        table.session,
        f"apply_changes() to '{table.name}'",
        lambda process: apply_here(table, rows, arguments, txn, process),
        by_spark,
    )
