"""The columns of a sequence group that have no function: they follow the row that is newest in the group (G4, G5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trinity.merge.functions import aggregated
from trinity.merge.spec import SequenceGroup
from trinity.syntax.quoting import quoted


def takes_part(group: SequenceGroup) -> str:
    """Return Spark SQL: true for a row that takes part in the group: its sequence is not all NULL (G2)."""
    return f"({' OR '.join(f'{quoted(c)} IS NOT NULL' for c in group.sequence)})"


@dataclass(frozen=True)
class GroupFold:
    """The Spark SQL that folds one group.

    Attributes:
        number: number of the group, for the names of its columns.
        group: the group.
        plain: its protected columns without a function.
        fold_order: name of a BIGINT column with the fold order within a key.
        key: the key columns, as Spark SQL.
        retract: Spark SQL: true for a retract; None if there are none.
        carries: column -> Spark SQL: true for rows that carry it; None if every row that takes part carries all.
        packed: name of a BIGINT column with the fold order in the group, NULL for rows that take no part; None without.
        flat: whether Spark's hash aggregation supports the types of all columns of the group.
    """

    number: int
    group: SequenceGroup
    plain: tuple[str, ...]
    fold_order: str
    key: str
    retract: str | None
    carries: Callable[[str], str] | None
    packed: str | None
    flat: bool

    @property
    def order(self) -> str:
        """Spark SQL: a value by which the group's rows are ordered; larger is later."""
        return self.packed or f"struct({', '.join(map(quoted, self.group.sequence))}, {self.fold_order})"

    @property
    def _has_own_states(self) -> bool:
        """True if each column is aggregated by itself, not all together as a struct."""
        return self.packed is not None and self.flat

    @property
    def _name(self) -> str:
        return f"_trinity_group_{self.number}"

    @property
    def _newest(self) -> str:
        return f"_trinity_newest_{self.number}"

    @property
    def _sequence(self) -> str:
        return f"struct({', '.join(map(quoted, self.group.sequence))})"

    def prepared(self) -> list[str]:
        """Return the columns that the rows need before they are aggregated: whether a row was the newest as it came.

        A row that leaves out a column moves the sequence on, but not that column. So a column's value depends on rows
        that do not carry it: a late row counts only if it was the newest of the group when it came.
        """
        if self.carries is None:
            return []
        window = f"OVER (PARTITION BY {self.key} ORDER BY {self.fold_order})"
        so_far = f"max(IF({takes_part(self.group)}, {self._sequence}, NULL)) {window}"
        return [f"coalesce({takes_part(self.group)} AND {self._sequence} >= {so_far}, false) AS {self._newest}"]

    def states(self) -> dict[str, str]:
        """Return name of a state -> aggregate expression."""
        part = takes_part(self.group)
        if self.carries is not None:
            found = {self._name: aggregated(f"max({self._sequence})", part)}
            for n, column in enumerate(self.plain):
                when = f"{self._newest} AND {self.carries(column)}"
                found[f"{self._name}_{n}"] = aggregated(f"max_by({self._value(column)}, {self.fold_order})", when)
            return found
        values = [*map(quoted, self.group.sequence), *map(self._value, self.plain)]
        if self._has_own_states:
            return {f"{self._name}_{n}": f"max_by({value}, {self.order})" for n, value in enumerate(values)}
        together = ", ".join(f"{value} AS c{n}" for n, value in enumerate(values))
        return {self._name: aggregated(f"max_by(struct({together}), {self.order})", part)}

    def _value(self, column: str) -> str:
        return f"IF({self.retract}, NULL, {quoted(column)})" if self.retract else quoted(column)

    def results(self) -> Mapping[str, str]:
        """Return column -> Spark SQL: its value, from the states."""
        if self.carries is not None:
            sequence = {c: f"{self._name}.{quoted(c)}" for c in self.group.sequence}
            return sequence | {c: f"{self._name}_{n}" for n, c in enumerate(self.plain)}
        kept = "_" if self._has_own_states else ".c"
        return {c: f"{self._name}{kept}{n}" for n, c in enumerate((*self.group.sequence, *self.plain))}
