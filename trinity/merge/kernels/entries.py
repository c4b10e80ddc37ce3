"""Entries of maps and of arrays of rows, folded by key, in the order of their first appearance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.merge.kernels.order import first_of_each
from trinity.merge.kernels.rows import ColumnRows, lists


@dataclass(frozen=True)
class Entries:
    """The entries of all rows, key by key, in fold order.

    Keys are those of the table's rows. Codes are numbers of the entries' own keys: equal entries have equal codes.

    Attributes:
        values: the entries; those of a map are structs of key and value.
        keys: for each entry the number of the row's key, ascending.
        there: for each key whether a row adds entries; else the column is NULL.
        retract: True for entries that remove an equal one.
        newer: (a number for each entry, whether an equal number replaces, too): an entry replaces an earlier one only
            if its number is larger. None if it always replaces.
        limit: how many entries a key may have; None for any number.
    """

    values: pa.StructArray
    keys: np.ndarray
    there: np.ndarray
    retract: np.ndarray
    newer: tuple[np.ndarray, bool] | None = None
    limit: int | None = None

    @classmethod
    def of(cls, rows: ColumnRows, counted: np.ndarray) -> Entries:
        """Return the entries of rows that are sorted by key and in fold order."""
        found = rows.values.take(as_arrow(counted))
        if pa.types.is_map(found.type):
            entries = pa.StructArray.from_arrays([found.keys, found.items], ["key", "value"])
            found = pa.ListArray.from_arrays(found.offsets, entries)
        row_of = as_numpy(pc.list_parent_indices(found))
        keys, retract = rows.order.keys[counted], rows.retract[counted]
        there = np.bincount(keys[~retract], minlength=rows.order.count) > 0
        return cls(found.flatten(), keys[row_of], there, retract[row_of])

    def among(self, mask: np.ndarray) -> Entries:
        """Return the entries for which a mask is true."""
        if mask.all():
            return self
        newer = None if self.newer is None else (self.newer[0][mask], self.newer[1])
        values = self.values.filter(as_arrow(mask))
        return replace(self, values=values, keys=self.keys[mask], retract=self.retract[mask], newer=newer)

    def put(self, codes: np.ndarray) -> np.ndarray:
        """Return the indices of the remaining entries, in order; of equal codes of a key one entry remains."""
        if self.newer is None and self.limit is None and not self.retract.any():
            first = first_of_each(self.keys, codes)
            last = len(codes) - 1 - first_of_each(self.keys[::-1], codes[::-1])
            in_order = np.lexsort((codes[first], self.keys[first]))
            kept = np.empty(len(first), np.int64)
            kept[in_order] = last[np.lexsort((codes[last], self.keys[last]))]
            return kept
        return self._one_by_one(codes)

    def _one_by_one(self, codes: np.ndarray) -> np.ndarray:
        # entry by entry: whether an entry replaces another, or is within the limit, depends on the entries before it
        numbers, ties = (codes, True) if self.newer is None else self.newer
        newer = None if self.newer is None else numbers.tolist()
        found, now, mine = list[int](), -1, dict[int, int]()
        facts = zip(self.keys.tolist(), codes.tolist(), self.retract.tolist(), strict=True)
        for index, (key, code, gone) in enumerate(facts):
            if key != now:
                found += mine.values()
                mine, now = {}, key
            there = mine.get(code)
            if gone:
                mine.pop(code, None)
            elif there is None:
                if self.limit is None or len(mine) < self.limit:
                    mine[code] = index
            elif newer is None or newer[index] > newer[there] or (ties and newer[index] == newer[there]):
                mine[code] = index
        return np.array([*found, *mine.values()], np.int64)

    def appended(self, codes: np.ndarray) -> np.ndarray:
        """Return the indices of the remaining entries, if every entry is appended and none replaces another."""
        if self.limit is None and not self.retract.any():
            return np.arange(len(codes))
        found, now, mine = list[int](), -1, list[tuple[int, int]]()
        facts = zip(self.keys.tolist(), codes.tolist(), self.retract.tolist(), strict=True)
        for index, (key, code, gone) in enumerate(facts):
            if key != now:
                found += [kept for _, kept in mine]
                mine, now = [], key
            if gone:
                mine = [other for other in mine if other[0] != code]
            elif self.limit is None or len(mine) < self.limit:
                mine.append((code, index))
        return np.array([*found, *(kept for _, kept in mine)], np.int64)

    def lists(self, values: pa.Array, kept: np.ndarray) -> pa.ListArray:
        """Return a list for each key, of the values of the entries with the given indices, in order."""
        return lists(self.keys[kept], values, self.there)
