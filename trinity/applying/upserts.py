"""SCD type 1: a batch of events, appended as row versions that the table folds by their sequence. Nothing is read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from trinity.applying.words import Words, null_value
from trinity.engine.appending.append import append_rows, is_spark_frame
from trinity.engine.target import Target
from trinity.merge.spec import MergeSpec
from trinity.merge.tombstone import tombstone_marks
from trinity.spi import CommitResult, TableDefinition, TransactionId
from trinity.syntax.quoting import quoted

__all__ = ["apply_as_upserts"]


def apply_as_upserts(
    table: Target,
    source: Any,
    words: Words,
    definition: TableDefinition,
    spec: MergeSpec,
    txn: TransactionId | None = None,
) -> CommitResult:
    """Append the events (U1, U4; P1, D3).

    Args:
        table: the target, of the shape that the arguments need.
        source: the events: a Spark DataFrame, or an Arrow table where none of them deletes.
        words: the arguments of ``apply_changes``.
        definition: the target's definition.
        spec: its options.
        txn: see :meth:`trinity.Table.upsert`.

    Raises:
        TrinityError: what an event is refused for.
    """
    if not is_spark_frame(source):
        return append_rows(table, _stored_columns(table, source, words), txn, keyed=True)
    from trinity.applying.events import deleting, missing
    from trinity.calls.spark import spark_errors
    from trinity.engine.spark.settings import pinned
    from trinity.engine.spark.types import spark_type
    from trinity.engine.writing.run_sinks import REFUSAL
    from trinity.spark_names import F

    with pinned(source.sparkSession), spark_errors():
        values = {name: F.col(quoted(name)) for name in words.columns}
        if words.deletes is not None:
            gone = deleting(table, source, words)
            for name, value in _marks(spec, definition).items():
                kind = spark_type(definition.column(name).type)
                values[name] = F.when(gone, F.lit(value).cast(kind)).otherwise(values.get(name, F.lit(None)))
        refusal = missing(table, words, source.schema).alias(REFUSAL)
        rows = source.select(*[value.alias(name) for name, value in values.items()], refusal)
        return append_rows(table, rows, txn, keyed=True)


def _marks(spec: MergeSpec, definition: TableDefinition) -> dict[str, Any]:
    """Return the columns that mark a deleting event, each with its value there."""
    return {spec.row_kind: "-D"} if spec.by_column and spec.row_kind else tombstone_marks(spec, definition)


def _stored_columns(table: Target, source: pa.Table, words: Words) -> pa.Table:
    """Select the columns that the target stores; refuse a NULL in the sequence. The append refuses one in the key."""
    for name in words.sequence:
        if source.column(name).null_count:
            raise null_value(str(table.name), "sequence", name)
    return source.select(list(words.columns))
