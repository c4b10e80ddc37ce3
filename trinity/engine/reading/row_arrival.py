"""The arrival order of row versions after another engine has rewritten files (L3), in Arrow.

The same as :mod:`trinity.engine.reading.spark.row_arrival` in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy, as_scalar, row_numbers, where_true
from trinity.engine.reading.file_arrival import BEFORE, FileArrival, unknown_order_message
from trinity.engine.reading.files import order_is_lost
from trinity.errors import TrinityError
from trinity.hidden import MOMENT
from trinity.merge.kernels.keys import comparable
from trinity.merge.row_kinds import StoredKind
from trinity.merge.spec import MergeSpec
from trinity.messages import shown_row
from trinity.spi import MOMENT_UNIT, ROW_KIND, STAMP, SplitSource, moment_of_append

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


def with_stamp(rows: _Rows, stamp: int) -> _Rows:
    """Set the stamp of rows that have none."""
    index = rows.schema.get_field_index(STAMP)
    return rows.set_column(index, rows.schema.field(index), pc.fill_null(rows.column(STAMP), as_scalar(stamp)))


@dataclass(frozen=True)
class RowArrival:
    """The arrival of a version's rows by their stamps, where the commits of their files do not tell it.

    Attributes:
        late: stamp -> commit number, of appends that were committed after a row change that did not see them.
        strangers: True where another engine may have added rows, which have no stamp.
    """

    table: str
    spec: MergeSpec
    late: Mapping[int, int]
    strangers: bool

    @classmethod
    def of(cls, splits: SplitSource, spec: MergeSpec) -> RowArrival | None:
        """Return the arrival of a version's rows; None where the commits of their files order them."""
        if not order_is_lost(splits):
            return None
        return cls(splits.definition.full_name, spec, splits.order.late, bool(splits.order.strangers))

    def with_moments(self, rows: _Rows, file: FileArrival) -> _Rows:
        """Add ``MOMENT`` to rows of a file, and set the stamps that are missing and known."""
        if file.stamp is not None:
            rows = with_stamp(rows, file.stamp)
        return rows.append_column(MOMENT, as_arrow(self._moments(rows.column(STAMP), file)))

    def _moments(self, stamps: pa.Array | pa.ChunkedArray, file: FileArrival) -> np.ndarray:
        if file.before:
            return np.full(len(stamps), BEFORE)
        known = as_numpy(pc.fill_null(stamps, as_scalar(0)))
        moments = known // MOMENT_UNIT
        for stamp, commit in self.late.items():
            moments[known == stamp] = moment_of_append(commit)
        moments[as_numpy(pc.is_null(stamps))] = file.moment
        return moments

    def in_order(self, rows: pa.Table) -> pa.Table:
        """Sort rows from file order into arrival order. They have ``MOMENT``.

        Raises:
            TrinityError: BAD_DATA naming a key, as :meth:`check`, if the table's engine folds column by column.
        """
        index, keys = np.arange(len(rows)), list[np.ndarray]()
        if self.spec.by_column and ROW_KIND in rows.column_names:
            # if one statement deletes a key and inserts it again, the delete sorts first
            kinds = rows.column(ROW_KIND)
            keys.append(~where_true(pc.equal(kinds, as_scalar(StoredKind.DELETED, kinds.type))))
        rows = rows.take(as_arrow(np.lexsort((index, *keys, as_numpy(rows.column(MOMENT))))))
        if self.spec.by_column:  # every row may count, not the winner alone
            self.check(rows, np.arange(len(rows)))
        return rows

    def check(self, rows: pa.Table, winners: np.ndarray) -> None:
        """Refuse winners that tie with a row that may have come before or after them.

        ``rows`` are all row versions, ``winners`` are indices of some.

        Raises:
            TrinityError: BAD_DATA naming the first such key.
        """
        found = winners[self._unsure(rows)[winners]] if self.strangers else winners[:0]
        if not len(found):
            return
        [row] = rows.select(self.spec.key).slice(int(found[0]), 1).to_pylist()
        raise TrinityError("BAD_DATA", shown_row(row, row.values()).join(unknown_order_message(self.table)))

    def _unsure(self, rows: pa.Table) -> np.ndarray:
        """Return True for rows whose order relative to an equal row is unknown: both rows of the pair."""
        moments, unstamped = as_numpy(rows.column(MOMENT)), as_numpy(pc.is_null(rows.column(STAMP)))
        stranger = unstamped & (moments > BEFORE)
        changed = ~unstamped & (moments >= 0) & (moments % 2 == 0)
        placed = unstamped & (moments >= 0)  # the row may be a copy, and so the winner, too
        compared = comparable(rows.select(dict.fromkeys((*self.spec.key, *self.spec.ordering))))
        tied = row_numbers(column.combine_chunks() for column in compared.columns)
        found: np.ndarray = changed & _in_any(stranger, tied) | placed & _in_any(changed, tied)
        return found


def _in_any(marks: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return True for each row whose number also has a marked row."""
    found: np.ndarray = np.bincount(numbers, marks)[numbers] > 0
    return found
