"""MERGE, UPDATE and DELETE of a table in plain Python, written from the rules (M1-M9) and not from an engine.

A statement is joined row by row with its source, and its cases are tried in order. The selected rows become the rows of
a plain table, or one more commit of a keyed one. A statement that breaks a rule has no effect but its error code.

Where the rules leave a choice, this is the reading:

- several rules broken at once: the code of any of them;
- an INSERT of a MERGE is an upsert (M4): a late one loses silently, whatever its ordering columns are made of (M9);
- a key that the same statement deletes and inserts, late: the deletion stands, and the insertion loses;
- an UPDATE with NULL for a NOT NULL column: CONSTRAINT_VIOLATION, or INVALID_ARGUMENTS as in Trino;
- a row that several source rows of a DELETE USING select: either it is deleted once, as no value depends on the source
  row, or the statement is refused by the letter of M2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from trinity.errors import ErrorCode
from trinity_conformance.model.expressions import Expression, Rows
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import BY_SOURCE, MATCHED, NOT_MATCHED, Case, Statement, StatementSource
from trinity_conformance.model.tables import Key, Model, Row, Version

Joined: TypeAlias = tuple[str, "int | None", "int | None", Rows]
"""(kind of WHEN, number of the target row, number of the source row, both rows): a row of the join."""

_MULTIPLE: Final[tuple[ErrorCode, ...]] = ("MERGE_TARGET_ROW_MULTIPLE_MATCHES",)
_NULLS: Final[tuple[ErrorCode, ...]] = ("CONSTRAINT_VIOLATION", "INVALID_ARGUMENTS")
_RANGES: Final = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}


@dataclass(frozen=True)
class Counts:
    """Rows that a statement changed, by kind (M5)."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0

    @property
    def affected(self) -> int:
        """Number of all changed rows."""
        return self.updated + self.deleted + self.inserted


@dataclass(frozen=True)
class Fault:
    """The reason why a statement must be refused.

    Attributes:
        rule: id of the rule.
        codes: error codes, one of which is expected.
        why: the reason, for messages.
        sources: numbers of source rows without which the fault might be gone.
        targets: numbers of target rows without which the fault might be gone.
        optional: True when the statement may also succeed.
    """

    rule: str
    codes: tuple[ErrorCode, ...]
    why: str
    sources: frozenset[int] = frozenset()
    targets: frozenset[int] = frozenset()
    optional: bool = False

    @property
    def open(self) -> bool:
        """True when the rules do not determine the table's rows if it succeeds."""
        return self.optional and self.rule in ("M4", "M9")


@dataclass(frozen=True)
class Selected:
    """A row of the join that a case selects.

    Attributes:
        case: number of the case.
        action: UPDATE, DELETE or INSERT.
        target: number of the target row, or None.
        source: number of the source row, or None.
        old: the target row, or None.
        new: the row that replaces it, or None.
        upsert: True when its ordering columns are unchanged columns of the source (M9).
    """

    case: int
    action: str
    target: int | None
    source: int | None
    old: Row | None
    new: Row | None
    upsert: bool = False


@dataclass(frozen=True)
class Effect:
    """Effect of a statement on a table.

    Attributes:
        counts: rows by kind.
        faults: why it must be refused; empty if it succeeds.
        commit: row versions that it appends to a keyed table, or all rows of a plain table after it.
        saw: situations of :data:`~trinity_conformance.playing.coverage.SITUATIONS`.
        taken: keys whose older versions are no longer known afterwards.
    """

    counts: Counts
    faults: tuple[Fault, ...] = ()
    commit: tuple[Version, ...] = ()
    saw: frozenset[str] = frozenset()
    taken: frozenset[Key] = frozenset()

    @property
    def codes(self) -> frozenset[str]:
        """Error codes, one of which may be raised."""
        return frozenset(code for fault in self.faults for code in fault.codes)

    @property
    def refused(self) -> bool:
        """True when the statement must not succeed."""
        return any(not fault.optional for fault in self.faults)


@dataclass
class DmlModel(Model):
    """A keyed ``deduplicate`` table, or a plain one, each of whose commits is the whole bag of rows after it."""

    @property
    def plain(self) -> bool:
        """True for a table without a primary key."""
        return not self.shape.key

    def upsert(
        self, rows: Iterable[Any], txn: tuple[str, int] | None = None, names: tuple[str, ...] | None = None
    ) -> bool:
        done = super().upsert(rows, txn, names)
        if done and self.plain and len(self.commits) > 1:
            self.commits[-1] = [*self.commits[-2], *self.commits[-1]]
        return done

    def merged(self, commits: int | None = None) -> dict[Key, Row]:
        if not self.plain:
            return super().merged(commits)
        known = self.commits[:commits]
        return {(i,): version.row for i, version in enumerate(known[-1] if known else ())}

    def change(self, statement: Statement) -> Effect:
        """Run a statement; one that must be refused changes nothing."""
        effect = self.effect(statement)
        if not effect.refused:
            self.apply(effect)
        return effect

    def apply(self, effect: Effect) -> None:
        """Make the commit of an effect; none when no row is selected (M5)."""
        if effect.counts.affected:
            self.taken += [(len(self.commits), key) for key in effect.taken]
            self.commits.append(list(effect.commit))

    def effect(self, statement: Statement) -> Effect:
        """Return the effect that a statement would have now."""
        targets = list(self.merged().values())
        joined = list(self.join(statement, targets))
        selected, faults = self.select(statement, joined)
        faults += self.multiple_matches(statement, joined, selected)
        if statement.kind == "DELETE":
            selected = list({s.target: s for s in selected}.values())
        commit, more = self.plain_rows(targets, selected) if self.plain else self.versions(statement, selected)
        saw = _situations(statement, selected, joined) | {s for f in (*faults, *more) for s in (_REFUSED[f.rule],)}
        return Effect(self.count(selected), (*faults, *more), tuple(commit), frozenset(saw | self.fates(selected)))

    def effect_in_place(self, statement: Statement) -> Effect:
        """Return the effect of another engine's statement on stored rows, if these are the rows of the merged read."""
        if self.plain:
            return self.effect(statement)
        targets = list(self.merged().values())
        joined = list(self.join(statement, targets))
        selected, faults = self.select(statement, joined)
        faults += self.multiple_matches(statement, joined, selected)
        taken = frozenset(self.key_of(s.old) for s in selected if s.old)
        commit = tuple(Version(s.new) for s in selected if s.new)
        return Effect(self.count(selected), tuple(faults), commit, frozenset(), taken)

    # -- the join (M1) ----------------------------------------------------------------------------------

    def join(self, statement: Statement, targets: list[Row]) -> Iterable[Joined]:
        """Yield every row on which the cases are tried."""
        if statement.source is None:
            yield from ((MATCHED, n, None, {"t": row, "s": None}) for n, row in enumerate(targets))
            return
        sources, hit = _source_rows(statement.source, targets), set[int]()
        for number, source in enumerate(sources):
            matches = [n for n, t in enumerate(targets) if self.matches(statement.on, {"t": t, "s": source})]
            hit.update(matches)
            yield from ((MATCHED, n, number, {"t": targets[n], "s": source}) for n in matches)
            if not matches:
                yield NOT_MATCHED, None, number, {"t": None, "s": source}
        for number, target in enumerate(targets):
            if number not in hit:
                yield BY_SOURCE, number, None, {"t": target, "s": None}

    def matches(self, on: Expression | None, rows: Rows) -> bool:
        """Return whether two rows are joined."""
        return on is None or self.holds(on, rows)

    def holds(self, condition: Expression, rows: Rows) -> bool:
        """Return whether a condition is true; UNKNOWN is not."""
        return condition.holds(rows)

    # -- the cases (M1, M6) -----------------------------------------------------------------------------

    def case_of(self, statement: Statement, kind: str, rows: Rows) -> int | None:
        """Return the number of the first case that holds, or None."""
        for number, case in enumerate(statement.cases):
            if case.when == kind and (case.condition is None or self.holds(case.condition, rows)):
                return number
        return None

    def select(self, statement: Statement, joined: list[Joined]) -> tuple[list[Selected], list[Fault]]:
        """Return the rows that cases select, without DO NOTHING, and the faults of their values."""
        selected, faults = list[Selected](), list[Fault]()
        for kind, target, source, rows in joined:
            number = self.case_of(statement, kind, rows)
            if number is None or statement.cases[number].action == "DO NOTHING":
                continue
            case, old = statement.cases[number], dict(rows["t"]) if rows["t"] is not None else None
            new = None if case.action == "DELETE" else self.assigned(case, rows)
            upsert = statement.kind == "MERGE" and _takes_ordering(case, self.shape)
            selected.append(Selected(number, case.action, target, source, old, new, upsert))
            for rule, codes, why in self.wrong_values(statement, new):
                faults.append(Fault(rule, codes, why, *_of([selected[-1]])))
        if statement.deletes_matches:
            selected = list({n if s.target is None else ("t", s.target): s for n, s in enumerate(selected)}.values())
        return selected, faults

    def assigned(self, case: Case, rows: Rows) -> Row:
        """Return the new row; right-hand sides see old values, missing columns are NULL in an INSERT."""
        old = rows["t"] if case.action == "UPDATE" else None
        values = {name: e.value(rows) for name, e in case.sets(self.shape).items()}
        return {n: values.get(n, old[n] if old else None) for n in self.shape.names}

    def wrong_values(self, statement: Statement, row: Row | None) -> Iterable[tuple[str, tuple[ErrorCode, ...], str]]:
        """Yield the faults of values that their columns do not accept (M6, K1)."""
        for column in self.shape.columns if row else ():
            value = row[column.name] if row else None
            if value is None and (not column.nullable or column.name in self.shape.key):
                yield "M6", _NULLS[: 1 + (statement.kind == "UPDATE")], f"NULL in {column.name}"
            limit = _RANGES.get(column.type)
            if limit and value is not None and not -limit <= value < limit:
                yield "M6", ("NUMERIC_VALUE_OUT_OF_RANGE",), f"{value} in {column.name}"

    # -- duplicates and counts (M2, M5) -----------------------------------------------------------------

    def multiple_matches(self, statement: Statement, joined: list[Joined], selected: list[Selected]) -> list[Fault]:
        """Return faults for target rows that more than one source row selects."""
        by_target: dict[int, list[Selected]] = defaultdict(list)
        for row in selected:
            if row.target is not None:
                by_target[row.target].append(row)
        return [
            Fault("M2", _MULTIPLE, f"target row {rows[0].old}", *_of(rows[1:]), statement.kind == "DELETE")
            for rows in by_target.values()
            if len(rows) > 1
        ]

    def count(self, selected: list[Selected]) -> Counts:
        """Return the number of rows by kind."""
        found = Counter(row.action for row in selected)
        return Counts(found["UPDATE"], found["DELETE"], found["INSERT"])

    # -- plain tables (M3) ------------------------------------------------------------------------------

    def plain_rows(self, targets: list[Row], selected: list[Selected]) -> tuple[list[Version], list[Fault]]:
        """Return all rows after the statement."""
        gone = {row.target for row in selected}
        kept = [row for n, row in enumerate(targets) if n not in gone]
        return [Version(row) for row in (*kept, *(s.new for s in selected if s.new is not None))], []

    # -- keyed tables (M4, M7, M9, U5) ------------------------------------------------------------------

    def versions(self, statement: Statement, selected: list[Selected]) -> tuple[list[Version], list[Fault]]:
        """Return the row versions that the statement appends."""
        vacated = {self.key_of(s.old): s.old for s in selected if s.old and (not s.new or self.moves(s))}
        arriving: dict[Key, list[Selected]] = defaultdict(list)
        for row in selected:
            if row.new and None not in self.key_of(row.new):
                arriving[self.key_of(row.new)].append(row)
        winners = self.winners()
        faults = [*self.taken_keys(statement, arriving, vacated), *self.late(arriving, winners)]
        filled = {k for k, rows in arriving.items() if all(self.beats(r.new, winners.get(k)) for r in rows)}
        deletes = [Version(old, deleted=True) for key, old in vacated.items() if key not in filled]
        return [*deletes, *(Version(r.new) for rows in arriving.values() for r in rows if r.new)], faults

    def moves(self, row: Selected) -> bool:
        """Return whether an UPDATE changes the key (M7)."""
        return bool(row.old and row.new and self.key_of(row.old) != self.key_of(row.new))

    def beats(self, row: Row | None, winner: Version | None) -> bool:
        """Return whether a row that arrives now becomes the winner of its key (U1, K4)."""
        return row is not None and (winner is None or self.compare(row, winner.row) >= 0)

    def taken_keys(
        self, statement: Statement, arriving: Mapping[Key, list[Selected]], vacated: Mapping[Key, Row]
    ) -> list[Fault]:
        """Return faults for keys that are inserted or moved to twice, or that are live and stay (M4)."""
        live, faults = self.merged(), list[Fault]()
        optional = _is_upsert(statement, self.shape)
        for key, rows in arriving.items():
            coming = [r for r in rows if r.action == "INSERT" or self.moves(r)]
            if len(coming) > 1:
                why = f"key {key} comes {len(coming)} times"
                faults.append(Fault("M4", ("CONSTRAINT_VIOLATION",), why, *_of(coming[1:]), optional))
            elif coming and key in live and key not in vacated:
                faults.append(Fault("M4", ("CONSTRAINT_VIOLATION",), f"key {key} is live", *_of(coming), optional))
        return faults

    def late(self, arriving: Mapping[Key, list[Selected]], winners: Mapping[Key, Version]) -> list[Fault]:
        """Return faults for versions that would lose, though their statement requires that they are visible (M9)."""
        return [
            Fault("M9", ("INVALID_ARGUMENTS",), f"key {key} would lose to {winners[key].row}", *_of([row]))
            for key, rows in arriving.items()
            for row in rows
            if self.must_win(row) and not self.beats(row.new, winners.get(key))
        ]

    def must_win(self, row: Selected) -> bool:
        """Return whether a row is of an UPDATE, except the upsert of a MERGE in place (M9)."""
        return row.action == "UPDATE" and (self.moves(row) or not row.upsert)

    def fates(self, selected: list[Selected]) -> set[str]:
        """Return situations that only a keyed table has."""
        if self.plain:
            return set()
        winners, moved = self.winners(), [s for s in selected if self.moves(s)]
        left = {self.key_of(s.old) for s in (*moved, *(s for s in selected if not s.new)) if s.old}
        coming = [s for s in selected if s.new and (s.action == "INSERT" or self.moves(s))]
        late = [s for s in selected if s.new and not self.beats(s.new, winners.get(self.key_of(s.new)))]
        return {
            *(["key-move"] if moved else []),
            *(["vacated-and-filled"] if left & {self.key_of(s.new) for s in coming if s.new} else []),
            *(["late-under-vacated"] if left & {self.key_of(s.new) for s in late if s.new and s in coming} else []),
            *(["late-by-merge"] if any(s.action == "INSERT" or (s.upsert and not self.moves(s)) for s in late) else []),
        }


_REFUSED: Final = {
    "M2": "multiple-matches", "M4": "key-taken", "M6": "wrong-value", "M9": "refused-late", "M11": "refused-update",
}  # fmt: skip


def _of(rows: list[Selected]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the numbers of source rows, and of target rows."""
    return (
        frozenset(r.source for r in rows if r.source is not None),
        frozenset(r.target for r in rows if r.target is not None),
    )


def _source_rows(source: StatementSource, targets: list[Row]) -> list[Row]:
    if source.target:
        return [{c.name: row[c.name] for c in source.columns} for row in targets]
    shape = Shape(source.columns, ())
    return [shape.decode_row(row) for row in source.rows]


def _takes_ordering(case: Case, shape: Shape) -> bool:
    """Return whether all ordering columns are set to bare columns of the source (M9)."""
    sets = case.sets(shape) if case.action in ("UPDATE", "INSERT") else {}
    found = [sets.get(name) for name in shape.watermark]
    return bool(found) and all(e is not None and e.op == "column" and e.parts[0] == "s" for e in found)


def _is_upsert(statement: Statement, shape: Shape) -> bool:
    """Return whether ON is equality of all key columns with expressions that every INSERT writes (M4)."""
    on = statement.on
    parts = on.parts if on is not None and on.op == "and" else (on,)
    equal = {}
    for part in parts:
        if part is None or part.op != "=" or part.parts[0].op != "column" or part.parts[0].parts[0] != "t":
            return False
        equal[part.parts[0].parts[1]] = part.parts[1]
    inserts = [case.sets(shape) for case in statement.cases if case.action == "INSERT"]
    return set(equal) == set(shape.key) and all(equal == {k: i.get(k) for k in shape.key} for i in inserts)


def _situations(statement: Statement, selected: list[Selected], joined: list[Joined]) -> set[str]:
    chosen = {(s.target, s.source) for s in selected}
    kinds = {statement.cases[s.case].when for s in selected}
    matches = Counter(t for _, t, s, _ in joined if t is not None and s is not None)
    return {
        statement.kind.lower() + "-statement",
        *(["by-source"] if BY_SOURCE in kinds else []),
        *(["several-cases"] if len({s.case for s in selected}) > 1 else []),
        *(["unselected"] if any((t, s) not in chosen for _, t, s, _ in joined) else []),
        *(["nothing-selected"] if not selected else []),
        *(["several-matches"] if max(matches.values(), default=0) > 1 else []),
    }
