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
    """Return True for rows whose sequence is not all NULL (G2)."""
    found: np.ndarray = np.logical_or.reduce([valid(values[name]) for name in group.sequence])
    return found


@dataclass(frozen=True)
class GroupFold:
    """The fold of one group.

    Attributes:
        order: the fold order in the group: by sequence, then arrival.
        part: True for rows that are folded and take part.
        carries: column -> True for rows that carry it; None when all that take part carry all of them.
        plain: those of its protected columns without a function that are wanted.
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
        """Return the fold of a group; ``folded`` is True for rows that are folded."""
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
        """Return True for rows that were the newest of the group when they came.

        A row that leaves out a column moves the sequence, but not that column. So what a column takes depends on more
        than its own rows: a late row counts only if it was the newest of the group when it came.
        """
        rows = self.fold_order.sorted(self.part)
        sequence = tuple_codes([codes[rows] for codes in self.order.codes])
        # later keys begin above all of earlier ones, so that one running maximum serves all
        risen = self.fold_order.keys[rows] * (len(rows) + 1) + sequence
        found = np.zeros(len(self.part), bool)
        found[rows] = np.maximum.accumulate(risen) == risen
        return found
