"""Proof that histories of merge engines find faults: folds and models with one fault each.

Faults of single functions are in :mod:`~trinity_conformance.mutants.functions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.engine_fold import (
    AggregationFold,
    Contribution,
    FirstRowFold,
    Fold,
    PartialUpdateFold,
    Tuple,
)
from trinity_conformance.model.engine_model import FOLDS, EngineModel
from trinity_conformance.model.shapes import Group
from trinity_conformance.model.tables import Key, Row, Version
from trinity_conformance.model.values import Value
from trinity_conformance.mutants.engine_maintenance import ENGINE_MAINTENANCE
from trinity_conformance.mutants.tables import SortOrderIgnored

# -- sequence groups ------------------------------------------------------------------------------------


class TieRefused(PartialUpdateFold):
    """A row of the same sequence as its group is refused (against G4)."""

    def accepts(self, group: Group, sequence: Tuple) -> bool:
        return sequence > self.sequences[group]


class LateRowNotAggregated(PartialUpdateFold):
    """A function sees only rows that its group accepts (against A1)."""

    def add_to_group(self, group: Group, version: Version) -> None:
        if self.accepts(group, self.sequence_of(group, version)):
            super().add_to_group(group, version)


class NullGroupTakesPart(PartialUpdateFold):
    """A row whose sequence is all NULL takes part in its group (against G2)."""

    def takes_part(self, group: Group, sequence: Tuple) -> bool:
        return True


class NullPartLeavesGroup(PartialUpdateFold):
    """A row with one part of its sequence NULL takes no part (against G3)."""

    def takes_part(self, group: Group, sequence: Tuple) -> bool:
        return (0,) not in sequence


class NullPartLargest(PartialUpdateFold):
    """A NULL part of a sequence is the largest (against G3)."""

    def accepts(self, group: Group, sequence: Tuple) -> bool:
        if self.sequences[group] == self.blank(group):
            return True
        return [part or (9,) for part in self.raised(sequence)] >= self.raised(self.sequences[group])

    def raised(self, sequence: Tuple) -> list[tuple[Any, ...]]:
        """Return the sequence with NULL after all values."""
        return [(9,) if part == (0,) else part for part in sequence]


class FirstPartDecides(PartialUpdateFold):
    """A composite sequence counts by its first column only (against G1)."""

    def accepts(self, group: Group, sequence: Tuple) -> bool:
        return sequence[0] >= self.sequences[group][0]


class ProtectedKeepsValue(PartialUpdateFold):
    """NULL does not overwrite a protected column (against G4)."""

    def add_to_group(self, group: Group, version: Version) -> None:
        before = dict(self.values)
        super().add_to_group(group, version)
        self.values |= {c: before[c] for c in group.columns if self.values[c] is None}


class SequenceGoesBack(PartialUpdateFold):
    """A late row sets the sequence of its group (against G5)."""

    def advance(self, group: Group, sequence: Tuple, version: Version) -> None:
        super().advance(group, sequence, version)
        self.sequences[group] = sequence
        self.values |= {name: version.row[name] for name in group.sequence}


class GroupsTogether(PartialUpdateFold):
    """A row that is late in one group changes none (against G6)."""

    def add(self, version: Version) -> None:
        sequences = {g: self.sequence_of(g, version) for g in self.shape.groups}
        late = any(self.takes_part(g, s) and not self.accepts(g, s) for g, s in sequences.items())
        if not late or not self.visible:
            super().add(version)


class NullOverwrites(PartialUpdateFold):
    """NULL overwrites columns outside groups (against P1)."""

    def carries(self, version: Version, name: str) -> bool:
        return version.names(name)


class OmittedIsNull(PartialUpdateFold):
    """A column that a row omits is NULL in the row (against P1)."""

    def add(self, version: Version) -> None:
        super().add(version if version.assigned else Version(version.row))


class UpdateSkipsNull(PartialUpdateFold):
    """SET to NULL in an UPDATE changes nothing (against P1)."""

    def carries(self, version: Version, name: str) -> bool:
        return version.names(name) and version.row[name] is not None


class FunctionsByArrival(PartialUpdateFold):
    """Functions see rows in the order in which they are folded, whatever their group's sequence (against A2)."""

    def ordered(self, given: list[Contribution]) -> list[Contribution]:
        return given


# -- deletes --------------------------------------------------------------------------------------------


class RetractIgnored(PartialUpdateFold):
    """-U and -D do nothing in groups (against D4)."""

    def retract(self, version: Version) -> None:
        return


class RetractOnlyWhenAccepted(PartialUpdateFold):
    """A late retract is not taken from functions (against D4)."""

    def retract_from_group(self, group: Group, sequence: Tuple, version: Version) -> None:
        if self.accepts(group, sequence):
            super().retract_from_group(group, sequence, version)


class RetractKeepsSequence(PartialUpdateFold):
    """A retract does not set the sequence (against D4)."""

    def advance(self, group: Group, sequence: Tuple, version: Version) -> None:
        if not self.is_retract(version):
            super().advance(group, sequence, version)


class RetractBlanksRow(PartialUpdateFold):
    """A retract that a group accepts blanks columns outside groups too (against D4)."""

    def retract(self, version: Version) -> None:
        super().retract(version)
        outside = [n for n in self.shape.names if n.startswith(("p", "v"))]
        self.values |= dict.fromkeys(outside)


class RetractShowsRow(PartialUpdateFold):
    """A retract alone makes a row (against D6)."""

    def retract(self, version: Version) -> None:
        super().retract(version)
        self.visible = True


class ThresholdForgotten(PartialUpdateFold):
    """After a delete by a sequence group any add revives (against D5)."""

    def revives(self, version: Version) -> bool:
        return True


class ThresholdNotRaised(PartialUpdateFold):
    """A later delete of a deleted row does not raise the threshold (against D5)."""

    def raise_thresholds(self, version: Version) -> None:
        return


class LateDeleteRemoves(PartialUpdateFold):
    """A -D by a sequence group deletes whatever its sequence (against D5)."""

    def deletes_by_group(self, version: Version) -> bool:
        stored = self.sequences
        self.sequences = {g: self.blank(g) if g in self.listed() else stored[g] for g in self.shape.groups}
        deleted = super().deletes_by_group(version)
        self.sequences = self.sequences if deleted else stored
        return deleted


class RevivesWithOldValues(PartialUpdateFold):
    """A row comes back with the values that it had (against D3, D5)."""

    def cut(self) -> None:
        before = dict(self.values)
        super().cut()
        self.values |= {name: value for name, value in before.items() if name.startswith(("p", "a"))}


class UpdateBeforeDeletes(Fold):
    """A -U deletes the row under remove-record-on-delete (against D3)."""

    def removes_row(self, version: Version) -> bool:
        return version.deleted or (self.shape.remove_on_delete and self.is_retract(version))


class HardDeleteIgnored(Fold):
    """ignore-delete drops writers' deletes too (against M11)."""

    def passes(self, version: Version) -> bool:
        return super().passes(version) and not version.deleted

    def removes_row(self, version: Version) -> bool:
        return super().removes_row(version) and not (version.deleted and self.shape.ignore_delete)


class RetractsCounted(Fold):
    """ignore-delete has no effect (against D1)."""

    def kind_of(self, version: Version) -> str:
        return "+I" if self.shape.ignore_delete else super().kind_of(version)


class IgnoreRetractIgnored(Fold):
    """ignore-retract has no effect on functions that can retract (against D4)."""

    def contribute(self, name: str, verb: str, value: Value, *order: Any) -> None:
        if verb == "retract" and self.function(name).retracts:
            self.contributions[name].append(Contribution((*order, self.position), verb, value))
        else:
            super().contribute(name, verb, value, *order)


# -- aggregation and first-row --------------------------------------------------------------------------


class RetractsAdd(AggregationFold):
    """A retract is added instead of taken back (against E1)."""

    def contribute(self, name: str, verb: str, value: Value, *order: Any) -> None:
        super().contribute(name, "add" if verb == "retract" else verb, value, *order)


class SequenceOfAddsOnly(AggregationFold):
    """sequence.field shows that of the last add, not of the last row (against E1)."""

    def take(self, version: Version) -> None:
        before = {name: self.values[name] for name in self.shape.watermark}
        super().take(version)
        if self.is_retract(version):
            self.values |= before


class LastRow(FirstRowFold):
    """first-row shows the last row (against E2)."""

    def take(self, version: Version) -> None:
        self.visible = False
        super().take(version)
        self.visible = True


class NewestValueFirst(FirstRowFold):
    """NULLs of the first row are filled from later ones (against E2)."""

    def take(self, version: Version) -> None:
        if self.visible and not self.is_ignored(version):
            self.values = {n: version.row[n] if v is None else v for n, v in self.values.items()}
        super().take(version)


# -- models ---------------------------------------------------------------------------------------------


class DescendingIgnored(SortOrderIgnored, EngineModel):
    """sequence.field.sort-order has no effect (against U8)."""


class SequenceFieldIgnored(EngineModel):
    """Rows fold in arrival order whatever their sequence.field (against the fold order of partial-update)."""

    def fold_order(self, versions: list[Version]) -> list[Version]:
        return versions


class DeleteForgetsSequence(EngineModel):
    """A writer's delete takes its place in fold order without the row's sequence.field (against M11)."""

    def _delete(self, rows: list[Row]) -> int:
        return super()._delete([{n: None if n in self.shape.watermark else v for n, v in r.items()} for r in rows])


class FilteredBelowFold(EngineModel):
    """Any predicate goes below the fold (against L9)."""

    def query(self, condition: Condition) -> dict[Key, Row]:
        other = type(self)(self.shape)
        other.commits = [[v for v in c if condition.holds(self.shape, v.row)] for c in self.commits]
        return other.merged()


def _folding(fault: type[Fold]) -> type[EngineModel]:
    """Return a model that folds with a fault, in every engine that has that fold."""
    folds: dict[str, type[Fold]] = {}
    for engine, fold in FOLDS.items():
        if issubclass(fault, fold):
            folds[engine] = fault
        elif not issubclass(fault, tuple(FOLDS.values())):
            folds[engine] = type(fault.__name__, (fault, fold), {})
    return type(fault.__name__, (EngineModel,), {"__doc__": fault.__doc__, "folds": {**FOLDS, **folds}})


_FOLDS: Final[tuple[type[Fold], ...]] = (
    TieRefused, LateRowNotAggregated, NullGroupTakesPart, NullPartLeavesGroup, NullPartLargest, FirstPartDecides,
    ProtectedKeepsValue, SequenceGoesBack, GroupsTogether, NullOverwrites, OmittedIsNull, UpdateSkipsNull,
    FunctionsByArrival, RetractIgnored, RetractOnlyWhenAccepted, RetractKeepsSequence, RetractBlanksRow,
    RetractShowsRow, ThresholdForgotten, ThresholdNotRaised, LateDeleteRemoves, RevivesWithOldValues,
    UpdateBeforeDeletes, HardDeleteIgnored, RetractsCounted, IgnoreRetractIgnored, RetractsAdd, SequenceOfAddsOnly,
    LastRow, NewestValueFirst,
)  # fmt: skip
_MODELS: Final[tuple[type[EngineModel], ...]] = (
    DescendingIgnored, SequenceFieldIgnored, *ENGINE_MAINTENANCE, DeleteForgetsSequence, FilteredBelowFold,
)  # fmt: skip

ENGINE_MUTANTS: Final[Mapping[str, type[EngineModel]]] = {c.__name__: c for c in (*map(_folding, _FOLDS), *_MODELS)}
"""Name -> a model with one fault; its docstring names the rule that it breaks."""
