"""The columns of a sequence group that have no function: they follow the row that is newest in the group (G4, G5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trinity.merge.functions import aggregated
from trinity.merge.literal import quoted
from trinity.merge.spec import SequenceGroup

__all__ = ["GroupFold", "takes_part"]


def takes_part(group: SequenceGroup) -> str:
    """Spark SQL: the row's sequence is not all NULL (G2)."""
    return f"({' OR '.join(f'{quoted(c)} IS NOT NULL' for c in group.sequence)})"


@dataclass(frozen=True)
class GroupFold:
    """Spark SQL for one group.

    Attributes:
        number: of the group in the table.
        group: the group.
        plain: its protected columns without a function.
        place: BIGINT column, the fold order within a key.
        key: the key columns, quoted.
        retract: Spark SQL: true for a retract, or None when there are none.
        carries: column -> Spark SQL: true for rows that carry it; None when all that take part carry all of them.
    """

    number: int
    group: SequenceGroup
    plain: tuple[str, ...]
    place: str
    key: str
    retract: str | None
    carries: Callable[[str], str] | None

    @property
    def name(self) -> str:
        """Name of the state."""
        return f"_trinity_group_{self.number}"

    @property
    def _newest(self) -> str:
        return f"_trinity_newest_{self.number}"

    @property
    def _sequence(self) -> str:
        return f"struct({', '.join(map(quoted, self.group.sequence))})"

    def prepared(self) -> list[str]:
        """Columns that the rows need before they are aggregated.

        A row that leaves columns out moves the sequence and leaves those columns alone. What a column takes is then
        not decided by its own rows: a late one counts only if it was the newest of the group when it came.
        """
        if self.carries is None:
            return []
        window = f"OVER (PARTITION BY {self.key} ORDER BY {self.place})"
        so_far = f"max(IF({takes_part(self.group)}, {self._sequence}, NULL)) {window}"
        return [f"coalesce({takes_part(self.group)} AND {self._sequence} >= {so_far}, false) AS {self._newest}"]

    def state(self) -> str:
        """The aggregate expression."""
        if self.carries is None:
            columns = [*map(quoted, self.group.sequence), *map(self._value, self.plain)]
            values = ", ".join(f"{value} AS c{n}" for n, value in enumerate(columns))
            order = f"struct({', '.join(map(quoted, self.group.sequence))}, {self.place})"
            return aggregated(f"max_by(struct({values}), {order})", takes_part(self.group))
        parts = [f"{aggregated(f'max({self._sequence})', takes_part(self.group))} AS sequence"]
        for n, column in enumerate(self.plain):
            when = f"{self._newest} AND {self.carries(column)}"
            parts.append(f"{aggregated(f'max_by(struct({self._value(column)} AS v), {self.place})', when)} AS c{n}")
        return f"struct({', '.join(parts)})"

    def _value(self, column: str) -> str:
        return f"IF({self.retract}, NULL, {quoted(column)})" if self.retract else quoted(column)

    def results(self) -> Mapping[str, str]:
        """Column -> its value out of the state."""
        if self.carries is None:
            return {c: f"{self.name}.c{n}" for n, c in enumerate((*self.group.sequence, *self.plain))}
        sequence = {c: f"{self.name}.sequence.{quoted(c)}" for c in self.group.sequence}
        return sequence | {c: f"{self.name}.c{n}.v" for n, c in enumerate(self.plain)}
