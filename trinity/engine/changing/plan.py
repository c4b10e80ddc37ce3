"""The plan of a row-changing statement: target RIGHT JOIN source and one searched CASE (M1).

Its rows are the pages of a row-change processor (:mod:`trinity.engine.changing.processors`): the layout columns, the
row id, and the merge row of the first WHEN that holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from trinity.engine.changing.conditions import same_expression
from trinity.engine.changing.engine_rules import omitted_value, refusing_groups
from trinity.engine.changing.equalities import Equality
from trinity.engine.program import Case, Expression, Program, When
from trinity.engine.spark.texts import as_stored
from trinity.engine.spark.types import spark_type
from trinity.engine.values.assignment import assigned, check_boolean, types_of
from trinity.engine.values.check_constraints import checked_changes
from trinity.engine.writing.run_sinks import REFUSAL
from trinity.errors import TrinityError, nearest
from trinity.merge.parse import merge_spec
from trinity.merge.spec import MergeSpec
from trinity.merge.sql.fold import beats
from trinity.spark_names import Column, DataFrame, F
from trinity.spi import Column as TableColumn
from trinity.spi import Operation, TableDefinition
from trinity.syntax.operands import compared_alone
from trinity.syntax.quoting import quoted
from trinity.syntax.three_valued import Use, three_valued_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType as SparkType

__all__ = ["MERGE_ROW", "MergePlan", "clauses", "expanded", "update_case_columns"]

MERGE_ROW: Final = "_trinity_merge_row"
PRESENT: Final = "_trinity_present"
_SOURCE: Final = "_trinity_source"
_CASE: Final = "_trinity_case"

_JOINS: Final[Mapping[tuple[bool, bool], str]] = {
    (False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full",
}  # fmt: skip
"""(has NOT MATCHED, has NOT MATCHED BY SOURCE) -> the part of the RIGHT JOIN (or FULL) that some WHEN can select."""


def expanded(program: Program, definition: TableDefinition, spark: SparkSession) -> Program:
    """Return the program with UPDATE SET * and INSERT * spelled out, and an INSERT's missing columns filled by DEFAULT.

    Predicates on subqueries are spelled out where Spark would lose their NULL.

    Raises:
        TrinityError: COLUMN_NOT_FOUND when the source lacks a column that ``*`` needs, or a case names one that the
            target lacks; NOT_SUPPORTED as :func:`three_valued_text`, and for a DEFAULT that is no constant (N2).
    """
    cases = tuple(_expanded(case, program, definition, spark) for case in program.cases)
    return replace(program, cases=cases, on=_spelled_out(program.on, Use.JOIN))


def _spelled_out(expression: Expression | None, use: Use) -> Expression | None:
    return compared_alone(three_valued_text(expression, use)) if isinstance(expression, str) else expression


def _expanded(case: Case, program: Program, definition: TableDefinition, spark: SparkSession) -> Case:
    case = replace(case, condition=_spelled_out(case.condition, Use.FILTER))
    if case.operation not in (Operation.UPDATE, Operation.INSERT):
        return case
    given = _star(program, definition) if case.values is None else _named(case.values, definition)
    if case.operation is Operation.INSERT:
        omitted = {c.name: omitted_value(definition, c, spark) for c in definition.visible if c.name not in given}
        given = {c.name: {**omitted, **given}[c.name] for c in definition.visible}
    given = {name: three_valued_text(v, Use.VALUE) if isinstance(v, str) else v for name, v in given.items()}
    return replace(case, values=given)


def _named(values: Mapping[str, Expression], definition: TableDefinition) -> dict[str, Expression]:
    return {_column_named(name, definition): value for name, value in values.items()}


def _column_named(given: str, definition: TableDefinition) -> str:
    """Return a column's name as the table has it; backticks around a name are removed."""
    known = {c.name.lower(): c.name for c in definition.visible}
    plain = given[1:-1].replace("``", "`") if re.fullmatch("`(?:[^`]|``)+`", given) else given
    name = given if given.lower() in known else plain
    if name.lower() not in known:
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"Table '{definition.full_name}' has no column '{name}'.{nearest(name, list(known.values()))} "
            f"It has: {', '.join(known.values())}.",
        )
    return known[name.lower()]


def _star(program: Program, definition: TableDefinition) -> dict[str, Expression]:
    assert program.source is not None
    given = {name.lower(): name for name in program.source.columns}
    missing = [c.name for c in definition.visible if c.name.lower() not in given]
    if missing:
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"{program.statement} with * takes every column of '{definition.full_name}' from the source, which lacks "
            f"{', '.join(missing)}; name the columns instead.",
        )
    alias = quoted(program.source_alias)
    return {c.name: f"{alias}.{quoted(given[c.name.lower()])}" for c in definition.visible}


def update_case_columns(program: Program) -> dict[int, tuple[str, ...]]:
    """Return case number -> columns that the UPDATE case sets (S5)."""
    return {
        number: tuple(case.values or ())
        for number, case in enumerate(program.cases)
        if case.operation is Operation.UPDATE
    }


@dataclass(frozen=True)
class MergePlan:
    """The plan of a statement over the rows of its target.

    Attributes:
        table: full name, for messages.
        definition: the target.
        program: the statement, expanded.
        row_id: name of the row id column.
        layout: columns whose old values accompany deleted rows.
        equalities: column -> what it equals by ON, where that tells its value; empty where ON has other conditions too.
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
    def moving(self) -> tuple[int, ...]:
        """Numbers of the UPDATE cases that may set a key column to another value than it has (M7)."""
        return tuple(n for n, c in enumerate(self.program.cases) if c.operation is Operation.UPDATE and self._moves(c))

    @cached_property
    def inserting(self) -> tuple[int, ...]:
        """Numbers of the INSERT cases whose keys may be live already, since ON does not look for them (M4)."""
        return tuple(
            n for n, c in enumerate(self.program.cases) if c.operation is Operation.INSERT and self._collides(c)
        )

    def _moves(self, case: Case) -> bool:
        return any(k in (case.values or {}) and not self._unmoved(case, k) for k in self.definition.primary_key)

    def _unmoved(self, case: Case, key: str) -> bool:
        value = (case.values or {})[key]
        own = f"{quoted(self.program.target_alias)}.{quoted(key)}"
        equal = self.equalities.get(key)
        return (equal is not None and same_expression(value, equal.expression)) or same_expression(value, own)

    def _collides(self, case: Case) -> bool:
        key, equal = self.definition.primary_key, self.equalities
        found = set(equal) == set(key) and all(
            equal[k].stored and same_expression((case.values or {})[k], equal[k].expression) for k in key
        )
        return bool(key) and not found

    def changes(self, target: DataFrame) -> DataFrame:
        """Return the plan's rows: layout columns, row id, merge row, refusal. Not run yet.

        Args:
            target: the target's rows in logical columns, for a plain table with the row id.

        Raises:
            TrinityError: TYPE_MISMATCH; Spark's errors in the expressions are raised as they are.
        """
        joined = self._joined(target)
        selected = self._selected(joined)
        changes = self._refusing(selected.select(*self._layout(), self._row_id(), *self._merge_row(joined)))
        if self.definition.checks:
            changes = checked_changes(changes, MERGE_ROW, self.definition, self.table)
        return changes

    def upserted(self, number: int) -> DataFrame:
        """Return an INSERT case's rows, one per row of the source: the table's columns, and refusal. Not run yet."""
        assert self.program.source is not None
        source = self.program.source.alias(self.program.source_alias)
        row, errors = self._row_of(number, self.program.cases[number], source)
        refusal = F.coalesce(*errors) if errors else F.lit(None).cast("string")
        rows = source.select(row.alias(MERGE_ROW), refusal.alias(REFUSAL))
        if self.definition.checks:
            rows = checked_changes(rows, MERGE_ROW, self.definition, self.table)
        return rows.select(*[F.col(f"{MERGE_ROW}.{quoted(c.name)}") for c in self.definition.columns], REFUSAL)

    # -- the join -----------------------------------------------------------------------------------------

    def _joined(self, target: DataFrame) -> DataFrame:
        program = self.program
        left = target.withColumn(PRESENT, F.lit(True)).alias(program.target_alias)
        if program.source is None:
            return left
        right = program.source.withColumn(_SOURCE, F.lit(True)).alias(program.source_alias)
        kinds = {case.when for case in program.cases}
        how = _JOINS[When.NOT_MATCHED in kinds, When.NOT_MATCHED_BY_SOURCE in kinds]
        assert program.on is not None
        return left.join(right, _column(program.on), how)

    def _selected(self, joined: DataFrame) -> DataFrame:
        """Return the rows that some WHEN selects, with the number of the first that does."""
        conditions = [self._holds(case) for case in self.program.cases]
        given = {n: _column(c.condition) for n, c in enumerate(self.program.cases) if c.condition is not None}
        for place, kind in zip(given, types_of(joined, list(given.values())), strict=True):
            check_boolean(kind, f"The condition of {self._clause(place)}")
        if self.program.source is None:  # one case: its condition is the WHERE
            return joined.where(conditions[0]).withColumn(_CASE, F.lit(0))
        number: Column | None = None
        for place, (case, holds) in enumerate(zip(self.program.cases, conditions, strict=True)):
            found = F.lit(place if case.operation is not None else None).cast("int")
            number = F.when(holds, found) if number is None else number.when(holds, found)
        assert number is not None
        return joined.withColumn(_CASE, number).where(F.col(_CASE).isNotNull())

    def _holds(self, case: Case) -> Column:
        target, source = F.col(PRESENT).isNotNull(), F.col(_SOURCE).isNotNull()
        if self.program.source is None:
            return _column(case.condition) if case.condition is not None else F.lit(True)
        which = {
            When.MATCHED: target & source,
            When.NOT_MATCHED: ~target,
            When.NOT_MATCHED_BY_SOURCE: ~source,
        }[case.when]
        return which if case.condition is None else which & _column(case.condition)

    def _clause(self, number: int) -> str:
        if self.program.statement != "MERGE":
            return f"the {self.program.statement}"
        return f"case {number} (WHEN {self.program.cases[number].when.value})"

    # -- what the join's rows become ----------------------------------------------------------------------

    def _target(self, name: str) -> Column:
        return F.col(f"{quoted(self.program.target_alias)}.{quoted(name)}")

    def _layout(self) -> list[Column]:
        return [self._target(name).alias(f"_trinity_layout_{i}") for i, name in enumerate(self.layout)]

    def _row_id(self) -> Column:
        spec = self.spec
        if spec is None:
            return F.col(self.row_id)
        sequences = [c for g in spec.groups for c in g.sequence]
        ordered = dict.fromkeys((*spec.key, *spec.ordering, *sequences))
        fields = [self._target(name).alias(name) for name in ordered]
        dying = [n for n, c in enumerate(self.program.cases) if c.operation is Operation.DELETE] + list(self.moving)
        if dying:  # their tombstones keep the other columns too (U5)
            dies = F.col(_CASE).isin(dying)
            # a hard delete keeps nothing but what its columns must have
            kept = [c for c in self.definition.visible if not (spec.by_column and c.nullable)]
            others = [c.name for c in kept if c.name not in ordered]
            fields += [F.when(dies, self._target(name)).alias(name) for name in others]
        return F.when(F.col(PRESENT), F.struct(*fields)).alias(self.row_id)

    def _merge_row(self, joined: DataFrame) -> tuple[Column, Column]:
        """Return the searched CASE, and why the row is refused: the error as JSON, or NULL."""
        row = F.lit(None).cast(self._row_type())
        refusal = F.lit(None).cast("string")
        for number, case in enumerate(self.program.cases):
            if case.operation is None:
                continue
            made, errors = self._row_of(number, case, joined)
            is_case = F.col(_CASE) == number
            row = F.when(is_case, made).otherwise(row)
            if errors:
                refusal = F.when(is_case, F.coalesce(*errors)).otherwise(refusal)
        return row.alias(MERGE_ROW), refusal.alias(REFUSAL)

    def _row_of(self, number: int, case: Case, joined: DataFrame) -> tuple[Column, list[Column]]:
        given = {name: _column(value) for name, value in (case.values or {}).items()}
        kinds = dict(zip(given, types_of(joined, list(given.values())), strict=True)) if given else {}
        data, errors = [], []
        for column in self.definition.columns:
            value, error = self._value(number, column, given, kinds)
            data.append(value.alias(column.name))
            errors += [error] if error is not None else []
        assert case.operation is not None
        present = F.lit(None if case.when is When.NOT_MATCHED else True).cast("boolean")
        facts = [
            present.alias(PRESENT),
            F.lit(int(case.operation)).cast("tinyint").alias("_trinity_operation"),
            F.lit(number).cast("int").alias("_trinity_case_number"),
        ]
        return F.struct(*data, *facts), errors

    def _value(
        self, number: int, column: TableColumn, given: Mapping[str, Column], kinds: Mapping[str, SparkType]
    ) -> tuple[Column, Column | None]:
        case = self.program.cases[number]
        update = case.operation is Operation.UPDATE
        key = update and column.name in self.definition.primary_key
        if column.name in given and not (key and self._unmoved(case, column.name)):
            where = f"{self._clause(number).capitalize()}, {'SET' if update else 'INSERT'}"
            value, error = assigned(given[column.name], kinds[column.name], column, self.table, where)
            # keys are compared, and CHECKs evaluated, before rows reach a sink
            return as_stored(value, column), error
        if update and not column.hidden:
            return self._target(column.name), None
        return F.lit(None).cast(spark_type(column.type)), None

    def _row_type(self) -> str:
        columns = [f"{quoted(c.name)}: {spark_type(c.type)}" for c in self.definition.columns]
        facts = [f"{PRESENT}: boolean", "_trinity_operation: tinyint", "_trinity_case_number: int"]
        return f"struct<{', '.join([*columns, *facts])}>"

    # -- what the stored winner forbids -------------------------------------------------------------------

    def _refusing(self, changes: DataFrame) -> DataFrame:
        """Return the changes, in which a row that keeps its key and would lose to the stored one is refused (M9)."""
        numbers = [n for n, case in enumerate(self.program.cases) if self._may_lose(case)]
        spec = self.spec
        if spec is not None and spec.groups:
            names = (self.row_id, MERGE_ROW, REFUSAL)
            changes = refusing_groups(changes, self.program, spec, names, self.from_source)
        if spec is None or not numbers:
            return changes
        case = F.col(MERGE_ROW)["_trinity_case_number"]
        loses = case.isin(numbers) & F.expr(beats(spec, quoted(self.row_id), quoted(MERGE_ROW)))
        refusal = F.when(loses, F.lit(self.losing().to_json())).otherwise(F.col(REFUSAL))
        return changes.withColumn(REFUSAL, refusal)

    def _may_lose(self, case: Case) -> bool:
        """Return True when an UPDATE case sets the ordering, and not from the source of a MERGE, as an upsert does."""
        spec = self.spec
        if spec is None or case.operation is not Operation.UPDATE or self._moves(case):
            return False  # a move is checked against the winner of its new key
        given = [value for name, value in (case.values or {}).items() if name in spec.ordering]
        return bool(given) and not (self.program.statement == "MERGE" and all(map(self.from_source, given)))

    def from_source(self, value: Expression) -> bool:
        """Return True when a value is a column of the source, and nothing else."""
        text = value if isinstance(value, str) else str(value).removeprefix("Column<'").removesuffix("'>")
        qualifier, _, name = text.replace("`", "").rpartition(".")
        columns = [c.lower() for c in self.program.source.columns] if self.program.source is not None else []
        return name.lower() in columns and qualifier.lower() == self.program.source_alias.lower()

    def losing(self) -> TrinityError:
        """Return the error for a version that would lose to the stored winner."""
        ordering = ", ".join(self.spec.ordering) if self.spec else ""
        return TrinityError(
            "INVALID_ARGUMENTS",
            f"{self.program.statement} of table '{self.table}' would write a row that loses to the one stored under "
            f"its key, whose ({ordering}) is larger (M9). SET ({ordering}) to a larger value.",
        )


def _column(expression: Expression) -> Column:
    return F.expr(expression) if isinstance(expression, str) else expression


def clauses(program: Program) -> Sequence[str]:
    """Return the cases as EXPLAIN shows them."""
    return [
        f"case {n}: WHEN {c.when.value}"
        + (f" AND {c.condition}" if c.condition is not None else "")
        + f" THEN {c.operation.name if c.operation else 'DO NOTHING'}"
        + (f" {', '.join(c.values)}" if c.values else "")
        for n, c in enumerate(program.cases)
    ]
