"""Proof that programs of statements find faults: models with wrong effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from trinity.errors import ErrorCode
from trinity_conformance.model.expressions import Expression, Rows
from trinity_conformance.model.programs import Counts, DmlModel, Effect, Fault, Joined, Selected
from trinity_conformance.model.statements import Case, Statement
from trinity_conformance.model.tables import Key, Row, Version


class LastWhenWins(DmlModel):
    """The last WHEN that holds wins (against M1)."""

    def case_of(self, statement: Statement, kind: str, rows: Rows) -> int | None:
        found = [n for n, case in enumerate(statement.cases) if case.when == kind]
        return next((n for n in reversed(found) if self.applies(statement.cases[n], rows)), None)

    def applies(self, case: Case, rows: Rows) -> bool:
        return case.condition is None or self.holds(case.condition, rows)


class UnknownIsTrue(DmlModel):
    """A condition that is UNKNOWN counts as true (against M1)."""

    def holds(self, condition: Expression, rows: Rows) -> bool:
        return condition.value(rows) is not False


class DoNothingFallsThrough(DmlModel):
    """DO NOTHING lets the WHENs after it have the row (against M1)."""

    def case_of(self, statement: Statement, kind: str, rows: Rows) -> int | None:
        idle = [replace(c, when="") if c.action == "DO NOTHING" else c for c in statement.cases]
        return super().case_of(replace(statement, cases=tuple(idle)), kind, rows)


class NewValuesSeen(DmlModel):
    """An assignment sees what the ones before it have set (against M1)."""

    def assigned(self, case: Case, rows: Rows) -> Row:
        old, new = rows["t"], super().assigned(case, rows)
        if case.action != "UPDATE" or old is None:
            return new
        row = dict(old)
        for name, value in case.sets(self.shape).items():
            row[name] = value.value({**rows, "t": row})
        return row


class StarsByPlace(DmlModel):
    """``SET *`` and ``INSERT *`` take the source's columns by place, where types allow it (against M10)."""

    def assigned(self, case: Case, rows: Rows) -> Row:
        new, theirs = super().assigned(case, rows), rows["s"]
        if case.values is not None or theirs is None:
            return new
        return {n: v if type(v) is type(new[n]) else new[n] for n, v in zip(new, theirs.values(), strict=False)}


class DuplicatesUnseen(DmlModel):
    """A row that several source rows select is changed by each of them (against M2)."""

    def multiple_matches(self, statement: Statement, joined: list[Joined], selected: list[Selected]) -> list[Fault]:
        return []


class DuplicatesPerCase(DmlModel):
    """A row that two cases select is no duplicate (against M2; Trino's plan)."""

    def multiple_matches(self, statement: Statement, joined: list[Joined], selected: list[Selected]) -> list[Fault]:
        cases = {row.case for row in selected}
        parts = [[row for row in selected if row.case == case] for case in cases]
        return [
            fault
            for part in parts
            for fault in super(DuplicatesPerCase, self).multiple_matches(statement, joined, part)
        ]


class UnselectedDuplicates(DmlModel):
    """Rows that no WHEN selects count as duplicates too (against M2; Trino's plan)."""

    def multiple_matches(self, statement: Statement, joined: list[Joined], selected: list[Selected]) -> list[Fault]:
        rows = [Selected(0, "", t, s, None, None) for _, t, s, _ in joined]
        return super().multiple_matches(statement, joined, rows)


class DuplicatesInsertedOnce(DmlModel):
    """Equal rows of the source are inserted once (against M3)."""

    def plain_rows(self, targets: list[Row], selected: list[Selected]) -> tuple[list[Version], list[Fault]]:
        inserted = {str(s.new): s for s in selected if s.action == "INSERT"}
        others = [s for s in selected if s.action != "INSERT"]
        return super().plain_rows(targets, [*others, *inserted.values()])


class TakenKeysAccepted(DmlModel):
    """A key that is live may be inserted and moved to (against M4)."""

    def taken_keys(
        self, statement: Statement, arriving: Mapping[Key, list[Selected]], vacated: Mapping[Key, Row]
    ) -> list[Fault]:
        return []


class VacatedKeysTaken(DmlModel):
    """A key that the statement vacates counts as taken (against M4)."""

    def taken_keys(
        self, statement: Statement, arriving: Mapping[Key, list[Selected]], vacated: Mapping[Key, Row]
    ) -> list[Fault]:
        return super().taken_keys(statement, arriving, {})


class UpdatesCountTwice(DmlModel):
    """An UPDATE of a key counts as a deleted and an inserted row (against M5)."""

    def count(self, selected: list[Selected]) -> Counts:
        found, moved = super().count(selected), sum(map(self.moves, selected))
        return Counts(found.updated - moved, found.deleted + moved, found.inserted + moved)


class IdleUpdatesUncounted(DmlModel):
    """An UPDATE that changes no value does not count (against M5)."""

    def count(self, selected: list[Selected]) -> Counts:
        return super().count([row for row in selected if row.old != row.new])


class EmptyCommits(DmlModel):
    """A statement that selects nothing makes a commit (against M5)."""

    def apply(self, effect: Effect) -> None:
        self.commits.append(list(effect.commit))


class RefusedAfterwards(DmlModel):
    """A statement is refused after its rows have been committed (against M2)."""

    def change(self, statement: Statement) -> Effect:
        effect = self.effect(statement)
        self.apply(effect)
        return effect


class WrongValuesStored(DmlModel):
    """NULL goes into NOT NULL columns (against M6)."""

    def wrong_values(self, statement: Statement, row: Row | None) -> Iterable[tuple[str, tuple[ErrorCode, ...], str]]:
        return (wrong for wrong in super().wrong_values(statement, row) if "CONSTRAINT_VIOLATION" not in wrong[1])


class DeleteHalfLost(DmlModel):
    """A row whose key is updated stays under its old key as well (against M7)."""

    def versions(self, statement: Statement, selected: list[Selected]) -> tuple[list[Version], list[Fault]]:
        lost = {self.key_of(s.old) for s in selected if s.old and self.moves(s)}
        found, faults = super().versions(statement, selected)
        return [v for v in found if not (v.deleted and self.key_of(v.row) in lost)], faults


class LateRowsFill(DmlModel):
    """A late row that comes under a key that the statement vacates keeps the old row there (against M7, M9)."""

    def versions(self, statement: Statement, selected: list[Selected]) -> tuple[list[Version], list[Fault]]:
        found, faults = super().versions(statement, selected)
        coming = {self.key_of(s.new) for s in selected if s.new}
        return [v for v in found if not (v.deleted and self.key_of(v.row) in coming)], faults


class FilledKeysDeleted(DmlModel):
    """The deletes of a statement come after its insertions (against M7)."""

    def versions(self, statement: Statement, selected: list[Selected]) -> tuple[list[Version], list[Fault]]:
        found, faults = super().versions(statement, selected)
        gone = [s.old for s in selected if s.old and (not s.new or self.moves(s))]
        return [*found, *(Version(row, deleted=True) for row in gone)], faults


class LateUpdatesAccepted(DmlModel):
    """An UPDATE may lose to the stored winner (against M9)."""

    def late(self, arriving: Mapping[Key, list[Selected]], winners: Mapping[Key, Version]) -> list[Fault]:
        return []


class LateUpsertsRefused(DmlModel):
    """A MERGE that takes the ordering columns from its source is refused when it is late (against M9)."""

    def must_win(self, row: Selected) -> bool:
        return row.action == "UPDATE"


class DeletesWithoutOrdering(DmlModel):
    """A tombstone has no watermark (against U5)."""

    def versions(self, statement: Statement, selected: list[Selected]) -> tuple[list[Version], list[Fault]]:
        blank = dict.fromkeys(self.shape.watermark)
        found, faults = super().versions(statement, selected)
        return [replace(v, row={**v.row, **blank}) if v.deleted else v for v in found], faults


DML_MUTANTS: Final[Mapping[str, type[DmlModel]]] = {c.__name__: c for c in (
    LastWhenWins, UnknownIsTrue, DoNothingFallsThrough, NewValuesSeen, StarsByPlace, DuplicatesUnseen,
    DuplicatesPerCase, UnselectedDuplicates, DuplicatesInsertedOnce, TakenKeysAccepted, VacatedKeysTaken,
    UpdatesCountTwice, IdleUpdatesUncounted, EmptyCommits, RefusedAfterwards, WrongValuesStored, DeleteHalfLost,
    LateRowsFill, FilledKeysDeleted, LateUpdatesAccepted, LateUpsertsRefused, DeletesWithoutOrdering,
)}  # fmt: skip
"""Name -> a model with one fault; its docstring names the rule that it breaks."""
