"""Row-change processors: from the rows of a MERGE's join to the pages that merge sinks take (S1-S5).

The page supplied to :meth:`RowChangeProcessor.transform_page` is what the searched CASE over the join yields:

- the layout columns, with the old values of the target row;
- ``row_id`` STRUCT: the target row, NULL where none matched;
- ``merge_row`` STRUCT: the data columns in table order, then ``present`` BOOLEAN, ``operation`` TINYINT and
  ``case_number`` INT; NULL where no case selected the row.

It returns the data columns, ``operation``, ``case_number``, ``row_id`` and ``insert_from_update`` (1 for an insert that
comes from an update, so that the update counts once). Rows that no case selected are left out (S3). Columns are known
by index, since a table may have a column of any name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.spi import Operation, RowChangeParadigm

OPERATION = "operation"
CASE_NUMBER = "case_number"
INSERT_FROM_UPDATE = "insert_from_update"


@dataclass(frozen=True)
class _Rows:
    """The selected rows of a page, split into their parts."""

    data: list[pa.Array]
    operation: np.ndarray
    case_number: pa.Array
    row_id: pa.StructArray
    layout: dict[int, pa.Array]


@dataclass(frozen=True)
class RowChangeProcessor(ABC):
    """The conversion of merge rows to changes that a table's paradigm asks for. Picklable.

    Attributes:
        columns: the data columns in table order.
        layout: the columns whose old values come with each row.
        key: primary key columns; empty for a plain table.
    """

    columns: tuple[str, ...]
    layout: tuple[str, ...]
    row_id: str
    key: tuple[str, ...] = ()

    def transform_page(self, page: pa.RecordBatch) -> pa.RecordBatch:
        """Return the changes of a page's rows."""
        merge = page.column(len(self.layout) + 1)
        page = page.filter(pc.is_valid(merge))
        merge = page.column(len(self.layout) + 1)
        fields = merge.flatten()
        layout_columns = {self.columns.index(name): page.column(i) for i, name in enumerate(self.layout)}
        rows = _Rows(
            fields[: len(self.columns)],
            np.asarray(fields[-2].cast(pa.int8()), dtype=np.int8),
            fields[-1].cast(pa.int32()),
            page.column(len(self.layout)),
            layout_columns,
        )
        return self._changes(rows)

    @abstractmethod
    def _changes(self, rows: _Rows) -> pa.RecordBatch:
        """Return the output page for selected rows."""

    def _split(self, rows: _Rows, split: np.ndarray, operations: tuple[Operation, Operation]) -> pa.RecordBatch:
        """Split the marked updates into a delete row and an insert row, adjacent."""
        origin = np.repeat(np.arange(len(rows.operation)), np.where(split, 2, 1))
        second = np.zeros(len(origin), dtype=bool)
        second[1:] = origin[1:] == origin[:-1]
        operation = rows.operation[origin]
        halved = split[origin]
        operation[halved & ~second], operation[halved & second] = operations
        deleted = (operation == Operation.DELETE) | (operation == Operation.UPDATE_DELETE)
        source = as_arrow(origin, mask=deleted)  # a NULL index yields NULL: delete rows have no data (S3)
        data = [column.take(source) for column in rows.data]
        for index, old in rows.layout.items():
            data[index] = pc.if_else(as_arrow(deleted), old.take(as_arrow(origin)), data[index])
        row_id = rows.row_id.take(as_arrow(origin, mask=operation == Operation.INSERT))
        return self._page(data, operation, rows.case_number.take(as_arrow(origin)), row_id, second)

    def _page(
        self, data: list[pa.Array], operation: np.ndarray, case: pa.Array, row_id: pa.Array, from_update: np.ndarray
    ) -> pa.RecordBatch:
        columns = [*data, as_arrow(operation, pa.int8()), case, row_id, as_arrow(from_update.astype(np.int8))]
        return pa.RecordBatch.from_arrays(
            columns, names=[*self.columns, OPERATION, CASE_NUMBER, self.row_id, INSERT_FROM_UPDATE]
        )


class DeleteAndInsertMergeProcessor(RowChangeProcessor):
    """The processor of DELETE_ROW_AND_INSERT_ROW: an update becomes UPDATE_DELETE and UPDATE_INSERT, of one row id."""

    def _changes(self, rows: _Rows) -> pa.RecordBatch:
        updates = rows.operation == Operation.UPDATE
        return self._split(rows, updates, (Operation.UPDATE_DELETE, Operation.UPDATE_INSERT))


class ChangeOnlyUpdatedColumnsMergeProcessor(RowChangeProcessor):
    """The processor of CHANGE_ONLY_UPDATED_COLUMNS: an update stays one row with all its columns.

    The case number tells the sink which columns changed (S5). An update that moves a row to another key becomes DELETE
    and INSERT (M7).
    """

    def _changes(self, rows: _Rows) -> pa.RecordBatch:
        moved = np.zeros(len(rows.operation), dtype=bool)
        for name in self.key:
            index = self.columns.index(name)
            moved |= ~_same_key_value(rows.layout[index], rows.data[index])
        moved &= rows.operation == Operation.UPDATE
        return self._split(rows, moved, (Operation.DELETE, Operation.INSERT))


def _same_key_value(old: pa.Array, new: pa.Array) -> np.ndarray:
    """Return True for each row in which two columns hold the same key value: all NaNs are equal (K2)."""
    same = pc.fill_null(pc.equal(old, new), False)
    if pa.types.is_floating(old.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(old), pc.is_nan(new)), False))
    return np.asarray(as_numpy(same), dtype=bool)


def processor_for(
    paradigm: RowChangeParadigm, columns: Sequence[str], layout: Sequence[str], row_id: str, key: Sequence[str]
) -> RowChangeProcessor:
    """Return the processor of a paradigm."""
    kind = {
        RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW: DeleteAndInsertMergeProcessor,
        RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS: ChangeOnlyUpdatedColumnsMergeProcessor,
    }[paradigm]
    return kind(tuple(columns), tuple(layout), row_id, tuple(key))
