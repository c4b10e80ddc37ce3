"""The oracle of keyed tables of every merge engine: rows of a key in fold order, given to a fold.

Where the rules leave a choice, this is the reading:

- a writer's delete and an SQL DELETE are the same hard delete; its place in fold order is that of the row it deletes;
- an SQL UPDATE carries the columns that it sets, copies of the ordering columns, and of a group that it touches the
  sequence and every column without a function;
- an UPDATE loses (M9) when it sets ordering columns to something smaller than what the row reads. It may set none and
  still lose, to a retract that lies later in fold order than any add. The rules do not cover that, and such statements
  are not generated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cmp_to_key
from typing import Any, ClassVar, Final

from trinity_conformance.model.engine_fold import AggregationFold, FirstRowFold, Fold, PartialUpdateFold
from trinity_conformance.model.functions import OutOfRange
from trinity_conformance.model.programs import DmlModel, Effect, Fault, Selected
from trinity_conformance.model.shapes import DEDUPLICATE, Group, Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.tables import Key, Row, Version
from trinity_conformance.model.values import equal_form

FOLDS: Final[Mapping[str, type[Fold]]] = {
    "partial-update": PartialUpdateFold,
    "aggregation": AggregationFold,
    "first-row": FirstRowFold,
}
"""Merge engine -> its fold."""


class EngineModel(DmlModel):
    """A ``partial-update``, ``aggregation`` or ``first-row`` table."""

    folds: ClassVar[Mapping[str, type[Fold]]] = FOLDS

    # -- reads ------------------------------------------------------------------------------------------

    def merged(self, commits: int | None = None) -> dict[Key, Row]:
        found = {key: self.fold(versions) for key, versions in self.by_key(commits).items()}
        return {key: row for key, row in found.items() if row is not None}

    def by_key(self, commits: int | None = None) -> dict[Key, list[Version]]:
        """Return the row versions of each key, in arrival order."""
        found: dict[Key, list[Version]] = {}
        for version in self.arrivals(commits):
            found.setdefault(self.key_of(version.row), []).append(version)
        return found

    def fold(self, versions: list[Version]) -> Row | None:
        """Return the row of a key."""
        return self.new_fold().fold(self.fold_order(versions))

    def new_fold(self) -> Fold:
        """Return a fold without rows."""
        return self.folds[self.shape.engine](self.shape)

    def fold_order(self, versions: list[Version]) -> list[Version]:
        """Return row versions by arrival, or by (sequence.field, arrival): the sort is stable."""

        def fresher(one: Version, other: Version) -> int:
            return self.compare(one.row, other.row)

        return sorted(versions, key=cmp_to_key(fresher))

    def situations(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for versions in self.by_key().values():
            fold = self.new_fold()
            fold.fold(self.fold_order(versions))
            found.update(name for name, times in fold.situations.items() if times)
        return found

    def overflows(self, names: Iterable[str] | None = None, commits: int | None = None) -> dict[Key, set[str]]:
        wanted = set(names or self.shape.names)
        found = {k: {n for n in wanted if isinstance(r[n], OutOfRange)} for k, r in self.merged(commits).items()}
        return {key: columns for key, columns in found.items() if columns}

    # -- what the table refuses -------------------------------------------------------------------------

    def refusal(self, version: Version) -> str | None:
        """Return why the table must refuse an ingested row, or None (D2, D4, E2, P1)."""
        row, shape = version.row, self.shape
        for column in shape.columns:
            if not column.nullable and row[column.name] is None:
                return f"NULL in {column.name}"
        fold = self.new_fold()
        if not fold.is_retract(version) or shape.ignore_delete:
            return None
        if shape.engine == "first-row":
            return "first-row takes no retracts"
        if shape.remove_on_delete:
            return None
        if shape.engine == "partial-update" and not shape.groups:
            return "partial-update takes no retracts without a group or an option"
        names = [name for name in shape.names if self.is_retracted(fold, version, name)]
        return next((f"{n} cannot be retracted" for n in names if self.cannot_retract(fold, n, row[n])), None)

    def is_retracted(self, fold: Fold, version: Version, name: str) -> bool:
        """Return whether a retract reaches a column's function."""
        group = self.shape.group_of(name)
        if self.shape.function_of(name) is None:
            return False
        if group is None or not isinstance(fold, PartialUpdateFold):
            return True
        return fold.takes_part(group, fold.sequence_of(group, version))

    def cannot_retract(self, fold: Fold, name: str, value: Any) -> bool:
        """Return whether a column's function cannot take a value back, and has no ``ignore-retract``."""
        function = fold.function(name)
        return function.refuses(value) and not function.switch("ignore-retract")

    # -- statements (M9, M11) -----------------------------------------------------------------------

    def versions(self, statement: Statement, selected: list[Selected]) -> tuple[list[Version], list[Fault]]:
        """Return a hard delete for each row of a DELETE, and the carried columns for each of an UPDATE."""
        faults = self.unsupported(statement)
        if faults:
            return [], faults
        commit: list[Version] = []
        for row in selected:
            if row.old is None:
                raise ValueError("statements on tables of merge engines are UPDATE and DELETE")
            if row.new is None:
                commit.append(Version(row.old, deleted=True))
                continue
            names = frozenset(statement.cases[row.case].sets(self.shape))
            commit.append(Version(row.new, named=self.carried(names), assigned=True))
            faults += self.losing(row, commit[-1], names)
        return commit, faults

    def unsupported(self, statement: Statement) -> list[Fault]:
        """Return why these tables do not support a statement, whatever rows there are (M11)."""
        if self.shape.engine == "first-row":
            return [Fault("M11", ("NOT_SUPPORTED",), "first-row takes neither UPDATE nor DELETE")]
        if statement.kind == "DELETE":
            return []
        names = {n for case in statement.cases for n in case.sets(self.shape)}
        bad = sorted(n for n in names if self.shape.function_of(n) not in (None, "last_non_null_value"))
        return [Fault("M11", ("NOT_SUPPORTED",), f"{n} has a function") for n in bad]

    def carried(self, names: frozenset[str]) -> frozenset[str]:
        """Return the columns that an UPDATE of some columns carries (P1)."""
        found = {*names, *self.shape.watermark}
        for group in self.touched(names):
            found |= {*group.sequence, *(c for c in group.columns if self.shape.function_of(c) is None)}
        return frozenset(found)

    def touched(self, names: frozenset[str]) -> list[Group]:
        """Return the groups with a column that an UPDATE sets."""
        return [g for g in self.shape.groups if names & {*g.sequence, *g.columns}]

    def losing(self, row: Selected, version: Version, names: frozenset[str]) -> list[Fault]:
        """Return the reasons why an UPDATE of a row would not be visible (M9, M11)."""
        assert row.old is not None
        number = frozenset([row.target]) if row.target is not None else frozenset()
        for group in self.touched(names):
            old, new = (self.sequence(group, r) for r in (row.old, version.row))
            if all(part == (0,) for part in new):
                why = f"group {group.sequence} of {row.old} was never written, or would not be"
                return [Fault("M11", ("INVALID_ARGUMENTS",), why, targets=number)]
            if new < old:
                return [Fault("M9", ("INVALID_ARGUMENTS",), f"{row.old} has a later sequence", targets=number)]
        if self.compare(version.row, row.old) < 0:
            return [Fault("M9", ("INVALID_ARGUMENTS",), f"{row.old} is later", targets=number)]
        if not self.shows(version, names):
            return [Fault("M9", ("INVALID_ARGUMENTS",), f"{row.old} is open", targets=number, optional=True)]
        return []

    def sequence(self, group: Group, row: Row) -> tuple[Any, ...]:
        """Return a row's sequence in a group."""
        fold = PartialUpdateFold(self.shape)
        return fold.sequence_of(group, Version(row))

    def shows(self, version: Version, names: frozenset[str]) -> bool:
        """Return whether a version would be the last one of its key, and visible."""
        before = self.by_key()[self.key_of(version.row)]
        if self.fold_order([*before, version])[-1] is not version:
            return False
        after = self.fold([*before, version])
        kinds = {name: self.shape.type_of(name) for name in names}
        return after is not None and all(
            equal_form(kind, after[n]) == equal_form(kind, version.row[n]) for n, kind in kinds.items()
        )

    def fates(self, selected: list[Selected]) -> set[str]:
        """Return nothing: the folds report the situations of these tables."""
        return set()

    def effect(self, statement: Statement) -> Effect:
        effect = super().effect(statement)
        kind = f"{self.shape.engine} {statement.kind}"
        done = not effect.refused and effect.counts.affected > 0
        return replace(effect, saw=effect.saw | {kind}) if done else effect


def model_of(shape: Shape) -> DmlModel:
    """Return the model of a table."""
    return DmlModel(shape) if shape.engine == DEDUPLICATE else EngineModel(shape)
