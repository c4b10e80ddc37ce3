"""Rows that a -D of a sequence group removes (D5): a state machine over the row versions of a key, of all keys at once.

:mod:`trinity.merge.sql.removal` describes the machine, which is the same in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.merge.arrow.groups import takes_part
from trinity.merge.kernels.order import FoldOrder, order_codes, tuple_codes
from trinity.merge.row_kinds import FoldKind
from trinity.merge.spec import SequenceGroup

_BLANK: Final = -1
"""Number of a tuple that is all NULL."""


@dataclass(frozen=True)
class Removal:
    """The rows that removal by groups leaves.

    Attributes:
        kept: mask of the rows of live keys from their last revival on.
        dead: numbers of the dead keys.
        thresholds: for each listed group the indices of the rows with the thresholds of the dead keys; -1 for none.
    """

    kept: np.ndarray
    dead: np.ndarray
    thresholds: tuple[np.ndarray, ...]


def kept_after_removal(
    groups: Sequence[SequenceGroup],
    values: Mapping[str, pa.Array],
    fold_order: FoldOrder,
    kinds: np.ndarray,
    folded: np.ndarray,
) -> Removal:
    """Return what removal leaves of the folded rows.

    Args:
        groups: the listed groups.
        values: column -> its values in all rows.
        fold_order: the fold order of the rows.
        kinds: the :class:`~trinity.merge.row_kinds.FoldKind` of each row.
        folded: mask of the rows that are folded, none of them a cut.
    """
    may_die = np.zeros(fold_order.count, bool)
    may_die[fold_order.keys[folded & (kinds == FoldKind.RETRACT_DELETE)]] = True
    rows = fold_order.sorted(folded & may_die[fold_order.keys])
    machine = _Machine(fold_order.keys[rows], kinds[rows], [_numbers(group, values, rows) for group in groups])
    machine.run()
    kept = folded.copy()
    kept[rows] = machine.kept()
    dead = machine.keys[machine.dead]
    thresholds = tuple(np.where(at >= 0, rows[at], -1)[machine.dead] for at in machine.at)
    return Removal(kept, dead, thresholds)


def _numbers(group: SequenceGroup, values: Mapping[str, pa.Array], rows: np.ndarray) -> np.ndarray:
    """Return a number for each row's tuple in a group; larger tuples have larger numbers."""
    part = takes_part(group, values)[rows]
    return np.where(part, tuple_codes([order_codes(values[name])[rows] for name in group.sequence]), _BLANK)


class _Machine:
    """The state of every key.

    ``run`` takes the first row of every key, then the second row of all keys that have one, and so on.

    Args:
        keys: number of each row's key, ascending.
        kinds: the kind of each row.
        tuples: for each listed group a number for the tuple of each row.
    """

    def __init__(self, keys: np.ndarray, kinds: np.ndarray, tuples: Sequence[np.ndarray]) -> None:
        self.kinds, self.tuples = kinds, tuples
        self.keys, self.first, self.length = np.unique(keys, return_index=True, return_counts=True)
        number = len(self.keys)
        self.dead = np.zeros(number, bool)
        self.start = np.zeros(number, np.int64)
        self.stored = [np.full(number, _BLANK) for _ in tuples]
        self.at = [np.full(number, -1) for _ in tuples]

    def run(self) -> None:
        longest_first = np.argsort(-self.length, kind="stable")
        lengths = -self.length[longest_first]
        for step in range(int(self.length.max(initial=0))):
            self._step(longest_first[: np.searchsorted(lengths, -step)], step)

    def kept(self) -> np.ndarray:
        """Return a mask of the rows of live keys from their last revival on."""
        index = np.arange(len(self.kinds)) - np.repeat(self.first, self.length)
        return ~np.repeat(self.dead, self.length) & (index >= np.repeat(self.start, self.length))

    def _step(self, of: np.ndarray, step: int) -> None:
        row = self.first[of] + step
        kind, dead = self.kinds[row], self.dead[of]
        tuples, stored = [numbers[row] for numbers in self.tuples], [numbers[of] for numbers in self.stored]
        part = [t != _BLANK for t in tuples]
        not_older = [p & (t >= s) for p, t, s in zip(part, tuples, stored, strict=True)]
        deletes = ~dead & (kind == FoldKind.RETRACT_DELETE) & np.logical_or.reduce(not_older)
        has = [s != _BLANK for s in stored]
        reached = np.logical_or.reduce([h & n for h, n in zip(has, not_older, strict=True)])
        older = np.logical_or.reduce([p & ~n for p, n in zip(part, not_older, strict=True)])
        revives = dead & (kind == FoldKind.ADD) & reached & ~older
        raises = dead & (kind != FoldKind.ADD)
        for n, numbers in enumerate(self.stored):
            blank = (deletes & ~not_older[n]) | (revives & ~part[n])
            taken = np.where(dead & ~revives, raises & has[n] & not_older[n], not_older[n] | revives) & ~blank
            numbers[of] = np.where(blank, _BLANK, np.where(taken, tuples[n], stored[n]))
            self.at[n][of] = np.where(blank, -1, np.where(taken, row, self.at[n][of]))
        self.start[of] = np.where(revives, step, self.start[of])
        self.dead[of] = deletes | (dead & ~revives)
