"""The columns of a sequence group that have no function: they follow the row that is newest in the group (G4, G5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trinity.arrays import valid
from trinity.merge.kernels.order import FoldOrder, order_codes, tuple_codes
from trinity.merge.kernels.rows import picked
from trinity.merge.spec import SequenceGroup


def takes_part(group: SequenceGroup, values: Mapping[str, pa.Array]) -> np.ndarray:
    """Return a mask of the rows that take part in the group: their sequence is not all NULL (G2)."""
    found: np.ndarray = np.logical_or.reduce([valid(values[name]) for name in group.sequence])
    return found


@dataclass(frozen=True)
class GroupFold:
    """The fold of one group.

    Attributes:
        group: the group.
        values: column -> its values in all rows.
        fold_order: the fold order of the rows.
        order: the fold order in the group: by sequence, then arrival.
        part: True for rows that are folded and take part.
        retract: True for retracts.
        carries: returns for a column a mask of the rows that carry it; None if all that take part carry all columns.
        plain: the wanted ones among its protected columns without a function.
    """

    group: SequenceGroup
    values: Mapping[str, pa.Array]
    fold_order: FoldOrder
    order: FoldOrder
    part: np.ndarray
    retract: np.ndarray
    carries: Callable[[str], np.ndarray] | None
    plain: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        group: SequenceGroup,
        values: Mapping[str, pa.Array],
        fold_order: FoldOrder,
        folded: np.ndarray,
        retract: np.ndarray,
        carries: Callable[[str], np.ndarray] | None,
    ) -> GroupFold:
        """Return the fold of a group; ``folded`` is a mask of the rows that are folded."""
        codes = tuple(order_codes(values[name]) for name in group.sequence)
        order = FoldOrder(fold_order.keys, fold_order.count, codes)
        return cls(group, values, fold_order, order, folded & takes_part(group, values), retract, carries)

    def columns(self) -> dict[str, pa.Array]:
        """Return column -> its value for each key."""
        newest = self.order.last(self.part)
        found = {name: picked(self.values[name], newest) for name in self.group.sequence}
        if not self.plain:
            return found
        if self.carries is None:
            chosen = dict.fromkeys(self.plain, newest)
        else:
            when_it_came = self._newest_when_it_came()
            chosen = {name: self.fold_order.last(when_it_came & self.carries(name)) for name in self.plain}
        for name, rows in chosen.items():
            found[name] = picked(self.values[name], np.where((rows >= 0) & self.retract[rows], -1, rows))
        return found

    def _newest_when_it_came(self) -> np.ndarray:
        """Return a mask of the rows that were the newest of the group when they came.

        A row that leaves out a column moves the sequence on, but not that column. So a column's value depends on rows
        that do not carry it: a late row counts only if it was the newest of the group when it came.
        """
        rows = self.fold_order.sorted(self.part)
        sequence = tuple_codes([codes[rows] for codes in self.order.codes])
        # the numbers of each key are above those of the keys before, so that one running maximum serves all keys
        risen = self.fold_order.keys[rows] * (len(rows) + 1) + sequence
        found = np.zeros(len(self.part), bool)
        found[rows] = np.maximum.accumulate(risen) == risen
        return found
