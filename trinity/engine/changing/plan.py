"""The plan of a row-changing statement, chosen once: what it reads, what its cases may do to keys and columns.

The plan is executed by Spark (:mod:`trinity.engine.changing.spark`), or by this process without Spark
(:mod:`trinity.engine.changing.local`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from trinity.engine.changing.engine_rules import touched_groups
from trinity.engine.changing.source import SourceStatistics
from trinity.engine.program import Case, Fields, Program, Value, When, text_of
from trinity.engine.reading.files import prune
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.predicate import Predicate
from trinity.errors import TrinityError, ignoring
from trinity.merge.spec import MergeSpec, SequenceGroup, merge_spec
from trinity.messages import shown_row
from trinity.names import split_name
from trinity.predicates.conditions import ConditionFacts, partition_columns, same_expression
from trinity.spi import Column, DataFile, MergeTableHandle, Operation, ReadScope, SplitSource, TableDefinition
from trinity.syntax.sql_text import tree_of


def update_case_columns(program: Program) -> dict[int, tuple[str, ...]]:
    """Return case number -> columns that the UPDATE case sets (S5)."""
    return {
        number: tuple(case.values or ())
        for number, case in enumerate(program.cases)
        if case.operation is Operation.UPDATE
    }


@dataclass(frozen=True)
class Equality:
    """The value that ON requires of a target column, as an expression over the source.

    Attributes:
        stored: True when assigning the expression to the column stores the very value that ON compares.
        same: True when column and expression have one type, so that nothing is converted.
    """

    expression: exp.Expr
    stored: bool
    same: bool


@dataclass(frozen=True)
class StatementPlan:
    """The plan of a statement: what it reads of its target, and what its cases may do there.

    Attributes:
        table: the target's name, for messages.
        program: the statement, spelled out.
        splits: the version of the target that is read.
        merge: what ``begin_merge`` returned.
        facts: what ON, or the WHERE of a statement without source, says about matching rows of the target.
        source: what is known about the source.
        equalities: column -> the value that ON requires; empty when ON has other conditions, too.
    """

    table: str
    program: Program
    splits: SplitSource
    merge: MergeTableHandle
    facts: ConditionFacts
    source: SourceStatistics = field(default_factory=SourceStatistics)
    equalities: Mapping[str, Equality] = field(default_factory=dict)

    def of_source(self, source: SourceStatistics, equalities: Mapping[str, Equality]) -> StatementPlan:
        """Return the plan with facts about the source, and the equalities of ON whose values are known."""
        return replace(self, source=source, equalities=equalities if self.facts.only_equalities else {})

    @property
    def definition(self) -> TableDefinition:
        """The definition of the pinned target, with the columns that the statement adds."""
        return self.merge.insert.definition

    @property
    def row_id(self) -> str:
        """The name of the row id column."""
        return self.merge.row_id

    @property
    def insert_layout(self) -> tuple[str, ...]:
        """Columns whose old values accompany deleted rows."""
        return self.merge.insert_layout

    @cached_property
    def spec(self) -> MergeSpec | None:
        """The merge options of a keyed target; None for a plain one."""
        return merge_spec(self.definition) if self.definition.keyed else None

    # -- what is read -------------------------------------------------------------------------------------

    @cached_property
    def needs_all_rows(self) -> bool:
        """True when every row of the target matters: some WHEN selects rows that no source row matches."""
        return any(case.when is When.NOT_MATCHED_BY_SOURCE for case in self.program.cases)

    @cached_property
    def files(self) -> list[DataFile]:
        """The files that may hold a row that the statement can touch."""
        if self.source.empty and not self.needs_all_rows:
            return []
        files = list(self.splits.files)
        if self.needs_all_rows:
            return files
        columns = [c.name for c in self.definition.visible]
        if self.definition.keyed:  # the fold needs every version of a key
            columns = list(self.definition.primary_key)
        files = prune(files, Predicate.of(self.definition, self.facts.where(columns)))
        within = ReadScope(bounds={k: b for k, b in self.source.bounds.items() if k in columns})
        return [f for f in files if within.concerns(f) and self.source.may_touch(f, columns)]

    @cached_property
    def scope(self) -> ReadScope:
        """The part of the target that the statement has read (L7)."""
        keyed = self.definition.keyed
        files = frozenset() if keyed else frozenset(f.path for f in self.files)
        target = self.merge.table
        again = any(read.same_place(target) for read in self.program.reads)
        if again or written_unique_keys(self.program):  # the target is read once more, in full
            return ReadScope(frozenset() if keyed else frozenset(f.path for f in self.splits.files))
        if self.needs_all_rows:
            return ReadScope(files)
        bounds = {**self.facts.bounds, **self.source.bounds}
        if keyed:
            bounds = {k: b for k, b in bounds.items() if k in self.definition.primary_key}
        if self.inserting_cases or self.key_changing_cases:  # keys that ON does not name were looked up
            bounds = {}
        return ReadScope(files, bounds)

    @cached_property
    def partition_columns(self) -> list[Column] | None:
        """The columns by whose values a DELETE of whole partitions of a plain table selects its files (M12).

        None for another statement, which goes row by row; empty for a DELETE of all rows.
        """
        case = self.program.cases[0]
        plain = self.program.source is None and not self.definition.keyed
        if not plain or case.operation is not Operation.DELETE:
            return None
        if case.condition is None:
            return []
        return partition_columns(tree_of(case.condition), self.definition, self.program.names, self.files)

    @cached_property
    def fold(self) -> FoldPlan:
        """The fold plan of a keyed target, to look up the rows stored under the keys that the statement writes."""
        return FoldPlan.of(self.splits, merge_spec(self.splits.definition))

    @property
    def may_collide(self) -> bool:
        """True when the statement may write keys that ON does not look up, and that may be live (M4, M7)."""
        return self.definition.keyed and bool(self.inserting_cases or self.key_changing_cases)

    @property
    def collision_columns(self) -> list[str]:
        """The columns by which a new row is compared with the one stored under its key; empty for a plain table."""
        return [] if self.spec is None else list(dict.fromkeys((*self.spec.key, *self.spec.ordering)))

    # -- what its cases do --------------------------------------------------------------------------------

    @cached_property
    def key_changing_cases(self) -> tuple[int, ...]:
        """Numbers of the UPDATE cases that may change the value of a key column (M7)."""
        return tuple(
            n for n, c in enumerate(self.program.cases) if c.operation is Operation.UPDATE and self._changes_key(c)
        )

    @cached_property
    def inserting_cases(self) -> tuple[int, ...]:
        """Numbers of the INSERT cases whose keys may be live already, since ON does not look for them (M4)."""
        return tuple(
            n for n, c in enumerate(self.program.cases) if c.operation is Operation.INSERT and self._collides(c)
        )

    def _changes_key(self, case: Case) -> bool:
        return any(k in (case.values or {}) and not self.leaves_key(case, k) for k in self.definition.primary_key)

    def leaves_key(self, case: Case, key: str) -> bool:
        """Return True when an UPDATE case sets a key column to the value that the column has."""
        value, equal = tree_of((case.values or {})[key]), self.equalities.get(key)
        own = exp.column(key, table=self.program.target_alias)
        return (equal is not None and same_expression(value, equal.expression)) or same_expression(value, own)

    def _collides(self, case: Case) -> bool:
        key, equal = self.definition.primary_key, self.equalities
        found = set(equal) == set(key) and all(
            equal[k].stored and same_expression(tree_of((case.values or {})[k]), equal[k].expression) for k in key
        )
        return bool(key) and not found

    @cached_property
    def deleting_cases(self) -> tuple[int, ...]:
        """Numbers of the cases that may leave a key without a row: its tombstone keeps the other columns (U5)."""
        return (
            tuple(n for n, c in enumerate(self.program.cases) if c.operation is Operation.DELETE)
            + self.key_changing_cases
        )

    @cached_property
    def row_id_columns(self) -> tuple[list[str], list[str]]:
        """Row id columns of a keyed target: those set for every row, and those set only for deleted rows."""
        spec = self.spec
        assert spec is not None
        sequences = [c for g in spec.groups for c in g.sequence]
        ordered = list(dict.fromkeys((*spec.key, *spec.ordering, *sequences)))
        if not self.deleting_cases:
            return ordered, []
        # a deletion in a table that folds by column stores only the columns that are NOT NULL
        kept = [c for c in self.definition.visible if not (spec.by_column and c.nullable)]
        return ordered, [c.name for c in kept if c.name not in ordered]

    def clause(self, number: int) -> str:
        """Return a case's name, for messages."""
        if self.program.statement != "MERGE":
            return f"the {self.program.statement}"
        return f"case {number} (WHEN {self.program.cases[number].when.value})"

    def may_lose(self, case: Case) -> bool:
        """Return True when an UPDATE case sets ordering columns, unless a MERGE takes them from its source."""
        spec = self.spec
        if spec is None or case.operation is not Operation.UPDATE or self._changes_key(case):
            return False  # a move is checked against the winner of its new key
        given = [value for name, value in (case.values or {}).items() if name in spec.ordering]
        return bool(given) and not (self.program.statement == "MERGE" and all(map(self.from_source, given)))

    def refused_groups(self, case: Case) -> list[SequenceGroup]:
        """Return the sequence groups for which an UPDATE case is refused where it would have no effect (M9, M11).

        Groups whose sequence comes from the source of a MERGE are left out: late rows of a source lose silently.
        """
        if self.spec is None or case.operation is not Operation.UPDATE:
            return []
        values = case.values or {}
        return [g for g in touched_groups(self.spec, values) if not self._takes(values, g.sequence)]

    def _takes(self, values: Mapping[str, Value], columns: Sequence[str]) -> bool:
        """Return True when values set some of these columns, and each to a column of the source."""
        given = [values[name] for name in columns if name in values]
        return bool(given) and all(map(self.from_source, given))

    def from_source(self, value: Value) -> bool:
        """Return True when a value is a column of the source, and nothing else."""
        if isinstance(value, Fields):
            return False
        with ignoring("INVALID_ARGUMENTS"):
            parts = [part.lower() for part in split_name(text_of(value))]
            known = [column.lower() for column in self.program.source_columns]
            return len(parts) == 2 and parts[0] == self.program.source_alias.lower() and parts[1] in known
        return False

    def loses_error(self) -> TrinityError:
        """Return the error for a version that would lose to the stored winner."""
        ordering = ", ".join(self.spec.ordering) if self.spec else ""
        return TrinityError(
            "INVALID_ARGUMENTS",
            f"{self.program.statement} of table '{self.table}' would write a row that loses to the one stored under "
            f"its key, whose ({ordering}) is larger (M9). SET ({ordering}) to a larger value.",
        )

    def key_exists_error(self, key: Sequence[object]) -> TrinityError:
        """Return the error for a row under a key that is live, and that the statement does not vacate (M4)."""
        return TrinityError(
            "CONSTRAINT_VIOLATION",
            f"{self.program.statement} of table '{self.table}' would write a row under a primary key that is live "
            f"already ({shown_row(self.definition.primary_key, key)}); update that row, or delete it in the same "
            "statement (M4).",
        )

    def duplicate_unique_error(self, columns: Sequence[str], values: Sequence[object]) -> TrinityError:
        """Return the error for two live rows with one value of a unique key."""
        return TrinityError(
            "CONSTRAINT_VIOLATION",
            f"{self.program.statement} of table '{self.table}' would leave two rows with one value of the unique key "
            f"({', '.join(columns)}): {shown_row(columns, values)}.",
        )

    # -- EXPLAIN ------------------------------------------------------------------------------------------

    def described(self) -> str:
        """Return paradigm, layouts, join and cases, as text."""
        program, merge = self.program, self.merge
        lines = [
            f"{program.statement} {self.table} AS {program.target_alias} at version {merge.table.version}",
            f"row change paradigm: {merge.paradigm.value}",
            f"row id: {self.row_id} ({', '.join(self.definition.primary_key or ('file', 'pos'))})",
            f"insert layout: {', '.join(self.insert_layout) or 'none'}",
            f"update layout: {', '.join(merge.update_layout)}",
            f"files: {len(self.files)} of {len(self.splits.files)}",
        ]
        if program.source is not None:
            lines.append(f"join: {program.target_alias} RIGHT JOIN {program.source_alias} ON {program.on}")
        return "\n".join([*lines, *_clauses(program)])


def written_unique_keys(program: Program) -> list[tuple[str, ...]]:
    """Return the unique keys whose values a statement may write."""
    inserts = any(case.operation is Operation.INSERT for case in program.cases)
    assigned = {name.lower() for case in program.cases for name in case.values or ()}
    return [columns for columns in program.unique if inserts or any(c.lower() in assigned for c in columns)]


def _clauses(program: Program) -> Sequence[str]:
    return [
        f"case {n}: WHEN {c.when.value}"
        + (f" AND {c.condition}" if c.condition is not None else "")
        + f" THEN {c.operation.name if c.operation else 'DO NOTHING'}"
        + (f" {', '.join(c.values)}" if c.values else "")
        for n, c in enumerate(program.cases)
    ]
