"""A statement's expressions, compiled for Arrow data: conditions, values, constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.changing.fields import AssignedField, field_column
from trinity.engine.changing.plan import StatementPlan
from trinity.engine.executes import NotLocal
from trinity.engine.expressions import Compiled, Scope, ScopeColumn, SubqueryRows, compile_expression
from trinity.engine.program import Case, Expression, Fields, Program, Value
from trinity.engine.values.local.assignment import Assignment, assignment
from trinity.engine.values.local.check_constraints import LocalChecks
from trinity.engine.values.store_assignment import refuse_other_than_boolean
from trinity.spi import Operation, TableDefinition, parse_given_type, parse_type, type_text
from trinity.syntax.sql_text import tree_of


def target_field(definition: TableDefinition, name: str) -> str:
    """Return the name that a column of the target has in the rows of the join."""
    return f"t{definition.place(name)}"


def target_scope(definition: TableDefinition, alias: str) -> list[ScopeColumn]:
    """Return the columns of the target in the rows of the join, with the names that expressions use."""
    return [
        ScopeColumn(c.name, target_field(definition, c.name), parse_type(c.type), alias) for c in definition.visible
    ]


def source_scope(program: Program) -> list[ScopeColumn]:
    """Return the columns of a source of Arrow data in the rows of the join, with the names that expressions use."""
    assert isinstance(program.source, pa.Table)
    kinds = [parse_given_type(program.chars.get(f.name) or type_text(f.type)) for f in program.source.schema]
    names = zip(program.source_columns, kinds, strict=True)
    return [ScopeColumn(name, f"s{n}", kind, program.source_alias) for n, (name, kind) in enumerate(names)]


@dataclass(frozen=True)
class CompiledValue:
    """The value of a column in the row that a case makes, and its assignment to the column."""

    value: Compiled
    assignment: Assignment

    @property
    def fields(self) -> frozenset[str]:
        """The columns of joined rows that its expressions read."""
        return self.value.fields

    def evaluate(self, rows: pa.RecordBatch) -> tuple[pa.Array, pa.Array | None]:
        """Return the values in storage form, and as JSON the errors of values that do not fit; None without errors."""
        given = self.value.evaluate(rows)
        stored = self.assignment.cast(given)
        return stored, self.assignment.refusals(given, stored)


@dataclass(frozen=True)
class CompiledFields:
    """A struct with new values for some of its fields.

    Attributes:
        column: the column of the join's rows that has the struct, or the struct around it.
        path: the names of the fields from that column to the struct; empty if it is the column.
        values: the new values of its fields.
    """

    column: str
    path: tuple[str, ...]
    type: pa.StructType
    values: Mapping[str, CompiledValue | CompiledFields]

    @property
    def fields(self) -> frozenset[str]:
        """The columns of joined rows that its expressions read."""
        return frozenset({self.column}).union(*(value.fields for value in self.values.values()))

    def evaluate(self, rows: pa.RecordBatch) -> tuple[pa.Array, pa.Array | None]:
        """Return the values and the errors, as :meth:`CompiledValue.evaluate`."""
        old, parts = rows.column(self.column), list[pa.Array]()
        refusal: pa.Array | None = None
        for name in self.path:
            old = pc.struct_field(old, [name])
        for part in self.type:
            if part.name not in self.values:
                parts.append(pc.struct_field(old, [part.name]))
                continue
            stored, errors = self.values[part.name].evaluate(rows)
            parts.append(stored)
            if errors is not None:
                refusal = errors if refusal is None else pc.coalesce(refusal, errors)
        return pa.StructArray.from_arrays(parts, fields=list(self.type)), refusal


@dataclass(frozen=True)
class CompiledCase:
    """A WHEN clause, its condition, and the values of the columns that it sets."""

    case: Case
    condition: Compiled | None
    values: Mapping[str, CompiledValue | CompiledFields] = field(default_factory=dict)

    @property
    def fields(self) -> frozenset[str]:
        """The columns of joined rows that this case's expressions read."""
        own = self.condition.fields if self.condition is not None else frozenset[str]()
        return own.union(*(value.fields for value in self.values.values()))


@dataclass(frozen=True)
class CompiledStatement:
    """A statement: its WHEN clauses, in order, and the constraints on the rows that it stores."""

    cases: tuple[CompiledCase, ...]
    checks: LocalChecks | None

    @classmethod
    def of(
        cls, plan: StatementPlan, source: Iterable[ScopeColumn], timezone: Callable[[], str]
    ) -> CompiledStatement | NotLocal:
        """Compile the expressions of a statement over the columns of its target and its source.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, INVALID_ARGUMENTS for an ambiguous name, TYPE_MISMATCH.
        """
        columns = [*target_scope(plan.definition, plan.program.target_alias), *source]
        compiler = _Compiler(plan, Scope(columns, SubqueryRows.all_of(plan.program.queries)), timezone)
        cases = list[CompiledCase]()
        for number in range(len(plan.program.cases)):
            found = compiler.case(number)
            if isinstance(found, NotLocal):
                return found
            cases.append(found)
        if not plan.definition.checks:
            return cls(tuple(cases), None)
        checks = LocalChecks.of(plan.definition, plan.table, timezone)
        return checks if isinstance(checks, NotLocal) else cls(tuple(cases), checks)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The columns of joined rows that its expressions read."""
        return frozenset[str]().union(*(case.fields for case in self.cases))


@dataclass(frozen=True)
class _Compiler:
    plan: StatementPlan
    scope: Scope
    timezone: Callable[[], str]

    def case(self, number: int) -> CompiledCase | NotLocal:
        case = self.plan.program.cases[number]
        condition = self._condition(number, case)
        if isinstance(condition, NotLocal):
            return condition
        values = dict[str, CompiledValue | CompiledFields]()
        for name, given in (case.values or {}).items():
            column = self.plan.definition.column(name)
            key = case.operation is Operation.UPDATE and column.name in self.plan.definition.primary_key
            if key and self.plan.leaves_key(case, column.name):
                continue
            value = self._value(number, AssignedField(column), given)
            if isinstance(value, NotLocal):
                return value
            values[column.name] = value
        return CompiledCase(case, condition, values)

    def _condition(self, number: int, case: Case) -> Compiled | NotLocal | None:
        if case.condition is None:
            return None
        found = self._compiled(case.condition)
        if not isinstance(found, NotLocal):
            refuse_other_than_boolean(str(found.type), f"The condition of {self.plan.clause(number)}")
        return found

    def _value(self, number: int, field: AssignedField, given: Value) -> CompiledValue | CompiledFields | NotLocal:
        column = field_column(field)
        if isinstance(given, Fields):
            return self._fields(number, field, given)
        value = self._compiled(given)
        if isinstance(value, NotLocal):
            return value
        word = "SET" if self.plan.program.cases[number].operation is Operation.UPDATE else "INSERT"
        stored = assignment(value.type, column, self.plan.table, f"{self.plan.clause(number).capitalize()}, {word}")
        return stored if isinstance(stored, NotLocal) else CompiledValue(value, stored)

    def _fields(self, number: int, field: AssignedField, given: Fields) -> CompiledFields | NotLocal:
        values = dict[str, CompiledValue | CompiledFields]()
        for name, inner in given.values.items():
            value = self._value(number, AssignedField(field.column, (*field.path, name)), inner)
            if isinstance(value, NotLocal):
                return value
            values[name] = value
        kind = parse_type(field_column(field).type).to_arrow()
        return CompiledFields(target_field(self.plan.definition, field.column.name), field.path, kind, values)

    def _compiled(self, expression: Expression) -> Compiled | NotLocal:
        if not isinstance(expression, str):
            return NotLocal("only Spark evaluates a Column of its own")
        tree = tree_of(expression)
        return compile_expression(expression if tree is None else tree, self.scope, self.timezone)
