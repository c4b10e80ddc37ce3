"""The folds of ``partial-update``, ``aggregation`` and ``first-row``: the rows of one key, one after the other.

It is written from the rules alone, to be obviously right; nothing is fast here. A fold takes row versions in *fold
order*: arrival, or (``sequence.field``, arrival). A column with a function keeps what it was given as a list of
contributions, which is sorted and folded when the row is read: that is A2, literally.

Where the rules leave a choice, this is the reading:

- a *cut* is a writer's or SQL delete, or a -D under ``remove-record-on-delete``. What lies before it in fold order is
  forgotten, the cut itself contributes nothing, and under that option a -U is ignored;
- D5, while the row is deleted: everything is dropped, but a retract not below the threshold of a group raises it. An
  add revives the row if it is below the threshold of no group in which it takes part, and takes part in at least one
  group that has one. All thresholds are then forgotten: the row starts from blank;
- a protected column that the row omits is not carried, though the row takes part in the group (P1);
- rowkind.field: the last kind of the adds. sequence.field in aggregation: that of the last row, retracts included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from trinity_conformance.model.functions import SCALAR_FUNCTIONS, Function
from trinity_conformance.model.nested_functions import NESTED_FUNCTIONS
from trinity_conformance.model.shapes import Group, Shape
from trinity_conformance.model.sketches import SKETCH_FUNCTIONS
from trinity_conformance.model.tables import Row, Version
from trinity_conformance.model.values import Value, order_form

FUNCTIONS: Final = {**SCALAR_FUNCTIONS, **NESTED_FUNCTIONS, **SKETCH_FUNCTIONS}
"""Name -> aggregate function (A3)."""

Tuple: TypeAlias = tuple[tuple[Any, ...], ...]
"""The sequence of a group, each part in its sortable form: NULL first (G3)."""


@dataclass(frozen=True)
class Contribution:
    """The contribution of one row to a column with a function.

    Attributes:
        order: its place among the others: (group sequence, fold order), or fold order alone.
        verb: ``add``, ``retract`` or ``assign``.
        value: the row's value.
    """

    order: tuple[Any, ...]
    verb: str
    value: Value


class Fold:
    """The rows of one key, folded.

    Attributes:
        situations: those that occurred, by name; for coverage only.
    """

    functions: ClassVar[Mapping[str, Callable[[str, Mapping[str, str]], Function]]] = FUNCTIONS

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.situations: Counter[str] = Counter()
        self.position = 0
        self.values: Row = {}
        self.contributions: dict[str, list[Contribution]] = {}
        self.visible = False
        self.cut()

    def fold(self, versions: Iterable[Version]) -> Row | None:
        """Return the visible row, or None (D6)."""
        for version in versions:
            self.position += 1
            self.take(version)
            self.values |= {name: version.row[name] for name in self.shape.key}
        return self.row() if self.visible else None

    def take(self, version: Version) -> None:
        """Take the next row in fold order."""
        raise NotImplementedError

    def cut(self) -> None:
        """Forget everything: the next row starts from blank (D3, M11)."""
        self.values = dict.fromkeys(self.shape.names)
        self.contributions = {name: [] for name in self.shape.names}
        self.visible = False

    def row(self) -> Row:
        """Return the row as it reads."""
        return {name: self.read(name) for name in self.shape.names}

    def read(self, name: str) -> Value:
        """Return the value of a column: its own, or the fold of its contributions."""
        if self.shape.function_of(name) is None:
            return self.values[name]
        function, given = self.function(name), self.ordered(self.contributions[name])
        if len(given) > 1:
            self.situations[f"function {self.shape.function_of(name)}"] += 1
        if any(c.verb == "retract" for c in given):
            self.situations[f"retract {self.shape.function_of(name)}"] += 1
        acc: Any = None
        for contribution in given:
            acc = getattr(function, contribution.verb)(acc, contribution.value)
        return function.result(acc)

    def ordered(self, given: list[Contribution]) -> list[Contribution]:
        """Return contributions in the order in which functions see them (A2)."""
        return sorted(given, key=lambda c: c.order)

    def function(self, name: str) -> Function:
        """Return the function of a column."""
        options = self.shape.function_options.get(name, {})
        return self.functions[self.shape.function_of(name) or ""](self.shape.type_of(name), options)

    def contribute(self, name: str, verb: str, value: Value, *order: Any) -> None:
        """Give a row to a column's function; ``ignore-retract`` keeps retracts from it."""
        if verb == "retract" and self.function(name).switch("ignore-retract"):
            self.situations["ignored retract"] += 1
            return
        self.contributions[name].append(Contribution((*order, self.position), verb, value))

    # -- what a row is ----------------------------------------------------------------------------------

    def kind_of(self, version: Version) -> str:
        """Return +I, +U, -U or -D; a row of an SQL UPDATE is an add."""
        if self.shape.row_kind is None or version.assigned:
            return "+I"
        return version.row[self.shape.row_kind] or "+I"

    def is_retract(self, version: Version) -> bool:
        """Return whether a row is a -U or -D."""
        return self.kind_of(version) in ("-U", "-D")

    def removes_row(self, version: Version) -> bool:
        """Return whether a row cuts: a writer's or SQL delete, or a -D under remove-record-on-delete (D3, M11)."""
        return version.deleted or (self.shape.remove_on_delete and self.kind_of(version) == "-D")

    def is_ignored(self, version: Version) -> bool:
        """Return whether a row is a retract under ignore-delete (D1), or a -U under remove-record-on-delete (D3)."""
        return self.is_retract(version) and (self.shape.ignore_delete or self.shape.remove_on_delete)

    def passes(self, version: Version) -> bool:
        """Apply cuts and skip ignored rows; return True for a row that is to be folded."""
        if self.removes_row(version) and not (self.shape.ignore_delete and not version.deleted):
            self.situations["hard delete" if version.deleted else "delete mode remove-record-on-delete"] += 1
            self.situations["cut of a visible row"] += self.visible
            self.cut()
            return False
        if self.is_ignored(version):
            self.situations["delete mode ignore-delete"] += self.shape.ignore_delete
            return False
        return True


class PartialUpdateFold(Fold):
    """partial-update (P1, G1-G7, A1-A5, D1-D6)."""

    def __init__(self, shape: Shape) -> None:
        self.sequences: dict[Group, Tuple] = {}
        self.thresholds: dict[Group, Tuple] = {}
        super().__init__(shape)

    def cut(self) -> None:
        super().cut()
        self.sequences = {group: self.blank(group) for group in self.shape.groups}
        self.thresholds = {}

    def blank(self, group: Group) -> Tuple:
        """Return the sequence of a group that was never written."""
        return tuple((0,) for _ in group.sequence)

    def take(self, version: Version) -> None:
        if not self.passes(version):
            return
        if self.thresholds and not self.leaves_deletion(version):
            return
        if self.kind_of(version) == "-D" and self.deletes_by_group(version):
            return
        if self.is_retract(version):
            self.retract(version)
        else:
            self.add(version)

    # -- adds (P1, G2-G6, A1) ---------------------------------------------------------------------------

    def add(self, version: Version) -> None:
        """Take an add."""
        self.visible = True
        grouped = {name for g in self.shape.groups for name in (*g.sequence, *g.columns)}
        for name in self.shape.names:
            if name not in grouped and self.carries(version, name):
                self.values[name] = version.row[name]
        for group in self.shape.groups:
            self.add_to_group(group, version)

    def carries(self, version: Version, name: str) -> bool:
        """Return whether a row carries a column outside groups (P1)."""
        return version.names(name) and (version.assigned or version.row[name] is not None)

    def add_to_group(self, group: Group, version: Version) -> None:
        """Take the part of an add that a group sees."""
        sequence = self.sequence_of(group, version)
        if not self.takes_part(group, sequence):
            self.situations["row out of a group"] += 1
            return
        accepted = self.accepts(group, sequence)
        for name in group.columns:
            if not version.names(name):
                self.situations["omitted column in a group"] += 1
            elif self.shape.function_of(name):
                self.contribute(name, "assign" if version.assigned else "add", version.row[name], sequence)
            elif accepted:
                self.values[name] = version.row[name]
        self.advance(group, sequence, version)

    def sequence_of(self, group: Group, version: Version) -> Tuple:
        """Return a row's sequence in a group; columns that it does not name read NULL."""
        parts = [(name, version.row[name] if version.names(name) else None) for name in group.sequence]
        return tuple(order_form(self.shape.type_of(name), value) for name, value in parts)

    def takes_part(self, group: Group, sequence: Tuple) -> bool:
        """Return whether a row takes part in a group: not when all parts are NULL (G2)."""
        if sequence != self.blank(group) and (0,) in sequence:
            self.situations["sequence with a NULL part"] += 1
        return sequence != self.blank(group)

    def accepts(self, group: Group, sequence: Tuple) -> bool:
        """Return whether a sequence is not smaller than the stored one; ties are accepted (G4, G5)."""
        return sequence >= self.sequences[group]

    def advance(self, group: Group, sequence: Tuple, version: Version) -> None:
        """Set all parts of the sequence, unless it is smaller (G4, G5)."""
        if not self.accepts(group, sequence):
            self.situations["late retract in a group" if self.is_retract(version) else "late row in a group"] += 1
            return
        if sequence == self.sequences[group]:
            self.situations["tie in a group"] += 1
        self.sequences[group] = sequence
        self.values |= {name: version.row[name] if version.names(name) else None for name in group.sequence}

    # -- retracts (D4) ----------------------------------------------------------------------------------

    def retract(self, version: Version) -> None:
        """Take a retract: per group; columns outside groups are unchanged."""
        self.situations["retract of nothing"] += not self.visible
        for group in self.shape.groups:
            sequence = self.sequence_of(group, version)
            if self.takes_part(group, sequence):
                self.situations["delete mode sequence-group"] += 1
                self.retract_from_group(group, sequence, version)

    def retract_from_group(self, group: Group, sequence: Tuple, version: Version) -> None:
        """Apply a retract to the columns of one group."""
        accepted = self.accepts(group, sequence)
        for name in group.columns:
            if self.shape.function_of(name):
                self.contribute(name, "retract", version.row[name], sequence)
            elif accepted:
                self.values[name] = None
        self.advance(group, sequence, version)

    # -- removal by a group (D5) ------------------------------------------------------------------------

    def deletes_by_group(self, version: Version) -> bool:
        """Delete the row if a -D is not below the stored sequence of a listed group; its sequence is the threshold."""
        reached: dict[Group, Tuple] = {}
        for group in self.listed():
            sequence = self.sequence_of(group, version)
            if self.takes_part(group, sequence) and self.accepts(group, sequence):
                reached[group] = sequence
        if reached:
            self.situations["delete mode remove-record-on-sequence-group"] += 1
            self.situations["cut of a visible row"] += self.visible
            self.cut()
            self.thresholds = reached
        return bool(reached)

    def listed(self) -> list[Group]:
        """Return the groups of ``partial-update.remove-record-on-sequence-group``."""
        return [g for g in self.shape.groups if set(g.sequence) & set(self.shape.remove_on_groups)]

    def leaves_deletion(self, version: Version) -> bool:
        """Handle a row that follows a deletion; return True for an add that revives the row, after a cut."""
        if self.is_retract(version):
            self.raise_thresholds(version)
            return False
        if not self.revives(version):
            self.situations["row below a threshold"] += 1
            return False
        self.situations["revival"] += 1
        self.cut()
        return True

    def raise_thresholds(self, version: Version) -> None:
        """Raise each group's threshold to the sequence of a retract that is greater."""
        for group, threshold in self.thresholds.items():
            self.situations["raised threshold"] += self.sequence_of(group, version) > threshold
            self.thresholds[group] = max(threshold, self.sequence_of(group, version))

    def revives(self, version: Version) -> bool:
        """Return whether a row is below no threshold of its groups, at least one of which must have a threshold."""
        found = [(self.sequence_of(g, version), t) for g, t in self.thresholds.items()]
        parts = [(s, t) for s, t in found if s != tuple((0,) for _ in s)]
        return bool(parts) and all(sequence >= threshold for sequence, threshold in parts)


class AggregationFold(Fold):
    """aggregation (E1)."""

    def take(self, version: Version) -> None:
        if not self.passes(version):
            return
        retract = self.is_retract(version)
        self.visible = self.visible or not retract
        self.situations["delete mode aggregation"] += retract
        for name in self.shape.names:
            if version.assigned and not version.names(name):
                continue
            if self.shape.function_of(name):
                verb = "retract" if retract else "assign" if version.assigned else "add"
                self.contribute(name, verb, version.row[name])
            elif name != self.shape.row_kind or not (retract or version.row[name] is None):
                self.values[name] = version.row[name]


class FirstRowFold(Fold):
    """first-row (E2): the first add, whole."""

    def take(self, version: Version) -> None:
        if self.is_ignored(version):
            self.situations["delete mode ignore-delete"] += 1
        elif self.visible:
            self.situations["row after the first"] += 1
        else:
            self.visible = True
            self.values = dict(version.row)
