"""Short forms of a statement, spelled out: UPDATE SET *, INSERT *, DEFAULTs, dotted names, predicates on subqueries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trinity.engine.changing.engine_rules import omitted_value
from trinity.engine.changing.fields import AssignedField, assigned_values, resolve_field
from trinity.engine.program import Case, Expression, Fields, Program, Value, with_texts
from trinity.errors import TrinityError
from trinity.names import split_name
from trinity.spi import Operation, TableDefinition
from trinity.syntax.operands import with_plain_comparisons
from trinity.syntax.quoting import quoted
from trinity.syntax.three_valued import Use, three_valued_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def expanded(program: Program, definition: TableDefinition, spark: Callable[[], SparkSession]) -> Program:
    """Return the program with UPDATE SET * and INSERT * spelled out, and an INSERT's missing columns filled by DEFAULT.

    Predicates on subqueries are rewritten where Spark would not return the NULL that they have in SQL.

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
    """Return values by the table's own names. A dotted name means a column qualified by the alias, or a field."""
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
"""Names joined by dots, each plain or in backticks."""


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
