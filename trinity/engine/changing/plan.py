"""The meaning of a row-changing statement, by its text alone: what its cases may do to keys, ordering and columns.

What executes it is Spark (:mod:`trinity.engine.changing.spark`), or this process without Spark
(:mod:`trinity.engine.changing.local`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from trinity.engine.changing.engine_rules import omitted_value, touched_groups
from trinity.engine.changing.fields import AssignedField, assigned_values, resolve_field
from trinity.engine.program import Case, Expression, Fields, Program, Value, with_texts
from trinity.errors import TrinityError
from trinity.merge.spec import MergeSpec, SequenceGroup, merge_spec
from trinity.messages import shown_row
from trinity.names import split_name
from trinity.predicates.conditions import same_expression
from trinity.spi import Operation, TableDefinition
from trinity.syntax.operands import with_plain_comparisons
from trinity.syntax.quoting import quoted
from trinity.syntax.sql_text import tree_of
from trinity.syntax.three_valued import Use, three_valued_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def expanded(program: Program, definition: TableDefinition, spark: Callable[[], SparkSession]) -> Program:
    """Return the program with UPDATE SET * and INSERT * spelled out, and an INSERT's missing columns filled by DEFAULT.

    Predicates on subqueries are spelled out where Spark would lose their NULL.

    Raises:
        TrinityError: COLUMN_NOT_FOUND when the source lacks a column that ``*`` needs, or a case names one that the
            target lacks; NOT_SUPPORTED as :func:`three_valued_text`, and for a DEFAULT that is no constant (N2).
    """
    cases = tuple(_expanded(case, program, definition, spark) for case in program.cases)
    return replace(program, cases=cases, on=_spelled_out(program.on, Use.JOIN))


def _spelled_out(expression: Expression | None, use: Use) -> Expression | None:
    return with_plain_comparisons(three_valued_text(expression, use)) if isinstance(expression, str) else expression


def _expanded(case: Case, program: Program, definition: TableDefinition, spark: Callable[[], SparkSession]) -> Case:
    case = replace(case, condition=_spelled_out(case.condition, Use.FILTER))
    if case.operation not in (Operation.UPDATE, Operation.INSERT):
        return case
    given = _star(program, definition) if case.values is None else _under_own_names(case.values, program, definition)
    if case.operation is Operation.INSERT:
        omitted: dict[str, Value] = {
            c.name: omitted_value(definition, c, spark) for c in definition.visible if c.name not in given
        }
        given = {c.name: {**omitted, **given}[c.name] for c in definition.visible}
    if case.operation is Operation.INSERT and any(isinstance(value, Fields) for value in given.values()):
        raise TrinityError(
            "NOT_SUPPORTED", f"INSERT into '{definition.full_name}' fills whole columns; give structs as a whole."
        )
    texts = {name: with_texts(value, lambda text: three_valued_text(text, Use.VALUE)) for name, value in given.items()}
    return replace(case, values=texts)


def _under_own_names(values: Mapping[str, Value], program: Program, definition: TableDefinition) -> dict[str, Value]:
    """Return values by the table's own names; a dotted name is a column qualified by the alias, or a field."""
    columns = {c.name.lower(): c for c in definition.visible}
    found, others = dict[str, Value](), list[tuple[AssignedField, Expression]]()
    for given, value in values.items():
        if isinstance(value, Fields):
            found[given] = value
        elif given.lower() in columns:
            others.append((AssignedField(columns[given.lower()]), value))
        else:
            parts = split_name(given) if _DOTTED.fullmatch(given) else [given]
            others.append(
                (resolve_field(parts, columns, {(program.target_alias.lower(),)}, definition.full_name), value)
            )
    return {**found, **assigned_values(others, f"{program.statement} of '{definition.full_name}'")}


_DOTTED: Final = re.compile(r"(?:`(?:[^`]|``)+`|\w+)(?:\.(?:`(?:[^`]|``)+`|\w+))*")
"""Names as SQL has them, with their backticks."""


def _star(program: Program, definition: TableDefinition) -> dict[str, Value]:
    assert program.source is not None
    given = {name.lower(): name for name in program.source_columns}
    missing = [c.name for c in definition.visible if c.name.lower() not in given]
    if missing and not program.evolves:
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"{program.statement} with * takes every column of '{definition.full_name}' from the source, which lacks "
            f"{', '.join(missing)}; name the columns instead.",
        )
    alias = quoted(program.source_alias)
    taken = (c.name for c in definition.visible if c.name not in missing)
    return {name: f"{alias}.{quoted(given[name.lower()])}" for name in taken}


def update_case_columns(program: Program) -> dict[int, tuple[str, ...]]:
    """Return case number -> columns that the UPDATE case sets (S5)."""
    return {
        number: tuple(case.values or ())
        for number, case in enumerate(program.cases)
        if case.operation is Operation.UPDATE
    }


@dataclass(frozen=True)
class Equality:
    """The value that ON says a target column equals, as an expression over the source.

    Attributes:
        stored: True when assigning the expression to the column stores the very value that ON compares.
        same: True when both have one type, so that nothing is converted.
    """

    expression: exp.Expr
    stored: bool
    same: bool


@dataclass(frozen=True)
class StatementPlan:
    """A statement over the rows of its target.

    Attributes:
        layout: columns whose old values accompany deleted rows.
        equalities: column -> the value that ON requires; empty when ON has other conditions, too.
    """

    table: str
    definition: TableDefinition
    program: Program
    row_id: str
    layout: tuple[str, ...]
    equalities: Mapping[str, Equality]

    @cached_property
    def spec(self) -> MergeSpec | None:
        """Merge options of a keyed target."""
        return merge_spec(self.definition) if self.definition.keyed else None

    @cached_property
    def key_changing_cases(self) -> tuple[int, ...]:
        """Numbers of the UPDATE cases that may change the value of a key column (M7)."""
        return tuple(n for n, c in enumerate(self.program.cases) if c.operation is Operation.UPDATE and self._moves(c))

    @cached_property
    def inserting_cases(self) -> tuple[int, ...]:
        """Numbers of the INSERT cases whose keys may be live already, since ON does not look for them (M4)."""
        return tuple(
            n for n, c in enumerate(self.program.cases) if c.operation is Operation.INSERT and self._collides(c)
        )

    def _moves(self, case: Case) -> bool:
        return any(k in (case.values or {}) and not self.leaves_key(case, k) for k in self.definition.primary_key)

    def leaves_key(self, case: Case, key: str) -> bool:
        """Return True when the value that an UPDATE case sets a key column to is the one that it has."""
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
        # a hard delete keeps nothing but what its columns must have
        kept = [c for c in self.definition.visible if not (spec.by_column and c.nullable)]
        return ordered, [c.name for c in kept if c.name not in ordered]

    def clause(self, number: int) -> str:
        """Return a case's name, for messages."""
        if self.program.statement != "MERGE":
            return f"the {self.program.statement}"
        return f"case {number} (WHEN {self.program.cases[number].when.value})"

    def may_lose(self, case: Case) -> bool:
        """Return True when an UPDATE case sets the ordering, and not from the source of a MERGE, as an upsert does."""
        spec = self.spec
        if spec is None or case.operation is not Operation.UPDATE or self._moves(case):
            return False  # a move is checked against the winner of its new key
        given = [value for name, value in (case.values or {}).items() if name in spec.ordering]
        return bool(given) and not (self.program.statement == "MERGE" and all(map(self.from_source, given)))

    def refused_groups(self, case: Case) -> list[SequenceGroup]:
        """Return the sequence groups of which an UPDATE case is refused where it would change nothing (M9, M11).

        Those whose sequence comes from the source of a MERGE are none of them: its late rows lose silently.
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
        text = value if isinstance(value, str) else str(value).removeprefix("Column<'").removesuffix("'>")
        qualifier, _, name = text.replace("`", "").rpartition(".")
        columns = [c.lower() for c in self.program.source_columns]
        return name.lower() in columns and qualifier.lower() == self.program.source_alias.lower()

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


def written_unique_keys(program: Program) -> list[tuple[str, ...]]:
    """Return the unique keys whose values a statement may write."""
    inserts = any(case.operation is Operation.INSERT for case in program.cases)
    assigned = {name.lower() for case in program.cases for name in case.values or ()}
    return [columns for columns in program.unique if inserts or any(c.lower() in assigned for c in columns)]


def clauses(program: Program) -> Sequence[str]:
    """Return the cases as EXPLAIN shows them."""
    return [
        f"case {n}: WHEN {c.when.value}"
        + (f" AND {c.condition}" if c.condition is not None else "")
        + f" THEN {c.operation.name if c.operation else 'DO NOTHING'}"
        + (f" {', '.join(c.values)}" if c.values else "")
        for n, c in enumerate(program.cases)
    ]
