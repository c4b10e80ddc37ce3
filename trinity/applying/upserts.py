"""SCD type 1: a batch of events, appended as row versions that the table folds by their sequence. Nothing is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trinity.applying.arguments import ApplyArguments, null_value
from trinity.engine.appending.append import append_rows
from trinity.engine.executes import NotLocal
from trinity.engine.expressions import Compiled, Scope, compile_predicate
from trinity.merge.row_kinds import tombstone_marks
from trinity.merge.spec import MergeSpec
from trinity.spi import Column, CommitResult, TableDefinition, TransactionId, arrow_type
from trinity.syntax.quoting import quoted
from trinity.target import Target


def deleting_here(
    columns: Sequence[Column], arguments: ApplyArguments, timezone: Callable[[], str]
) -> Compiled | NotLocal:
    """Return the condition of the events that delete; or the reason why only Spark evaluates it.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, TYPE_MISMATCH.
    """
    if not isinstance(arguments.deletes, str):
        return NotLocal("apply_as_deletes is a Column of Spark's")
    return compile_predicate(arguments.deletes, Scope.of(columns), timezone)


def apply_here(
    table: Target,
    source: pa.Table,
    arguments: ApplyArguments,
    definition: TableDefinition,
    spec: MergeSpec,
    txn: TransactionId | None,
    deleting: Compiled,
) -> CommitResult | NotLocal:
    """Append events of Arrow data; or return why only Spark can evaluate which of them delete.

    Arguments are those of :func:`apply_as_upserts`; deleting is the compiled condition of the events that delete.
    """
    rows = stored_columns(table, source, arguments)
    gone = deleted(source, deleting)
    for name, value in _marks(spec, definition, arguments).items():
        index, kind = rows.schema.get_field_index(name), arrow_type(definition.column(name).type)
        others = rows.column(index) if index >= 0 else pa.scalar(None, kind)
        if others.type != kind:
            return NotLocal(f"column '{name}' marks deletes as {kind}, and the events have {others.type}")
        marked = pc.if_else(gone, pa.scalar(value, kind), others)
        rows = rows.set_column(index, name, marked) if index >= 0 else rows.append_column(name, marked)
    return append_rows(table, rows, txn, keyed=True)


def deleted(source: pa.Table, deleting: Compiled) -> pa.ChunkedArray:
    """Return a mask without NULL: True for each event that deletes."""
    batches = source.combine_chunks().to_batches()
    return pa.chunked_array([pc.fill_null(deleting.evaluate(batch), False) for batch in batches], pa.bool_())


def apply_as_upserts(
    table: Target,
    source: Any,
    arguments: ApplyArguments,
    definition: TableDefinition,
    spec: MergeSpec,
    txn: TransactionId | None,
) -> CommitResult:
    """Append the events of a Spark DataFrame (U1, U4; P1, D3). Raise the refusal of an event."""
    from trinity.applying.spark.events import deleting, missing
    from trinity.calls import spark_errors
    from trinity.engine.writing.ingest import REFUSAL
    from trinity.spark.settings import pinned
    from trinity.spark.types import spark_type
    from trinity.spark_names import F

    with pinned(source.sparkSession), spark_errors():
        values = {name: F.col(quoted(name)) for name in arguments.columns}
        if arguments.deletes is not None:
            gone = deleting(table, source, arguments)
            for name, value in _marks(spec, definition, arguments).items():
                kind = spark_type(definition.column(name).type)
                values[name] = F.when(gone, F.lit(value).cast(kind)).otherwise(values.get(name, F.lit(None)))
        refusal = missing(table, arguments, source.schema).alias(REFUSAL)
        rows = source.select(*[value.alias(name) for name, value in values.items()], refusal)
        return append_rows(table, rows, txn, keyed=True)


def _marks(spec: MergeSpec, definition: TableDefinition, arguments: ApplyArguments) -> dict[str, Any]:
    """Return column -> value of a deleting event, in the source's spelling if it has the column."""
    marks = {spec.row_kind: "-D"} if spec.by_column and spec.row_kind else tombstone_marks(spec, definition)
    spelled = {name.lower(): name for name in arguments.columns}
    return {spelled.get(name.lower(), name): value for name, value in marks.items()}


def stored_columns(table: Target, source: pa.Table, arguments: ApplyArguments) -> pa.Table:
    """Select the columns that the target stores; refuse a NULL in the sequence. The append refuses one in the key."""
    refuse_nulls(table, source, "sequence", arguments.sequence)
    return source.select(list(arguments.columns))


def refuse_nulls(table: Target, source: pa.Table, what: str, names: Sequence[str]) -> None:
    """Refuse a NULL in columns of the events' key, or of their sequence."""
    for name in names:
        if source.column(name).null_count:
            raise null_value(str(table.name), what, name)
