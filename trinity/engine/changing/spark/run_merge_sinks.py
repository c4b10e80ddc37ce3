"""The run of merge sinks: rows of the plan go through the processor to the sink that their layout selects (S1-S6).

It has two steps. The first converts merge rows to changes in storage form. The second gets all changes of a row id,
finds duplicate matches and feeds the sink. Between them is an exchange, unless the merge rows can be exchanged
instead: then one task does both steps, and rows pass to Python once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.engine.changing.change_tasks import (
    ChangeTask,
    SinkTask,
    Written,
    change_schema,
    collect_results,
    merge_page,
    nullable,
)
from trinity.engine.changing.match_checks import MergeGuard
from trinity.engine.changing.processors import RowChangeProcessor
from trinity.engine.writing.ingest import REFUSAL, PageConformer, raise_refusal
from trinity.engine.writing.parts import with_leaves
from trinity.engine.writing.spark.run_sinks import map_in_arrow, run_on_spark
from trinity.hidden import CHANGE_OPERATION, MERGE_ROW
from trinity.spark_names import F, to_arrow_type
from trinity.spi import MergeTableHandle, Operation, PageSinkProvider, SinkId
from trinity.storage.spark_files import spark_schema
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Distribution:
    """The distribution of changes to sinks.

    Attributes:
        insert: columns by whose hash new rows are placed. Without any, a new row goes where the row that it replaces
            goes, and stays where it is if it replaces none.
        update: row id fields by whose hash deleted and changed rows are placed.
        sinks: number of sinks, or None to let Spark choose by size.
        together: True when all changes of a merge row go to one sink.
    """

    insert: tuple[str, ...]
    update: tuple[str, ...]
    sinks: int | None = None
    together: bool = False

    def placed(self, rows: DataFrame, row_id: str) -> DataFrame:
        """Return rows, one partition for each sink: merge rows if ``together``, else changes."""
        present = F.col(row_id).isNotNull()
        where = F.hash(*([F.col(row_id)[name] for name in self.update] or [F.col(row_id)]))
        if not self.insert:
            where = F.when(present, where).otherwise(F.spark_partition_id())
        elif self.together:
            where = F.when(present, where).otherwise(F.hash(*[F.col(MERGE_ROW)[name] for name in self.insert]))
        else:
            new = F.col(CHANGE_OPERATION).isin(int(Operation.INSERT), int(Operation.UPDATE_INSERT))
            where = F.when(new, F.hash(*[F.col(quoted(name)) for name in self.insert])).otherwise(where)
        return rows.repartition(self.sinks, where) if self.sinks else rows.repartition(where)


@dataclass(frozen=True)
class _UpsertTask:
    """The task that writes the rows of a MERGE that is an upsert: each row is an INSERT, in the task that reads it."""

    provider: PageSinkProvider
    merge: MergeTableHandle
    case_number: int
    conformer: PageConformer
    row_id: pa.Field

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        sink = self.provider.create_merge_sink(self.merge, SinkId(order))
        try:
            for page in pages:
                if page.num_rows:
                    raise_refusal(page.column(REFUSAL))
                    sink.store_merged_rows(self._merge_page(page.drop_columns([REFUSAL])))
            return sink.finish()
        except BaseException:
            sink.abort()
            raise

    def _merge_page(self, page: pa.RecordBatch) -> pa.RecordBatch:
        stored = self.conformer.conform(page)
        facts = [pa.scalar(int(Operation.INSERT), pa.int8()), pa.scalar(self.case_number, pa.int32())]
        repeated = [pa.repeat(fact, page.num_rows) for fact in facts]
        columns = [*stored.columns, *repeated, pa.nulls(page.num_rows, self.row_id.type)]
        return merge_page(stored.schema, columns, self.row_id.name)


def _for_spark(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type that Spark expects of Python: TIME in nanoseconds, though it has microseconds."""
    return with_leaves(kind, lambda leaf: pa.time64("ns") if pa.types.is_time(leaf) else leaf)


def write_changes(
    changes: DataFrame,
    provider: PageSinkProvider,
    merge: MergeTableHandle,
    processor: RowChangeProcessor,
    conformers: tuple[PageConformer, PageConformer | None],
    distribution: Distribution,
    guard: MergeGuard,
) -> Written:
    """Write the changes, and commit nothing.

    Args:
        changes: rows of the plan: layout columns, row id, merge row, refusal.
        provider: makes the sinks.
        merge: what ``begin_merge`` returned.
        processor: the processor of the table's paradigm.
        conformers: bring data columns, and the row id of a keyed table, into storage form.
        distribution: decides to which sinks changes go.
        guard: finds duplicate matches and colliding keys.

    Returns:
        the sinks' fragments, and the number of rows updated, deleted, inserted.

    Raises:
        TrinityError: the errors of conforming, guard and sink, and of the statement's expressions.
    """
    storage = merge.insert.target.storage
    spark_row_id = changes.schema[processor.row_id].dataType
    row_id = pa.struct(nullable(conformers[1].storage)) if conformers[1] else to_arrow_type(spark_row_id)
    fields = [f.with_type(_for_spark(f.type)) for f in storage]
    arrow = change_schema(fields, pa.field(processor.row_id, _for_spark(row_id)))
    task = ChangeTask(processor, conformers[0], conformers[1], arrow)
    sink = SinkTask(provider, merge, len(storage), pa.field(processor.row_id, row_id), guard)
    if distribution.together:
        placed = distribution.placed(changes, processor.row_id)
        found = run_on_spark(lambda order, pages: sink(order, task(pages)), placed)
    else:
        stored = spark_schema(arrow)
        prepared = map_in_arrow(changes, lambda pages: task(pages), stored)
        found = run_on_spark(sink, distribution.placed(prepared, processor.row_id))
    return collect_results(found)


def write_upserts(
    rows: DataFrame,
    provider: PageSinkProvider,
    merge: MergeTableHandle,
    case_number: int,
    conformer: PageConformer,
    row_id: str,
) -> list[bytes]:
    """Write rows that are all inserted, each in the task that reads it, and commit nothing.

    The rows have the columns of a keyed table, and :data:`~trinity.engine.writing.ingest.REFUSAL`.

    Returns:
        the sinks' fragments.

    Raises:
        TrinityError: the errors of conforming and the sink, and of the statement's expressions.
    """
    insert = merge.insert
    fields = [f for f in nullable(insert.target.storage) if f.name in insert.definition.primary_key]
    task = _UpsertTask(provider, merge, case_number, conformer, pa.field(row_id, pa.struct(fields)))
    return run_on_spark(task, rows)
