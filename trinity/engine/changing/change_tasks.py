"""The tasks that write changes: rows of the plan go through the processor, then the guard, to a merge sink (S1-S6).

They take and return Arrow pages, both in Spark's tasks and in this process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.changing.match_checks import FILLING, MergeGuard
from trinity.engine.changing.processors import CASE_NUMBER, INSERT_FROM_UPDATE, OPERATION, RowChangeProcessor
from trinity.engine.writing.ingest import PageConformer, raise_refusal
from trinity.errors import TrinityError
from trinity.hidden import CHANGE_CASE, CHANGE_OPERATION, HIDDEN_PREFIX
from trinity.spi import MergeTableHandle, PageSinkProvider, SinkId

_ERROR: Final = "_trinity_error"
Written = tuple[list[bytes], dict[str, int]]
"""The sinks' fragments, and the number of rows updated, deleted and inserted."""


def change_schema(storage: Iterable[pa.Field], row_id: pa.Field) -> pa.Schema:
    """Return the schema of the changes that :class:`ChangeTask` returns and :class:`SinkTask` takes."""
    return pa.schema(
        [
            *storage,
            (CHANGE_OPERATION, pa.int8()),
            (CHANGE_CASE, pa.int32()),
            row_id,
            (HIDDEN_PREFIX + INSERT_FROM_UPDATE, pa.int8()),
            (_ERROR, pa.string()),
        ]
    )


@dataclass(frozen=True)
class ChangeTask:
    """The first step: it converts merge rows to changes in storage form.

    It returns an error as a row, so that no task of this step fails; the second step raises the error.
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
        # deleted rows have only layout columns, whose values come from the table and need no checks
        stored = self.data.conform(rows) if new else self.data.stored(rows)
        row_id = page.column(width + 2)
        if self.row_id is not None:
            row_id = _as_stored(row_id, self.row_id)
        columns = [*stored.columns, page.column(width), page.column(width + 1), row_id, page.column(width + 3)]
        columns.append(pa.nulls(page.num_rows, pa.string()))
        in_spark = [_cast(column, field) for column, field in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(in_spark, schema=self.schema)


def _as_stored(row_id: pa.StructArray, conformer: PageConformer) -> pa.StructArray:
    """Return a keyed table's row id with its columns in storage form, the form that new rows have."""
    fields = pa.RecordBatch.from_arrays(row_id.flatten(), names=[f.name for f in row_id.type])
    stored = conformer.stored(fields)
    return pa.StructArray.from_arrays(stored.columns, fields=nullable(conformer.storage), mask=pc.is_null(row_id))


def nullable(storage: pa.Schema) -> list[pa.Field]:
    """Return the fields without NOT NULL: the row id of a row that is not deleted has only key and ordering columns."""
    return [f.with_nullable(True) for f in storage]


@dataclass(frozen=True)
class SinkTask:
    """The second step: it passes changes through the guard to a sink. Its first fragment has the counts of rows."""

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
        """Return the page in the SPI's form (S1)."""
        storage = self.merge.insert.target.storage
        data = [_cast(column, field) for column, field in zip(page.columns[: self.width], storage, strict=True)]
        operation, case_number, row_id = page.columns[self.width : self.width + 3]
        return merge_page(storage, [*data, operation, case_number, _cast(row_id, self.row_id)], self.row_id.name)


def merge_page(storage: pa.Schema, columns: list[pa.Array], row_id: str) -> pa.RecordBatch:
    """Return a page in the SPI's form: data columns, operation, case number, row id (S1)."""
    return pa.RecordBatch.from_arrays(columns, names=[*(f.name for f in storage), OPERATION, CASE_NUMBER, row_id])


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)


def collect_results(found: Sequence[bytes]) -> Written:
    """Split the results of all sink tasks into fragments and the sums of their counts."""
    counts = {"updated": 0, "deleted": 0, "inserted": 0}
    fragments = []
    for text in found:
        fragment: dict[str, Any] = json.loads(text)
        if "updated" not in fragment:
            fragments.append(text)
            continue
        counts = {kind: counts[kind] + fragment[kind] for kind in counts}
    return fragments, counts
