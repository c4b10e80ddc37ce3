"""The changes of a row-changing statement: target RIGHT JOIN source and one searched CASE (M1).

Its rows are those that a row-change processor takes (:mod:`trinity.engine.changing.processors`): the layout columns,
the row id, the merge row of the first WHEN that holds, and its refusal: NULL, or the row's error as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trinity.engine.changing.engine_rules import without_effect
from trinity.engine.changing.fields import AssignedField, field_column
from trinity.engine.changing.plan import StatementPlan
from trinity.engine.program import Case, Expression, Fields, Value, When
from trinity.engine.values.spark.assignment import assigned, check_boolean, types_of
from trinity.engine.values.spark.check_constraints import checked_changes
from trinity.engine.writing.ingest import REFUSAL
from trinity.hidden import CHANGE_CASE, CHANGE_OPERATION, MERGE_ROW
from trinity.merge.spec import SequenceGroup
from trinity.merge.sql.fold import beats
from trinity.spark.texts import as_stored
from trinity.spark.types import spark_type
from trinity.spark_names import Column, DataFrame, F
from trinity.spi import Column as TableColumn
from trinity.spi import Operation, parse_type
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType as SparkType


_PRESENT: Final = "_trinity_present"
_SOURCE_PRESENT: Final = "_trinity_source_present"
_CASE: Final = "_trinity_selected_case"

_Path = tuple[str, ...]
_JOINS: Final[Mapping[tuple[bool, bool], str]] = {
    (False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full",
}  # fmt: skip
"""(has NOT MATCHED, has NOT MATCHED BY SOURCE) -> the join that yields just the rows that a WHEN can select."""


@dataclass(frozen=True)
class SparkChanges:
    """The changes that the plan of a statement makes to the rows of its target."""

    plan: StatementPlan

    def of(self, target: DataFrame) -> DataFrame:
        """Return the changes: layout columns, row id, merge row, refusal. Not run yet.

        The target has the columns that users see, in a plain table also the row id.

        Raises:
            TrinityError: TYPE_MISMATCH; Spark's errors in the expressions are raised as they are.
        """
        joined = self._joined(target)
        selected = self._selected_rows(joined)
        changes = self._refusing(selected.select(*self._layout(), self._row_id(), *self._merge_row(joined)))
        if self.plan.definition.checks:
            changes = checked_changes(changes, MERGE_ROW, self.plan.definition, self.plan.table)
        return changes

    def upserted(self, number: int) -> DataFrame:
        """Return an INSERT case's rows, one per row of the source: the table's columns, and refusal. Not run yet."""
        assert self.plan.program.source is not None
        source = self.plan.program.source.alias(self.plan.program.source_alias)
        row, errors = self._row_of(number, self.plan.program.cases[number], source)
        refusal = F.coalesce(*errors) if errors else F.lit(None).cast("string")
        rows = source.select(row.alias(MERGE_ROW), refusal.alias(REFUSAL))
        if self.plan.definition.checks:
            rows = checked_changes(rows, MERGE_ROW, self.plan.definition, self.plan.table)
        return rows.select(*[F.col(f"{MERGE_ROW}.{quoted(c.name)}") for c in self.plan.definition.columns], REFUSAL)

    # -- the join -----------------------------------------------------------------------------------------

    def _joined(self, target: DataFrame) -> DataFrame:
        program = self.plan.program
        left = target.withColumn(_PRESENT, F.lit(True)).alias(program.target_alias)
        if program.source is None:
            return left
        right = program.source.withColumn(_SOURCE_PRESENT, F.lit(True)).alias(program.source_alias)
        kinds = {case.when for case in program.cases}
        if program.deletes_matches and kinds == {When.MATCHED}:
            assert program.on is not None
            return left.join(right, _column(program.on), "left_semi").withColumn(_SOURCE_PRESENT, F.lit(True))
        how = _JOINS[When.NOT_MATCHED in kinds, When.NOT_MATCHED_BY_SOURCE in kinds]
        assert program.on is not None
        return left.join(right, _column(program.on), how)

    def _selected_rows(self, joined: DataFrame) -> DataFrame:
        """Return the rows that a WHEN selects, with the number of the first WHEN that does."""
        conditions = [self._holds(case) for case in self.plan.program.cases]
        given = {n: _column(c.condition) for n, c in enumerate(self.plan.program.cases) if c.condition is not None}
        for index, kind in zip(given, types_of(joined, list(given.values())), strict=True):
            check_boolean(kind, f"The condition of {self.plan.clause(index)}")
        if self.plan.program.source is None:  # one case: its condition is the WHERE
            return joined.where(conditions[0]).withColumn(_CASE, F.lit(0))
        number: Column | None = None
        for index, (case, holds) in enumerate(zip(self.plan.program.cases, conditions, strict=True)):
            found = F.lit(index if case.operation is not None else None).cast("int")
            number = F.when(holds, found) if number is None else number.when(holds, found)
        assert number is not None
        selected = joined.withColumn(_CASE, number).where(F.col(_CASE).isNotNull())
        return self._once(selected) if self.plan.program.deletes_matches else selected

    def _once(self, selected: DataFrame) -> DataFrame:
        """Return each row of the target once, where several of the source match it (M2)."""
        if all(case.when is When.MATCHED for case in self.plan.program.cases):  # the join is a semi-join
            return selected
        matched = F.col(_PRESENT).isNotNull() & F.col(_SOURCE_PRESENT).isNotNull()
        key = [self._target(k) for k in self.plan.definition.primary_key] or [F.col(self.plan.row_id)]
        by = {f"{_CASE}_{n}": F.when(matched, value) for n, value in enumerate(key)}
        by[f"{_CASE}_of"] = F.when(~matched, F.monotonically_increasing_id())
        for name, value in by.items():
            selected = selected.withColumn(name, value)
        return selected.dropDuplicates(list(by))

    def _holds(self, case: Case) -> Column:
        target, source = F.col(_PRESENT).isNotNull(), F.col(_SOURCE_PRESENT).isNotNull()
        if self.plan.program.source is None:
            return _column(case.condition) if case.condition is not None else F.lit(True)
        which = {
            When.MATCHED: target & source,
            When.NOT_MATCHED: ~target,
            When.NOT_MATCHED_BY_SOURCE: ~source,
        }[case.when]
        return which if case.condition is None else which & _column(case.condition)

    # -- what the join's rows become ----------------------------------------------------------------------

    def _target(self, name: str) -> Column:
        return F.col(f"{quoted(self.plan.program.target_alias)}.{quoted(name)}")

    def _layout(self) -> list[Column]:
        return [self._target(name).alias(f"_trinity_layout_{i}") for i, name in enumerate(self.plan.insert_layout)]

    def _row_id(self) -> Column:
        if self.plan.spec is None:
            return F.col(self.plan.row_id)
        ordered, others = self.plan.row_id_columns
        fields = [self._target(name).alias(name) for name in ordered]
        dies = F.col(_CASE).isin(list(self.plan.deleting_cases))
        fields += [F.when(dies, self._target(name)).alias(name) for name in others]
        return F.when(F.col(_PRESENT), F.struct(*fields)).alias(self.plan.row_id)

    def _merge_row(self, joined: DataFrame) -> tuple[Column, Column]:
        """Return the searched CASE, and why the row is refused: the error as JSON, or NULL."""
        row = F.lit(None).cast(self._row_type())
        refusal = F.lit(None).cast("string")
        for number, case in enumerate(self.plan.program.cases):
            if case.operation is None:
                continue
            made, errors = self._row_of(number, case, joined)
            is_case = F.col(_CASE) == number
            row = F.when(is_case, made).otherwise(row)
            if errors:
                refusal = F.when(is_case, F.coalesce(*errors)).otherwise(refusal)
        return row.alias(MERGE_ROW), refusal.alias(REFUSAL)

    def _row_of(self, number: int, case: Case, joined: DataFrame) -> tuple[Column, list[Column]]:
        given = dict(_leaves((), case.values or {}))
        kinds = types_of(joined, list(given.values())) if given else []
        expressions = {path: (value, kind) for (path, value), kind in zip(given.items(), kinds, strict=True)}
        data, errors = [], []
        for column in self.plan.definition.columns:
            value, error = self._value(number, column, expressions)
            data.append(value.alias(column.name))
            errors += [error] if error is not None else []
        assert case.operation is not None
        present = F.lit(None if case.when is When.NOT_MATCHED else True).cast("boolean")
        facts = [
            present.alias(_PRESENT),
            F.lit(int(case.operation)).cast("tinyint").alias(CHANGE_OPERATION),
            F.lit(number).cast("int").alias(CHANGE_CASE),
        ]
        return F.struct(*data, *facts), errors

    def _value(
        self, number: int, column: TableColumn, given: Mapping[_Path, tuple[Column, SparkType]]
    ) -> tuple[Column, Column | None]:
        case = self.plan.program.cases[number]
        update = case.operation is Operation.UPDATE
        key = update and column.name in self.plan.definition.primary_key
        value = (case.values or {}).get(column.name)
        if value is not None and not (key and self.plan.leaves_key(case, column.name)):
            where = f"{self.plan.clause(number).capitalize()}, {'SET' if update else 'INSERT'}"
            stored, error = self._assigned_value(AssignedField(column), value, given, where)
            # converted here, since keys are compared, and CHECKs evaluated, before rows reach a sink
            return as_stored(stored, column), error
        if update and not column.hidden:
            return self._target(column.name), None
        return F.lit(None).cast(spark_type(column.type)), None

    def _assigned_value(
        self, field: AssignedField, value: Value, given: Mapping[_Path, tuple[Column, SparkType]], where: str
    ) -> tuple[Column, Column | None]:
        """Return the new value of a column or field, and its refusal."""
        column, path = field_column(field), (field.column.name, *field.path)
        if not isinstance(value, Fields):
            return assigned(*given[path], column, self.plan.table, where)
        parts, errors = [], []
        for name, _ in parse_type(column.type).parts:
            part, error = F.col(".".join(map(quoted, (self.plan.program.target_alias, *path, name)))), None
            if name in value.values:
                inner = AssignedField(field.column, (*field.path, name))
                part, error = self._assigned_value(inner, value.values[name], given, where)
            parts.append(part.alias(name))
            errors += [error] if error is not None else []
        return F.struct(*parts), F.coalesce(*errors) if errors else None

    def _row_type(self) -> str:
        columns = [f"{quoted(c.name)}: {spark_type(c.type)}" for c in self.plan.definition.columns]
        facts = [f"{_PRESENT}: boolean", f"{CHANGE_OPERATION}: tinyint", f"{CHANGE_CASE}: int"]
        return f"struct<{', '.join([*columns, *facts])}>"

    # -- what the stored winner forbids -------------------------------------------------------------------

    def _refusing(self, changes: DataFrame) -> DataFrame:
        """Return the changes with more refusals: of rows that keep their key and would lose to the stored row (M9).

        An update of a sequence group that would have no effect is refused, too (M11).
        """
        if self.plan.spec is None:
            return changes
        numbers = [n for n, case in enumerate(self.plan.program.cases) if self.plan.may_lose(case)]
        of_case, refusal = F.col(MERGE_ROW)[CHANGE_CASE], F.col(REFUSAL)
        for number, case in enumerate(self.plan.program.cases):
            for group in self.plan.refused_groups(case):
                error = F.lit(without_effect(self.plan.program, group).to_json())
                refusal = F.when((of_case == number) & _has_stale_sequence(group, self.plan.row_id), error).otherwise(
                    refusal
                )
        if numbers:
            loses = of_case.isin(numbers) & F.expr(beats(self.plan.spec, quoted(self.plan.row_id), quoted(MERGE_ROW)))
            refusal = F.when(loses, F.lit(self.plan.loses_error().to_json())).otherwise(refusal)
        return changes.withColumn(REFUSAL, refusal)


def _leaves(path: _Path, values: Mapping[str, Value]) -> Iterator[tuple[_Path, Column]]:
    """Yield the path of each column or field that is set, below ``path``, and the expression that sets it."""
    for name, value in values.items():
        if isinstance(value, Fields):
            yield from _leaves((*path, name), value.values)
        else:
            yield (*path, name), _column(value)


def _column(expression: Expression) -> Column:
    return F.expr(expression) if isinstance(expression, str) else expression


def _has_stale_sequence(group: SequenceGroup, row_id: str) -> Column:
    """Return true where a new sequence is NULL, or smaller than the stored one (G2, G3)."""
    new = [f"{MERGE_ROW}.{quoted(c)}" for c in group.sequence]
    never_written = " AND ".join(f"{part} IS NULL" for part in new)
    old = ", ".join(f"{row_id}.{quoted(c)}" for c in group.sequence)
    return F.expr(f"({never_written}) OR struct({', '.join(new)}) < struct({old})")
