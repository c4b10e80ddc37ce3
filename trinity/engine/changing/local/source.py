"""The source of a MERGE in this process, and its join with the target by the equalities of ON, compared as in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.engine.changing.local.compiled import source_scope, target_field, target_scope
from trinity.engine.changing.local.joined import Join
from trinity.engine.changing.plan import Equality, StatementPlan
from trinity.engine.changing.source import FEW, SourceStatistics
from trinity.engine.executes import NotLocal
from trinity.engine.expressions import Compiled, Scope, ScopeColumn, SubqueryRows, compile_expression, compile_predicate
from trinity.engine.values.local.assignment import fitted_texts
from trinity.spi import Column, TableDefinition, parse_type
from trinity.storage.parquet_files import have_more_rows

_MOST_PAIRS: Final = 500_000_000
"""Most pairs of a target row and a source row for which this process evaluates ON one by one."""


@dataclass(frozen=True)
class LocalSource(SourceStatistics):
    """Facts about the source of a statement, and its join with the target.

    Attributes:
        columns: the source's columns in the rows of the join, with the names that expressions use.
        values: target columns -> the values that a matched row can have by ON, whole numbers as BIGINT; None where
            every row of the target matters.
    """

    columns: Sequence[ScopeColumn] = ()
    equalities: Mapping[str, LocalEquality] = field(default_factory=dict)
    join: Join | None = None
    values: pa.Table | None = None

    @property
    def fields(self) -> frozenset[str]:
        """The columns of the join's rows that the join itself reads."""
        return frozenset() if self.join is None else self.join.fields


def local_source(plan: StatementPlan, timezone: Callable[[], str]) -> LocalSource | NotLocal:
    """Return the facts about a source whose rows are in this process, or why only Spark can join it.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, INVALID_ARGUMENTS for an ambiguous name, TYPE_MISMATCH.
    """
    program, definition = plan.program, plan.definition
    assert isinstance(program.source, pa.Table)
    columns = source_scope(program)
    equalities = compared(definition, plan.facts.equalities, Scope(columns), timezone)
    if not plan.facts.understood:
        return NotLocal("ON is no condition that this process can read")
    most = _MOST_PAIRS // max(program.source.num_rows, 1)
    if not equalities and have_more_rows(plan.splits.files, most):
        return NotLocal("ON does not say which values of the source a column equals, and there are many rows")
    scope = Scope([*target_scope(definition, program.target_alias), *columns], SubqueryRows.all_of(program.queries))
    equal = plan.facts.equalities.items()
    others = [_equal(name, value, program.target_alias) for name, value in equal if name not in equalities]
    also = _condition([*plan.facts.others, *others], scope, timezone)
    if isinstance(also, NotLocal):
        return also
    rows = _one_page(program.source, columns)
    values = {name: equality.values(rows) for name, equality in equalities.items()}
    fields = [target_field(definition, name) for name in values]
    kinds = frozenset(case.when for case in program.cases)
    on = pa.table(list(values.values()), names=fields)
    join = Join.of(rows, on, also, kinds, once=program.deletes_matches)
    if plan.needs_all_rows or not equalities:
        return LocalSource(rows.num_rows, columns=columns, equalities=equalities, join=join)
    known = {c: values[c] for c in values if parse_type(definition.column(c).type).is_ordered_in_statistics}
    few = 1 < rows.num_rows <= FEW and len(plan.splits.files) > 1
    return LocalSource(
        rows.num_rows,
        {name: bounds for name, column in known.items() if (bounds := bounds_of(column)) is not None},
        {name: points for name, column in known.items() if few and (points := _points(column)) is not None},
        columns,
        equalities,
        join,
        pa.table(values),
    )


def _condition(others: Sequence[exp.Expr], scope: Scope, timezone: Callable[[], str]) -> Compiled | NotLocal | None:
    return compile_predicate(exp.and_(*others), scope, timezone) if others else None


def _equal(name: str, value: exp.Expr, target: str) -> exp.Expr:
    return exp.EQ(this=exp.column(name, table=target, quoted=True), expression=exp.paren(value))


def _one_page(rows: pa.Table, columns: Sequence[ScopeColumn]) -> pa.RecordBatch:
    whole = rows.combine_chunks()
    arrays = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in whole.columns]
    return pa.RecordBatch.from_arrays(arrays, names=[c.field for c in columns])


def bounds_of(values: pa.Array | pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the smallest and the largest value; None where there is none, or one that Python lacks."""
    try:
        found = pc.min_max(values).as_py()
    except (ValueError, OverflowError):  # Python has no dates before the year 1, nor after 9999
        return None
    return None if found["min"] is None else (found["min"], found["max"])


def _points(values: pa.Array) -> list[Any] | None:
    try:
        return sorted(values.drop_null().unique().to_pylist())
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class LocalEquality(Equality):
    """The value that ON requires of a target column, compiled over the source's rows."""

    column: Column
    value: Compiled

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the value of each source row, in the form in which it is joined: whole numbers are BIGINT."""
        found, kind = self.value.evaluate(rows), parse_type(self.column.type)
        if kind.name == "char":
            return fitted_texts(found, kind)
        return found.cast(pa.int64()) if kind.is_integer else found


def compared(
    definition: TableDefinition, equalities: Mapping[str, exp.Expr], scope: Scope, timezone: Callable[[], str]
) -> dict[str, LocalEquality]:
    """Return the equalities by which rows are joined, by column: those whose values Arrow compares as Spark does.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, INVALID_ARGUMENTS for an ambiguous name.
    """
    found = dict[str, LocalEquality]()
    for name, tree in equalities.items():
        column = definition.column(name)
        value = compile_expression(tree, scope, timezone)
        if isinstance(value, NotLocal):
            continue
        own, given = parse_type(column.type), value.type
        texts = own.is_text and given.is_text
        if own == given or texts or (own.is_integer and given.is_integer):
            # blanks beyond the length of a VARCHAR are compared, and not stored
            found[name] = LocalEquality(tree, own.name != "varchar", own == given or texts, column, value)
    return found
