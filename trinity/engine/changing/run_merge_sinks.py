"""The run of merge sinks: rows of the plan go through the processor to the sink that their layout names (S1-S6).

It has two steps. The first turns merge rows into changes in storage form. The second gets all changes of a row id,
finds duplicate matches and feeds the sink. Between them is an exchange, unless the merge rows can be exchanged
instead: then both steps are one task, and rows go to Python once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.changing.guard import FILLING, MergeGuard
from trinity.engine.changing.plan import MERGE_ROW
from trinity.engine.changing.processors import CASE_NUMBER, INSERT_FROM_UPDATE, OPERATION, RowChangeProcessor
from trinity.engine.writing.ingest import PageConformer
from trinity.engine.writing.run_sinks import REFUSAL, map_in_arrow, raise_refusal, run_on_spark
from trinity.errors import TrinityError
from trinity.spark_names import F, to_arrow_type
from trinity.spi import MergeTableHandle, Operation, PageSinkProvider, SinkId
from trinity.storage import spark_schema
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Distribution", "write_changes", "write_upserts"]

_PREFIX: Final = "_trinity_"
_ERROR: Final = "_trinity_error"


@dataclass(frozen=True)
class Distribution:
    """The distribution of changes to sinks.

    Attributes:
        insert: columns by whose hash new rows are placed; empty: with the row that they replace, else anywhere.
        update: row id fields by whose hash deleted and changed rows are placed.
        sinks: number of sinks, or None to let Spark choose by size.
        together: True when all changes of a merge row go to one sink.
    """

    insert: tuple[str, ...]
    update: tuple[str, ...]
    sinks: int | None = None
    together: bool = False

    def placed(self, rows: DataFrame, row_id: str) -> DataFrame:
        """Return merge rows if ``together``, or else changes, in a partition for each sink."""
        present = F.col(row_id).isNotNull()
        where = F.hash(*([F.col(row_id)[name] for name in self.update] or [F.col(row_id)]))
        if not self.insert:
            where = F.when(present, where).otherwise(F.spark_partition_id())
        elif self.together:
            where = F.when(present, where).otherwise(F.hash(*[F.col(MERGE_ROW)[name] for name in self.insert]))
        else:
            new = F.col(_PREFIX + OPERATION).isin(int(Operation.INSERT), int(Operation.UPDATE_INSERT))
            where = F.when(new, F.hash(*[F.col(quoted(name)) for name in self.insert])).otherwise(where)
        return rows.repartition(self.sinks, where) if self.sinks else rows.repartition(where)


@dataclass(frozen=True)
class _ChangeTask:
    """First step: merge rows to changes in storage form.

    An error travels on as a row, so that no task fails; the second step raises it.
    """

    processor: RowChangeProcessor
    data: PageConformer
    row_id: PageConformer | None
    schema: pa.Schema

    def __call__(self, pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for page in pages:
                raise_refusal(page.column(page.num_columns - 1))
                changes = self.processor.transform_page(page)
                new = pc.is_in(changes.column(len(self.processor.columns)), value_set=FILLING)
                for part, is_new in ((changes.filter(new), True), (changes.filter(pc.invert(new)), False)):
                    if part.num_rows:
                        yield self._stored(part, is_new)
        except TrinityError as error:
            yield pa.RecordBatch.from_pylist([{_ERROR: error.to_json()}], schema=self.schema)

    def _stored(self, page: pa.RecordBatch, new: bool) -> pa.RecordBatch:
        width = len(self.processor.columns)
        rows = pa.RecordBatch.from_arrays(page.columns[:width], names=list(self.processor.columns))
        # deleted rows have no data but their layout columns, which were stored before
        stored = self.data.conform(rows) if new else self.data.stored(rows)
        row_id = page.column(width + 2)
        if self.row_id is not None:
            row_id = _as_stored(row_id, self.row_id)
        columns = [*stored.columns, page.column(width), page.column(width + 1), row_id, page.column(width + 3)]
        columns.append(pa.nulls(page.num_rows, pa.string()))
        in_spark = [_as(column, field) for column, field in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(in_spark, schema=self.schema)


def _as_stored(row_id: pa.StructArray, conformer: PageConformer) -> pa.StructArray:
    """Return a keyed table's row id with its columns in storage form, as those of the new rows are."""
    fields = pa.RecordBatch.from_arrays(row_id.flatten(), names=[f.name for f in row_id.type])
    stored = conformer.stored(fields)
    return pa.StructArray.from_arrays(stored.columns, fields=_nullable(conformer.storage), mask=pc.is_null(row_id))


def _nullable(storage: pa.Schema) -> list[pa.Field]:
    """Return the fields without NOT NULL: rows that do not die have only key and ordering in their row id."""
    return [f.with_nullable(True) for f in storage]


@dataclass(frozen=True)
class _SinkTask:
    """Second step: the guard, then the sink. Its first fragment is the counts."""

    provider: PageSinkProvider
    merge: MergeTableHandle
    width: int
    row_id: pa.Field
    guard: MergeGuard

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        sink = self.provider.create_merge_sink(self.merge, SinkId(order))
        watch = self.guard.watch()
        try:
            for page in pages:
                if page.num_rows == 0:
                    continue
                raise_refusal(page.column(page.num_columns - 1))
                watch.take(page, self.width)
                sink.store_merged_rows(self._merge_page(page))
            watch.finish()
            fragments = sink.finish()
        except BaseException:
            sink.abort()
            raise
        return [json.dumps(watch.counts()).encode(), *fragments]

    def _merge_page(self, page: pa.RecordBatch) -> pa.RecordBatch:
        """Return the page as the SPI has it (S1)."""
        storage = self.merge.insert.target.storage
        data = [_as(column, field) for column, field in zip(page.columns[: self.width], storage, strict=True)]
        operation, case_number, row_id = page.columns[self.width : self.width + 3]
        return _merge_page(storage, [*data, operation, case_number, _as(row_id, self.row_id)], self.row_id.name)


@dataclass(frozen=True)
class _UpsertTask:
    """The rows of a MERGE that is an upsert: each is an INSERT, in the task that reads it."""

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
        return _merge_page(stored.schema, columns, self.row_id.name)


def _merge_page(storage: pa.Schema, columns: list[pa.Array], row_id: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, names=[*(f.name for f in storage), OPERATION, CASE_NUMBER, row_id])


def _as(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)


def _for_spark(kind: pa.DataType) -> pa.DataType:
    """Return the type in which Spark takes a column from Python: TIME in nanoseconds, though it has microseconds."""
    if pa.types.is_time(kind):
        return pa.time64("ns")
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_for_spark(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_for_spark(kind.key_type), kind.item_field.with_type(_for_spark(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_for_spark(f.type)) for f in kind])
    return kind


def write_changes(
    changes: DataFrame,
    provider: PageSinkProvider,
    merge: MergeTableHandle,
    processor: RowChangeProcessor,
    conformers: tuple[PageConformer, PageConformer | None],
    distribution: Distribution,
    guard: MergeGuard,
) -> tuple[list[bytes], dict[str, int]]:
    """Write the changes, and commit nothing.

    Args:
        changes: rows of the plan: layout columns, row id, merge row, refusal.
        provider: makes the sinks.
        merge: what ``begin_merge`` returned.
        processor: of the table's paradigm.
        conformers: bring data columns, and the row id of a keyed table, into storage form.
        distribution: to which sinks changes go.
        guard: finds duplicate matches and colliding keys.

    Returns:
        the sinks' fragments, and the number of rows updated, deleted, inserted.

    Raises:
        TrinityError: the errors of conforming, guard and sink, and of the statement's expressions.
    """
    storage = merge.insert.target.storage
    spark_row_id = changes.schema[processor.row_id].dataType
    row_id = pa.struct(_nullable(conformers[1].storage)) if conformers[1] else to_arrow_type(spark_row_id)
    arrow = pa.schema(
        [
            *(f.with_type(_for_spark(f.type)) for f in storage),
            (_PREFIX + OPERATION, pa.int8()),
            (_PREFIX + CASE_NUMBER, pa.int32()),
            (processor.row_id, _for_spark(row_id)),
            (_PREFIX + INSERT_FROM_UPDATE, pa.int8()),
            (_ERROR, pa.string()),
        ]
    )
    task = _ChangeTask(processor, conformers[0], conformers[1], arrow)
    sink = _SinkTask(provider, merge, len(storage), pa.field(processor.row_id, row_id), guard)
    if distribution.together:
        placed = distribution.placed(changes, processor.row_id)
        found = run_on_spark(lambda order, pages: sink(order, task(pages)), placed)
    else:
        stored = spark_schema(arrow)
        prepared = map_in_arrow(changes, lambda pages: task(pages), stored)
        found = run_on_spark(sink, distribution.placed(prepared, processor.row_id))
    counts = {"updated": 0, "deleted": 0, "inserted": 0}
    fragments = []
    for text in found:
        fragment: dict[str, Any] = json.loads(text)
        if "updated" not in fragment:
            fragments.append(text)
            continue
        counts = {kind: counts[kind] + fragment[kind] for kind in counts}
    return fragments, counts


def write_upserts(
    rows: DataFrame,
    provider: PageSinkProvider,
    merge: MergeTableHandle,
    case_number: int,
    conformer: PageConformer,
    row_id: str,
) -> list[bytes]:
    """Write rows that are all inserted, each in the task that reads it, and commit nothing.

    Args:
        rows: the columns of a keyed table, and :data:`~trinity.engine.writing.run_sinks.REFUSAL`.
        provider: makes the sinks.
        merge: what ``begin_merge`` returned.
        case_number: of the INSERT.
        conformer: brings the rows into storage form.
        row_id: name of the row id column.

    Returns:
        the sinks' fragments.

    Raises:
        TrinityError: the errors of conforming and the sink, and of the statement's expressions.
    """
    insert = merge.insert
    held = [f for f in _nullable(insert.target.storage) if f.name in insert.definition.primary_key]
    task = _UpsertTask(provider, merge, case_number, conformer, pa.field(row_id, pa.struct(held)))
    return run_on_spark(task, rows)
