"""Row changes that SQL must not make: in tables that fold by column, keep the first row, or are external (M9, M11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from trinity.definition.checks import naming_checks
from trinity.engine.program import Case, Expression, Program, When
from trinity.engine.values.defaults import default_text
from trinity.errors import TrinityError
from trinity.merge.engine import MergeEngine, SequenceGroup
from trinity.merge.parse import merge_spec
from trinity.merge.spec import MergeSpec
from trinity.spark_names import Column, DataFrame, F
from trinity.spi import Column as TableColumn
from trinity.spi import Operation, TableDefinition
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_mark", "check_program", "omitted_value", "refusing_groups", "touched_groups"]

_UPDATABLE: Final = "last_non_null_value"


def check_program(program: Program, definition: TableDefinition) -> None:
    """Refuse a statement that has no meaning under the table's merge engine.

    Raises:
        TrinityError: NOT_SUPPORTED naming table, column and function (M11).
    """
    if definition.external:
        _check_external(program, definition)
    if not definition.keyed:
        return
    spec = merge_spec(definition)
    for case in program.cases:
        if spec.engine is MergeEngine.FIRST_ROW and case.when is not When.NOT_MATCHED and case.operation is not None:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"{program.statement} cannot change rows of table '{definition.full_name}': its merge engine first-row "
                "keeps the row that came first. Only INSERT, and MERGE with WHEN NOT MATCHED, write to it (M11).",
            )
        if case.operation is Operation.UPDATE and spec.by_column:
            for column in case.values or {}:
                _check_updatable(column, program, definition, spec)


def _check_external(program: Program, definition: TableDefinition) -> None:
    """Refuse what an external table cannot take: it has no hidden columns, and its files are not replaced (U6)."""
    spec = merge_spec(definition) if definition.keyed else None
    lacks = None
    if spec is None:
        lacks = "it has no primary key, and its files are not Trinity's to rewrite; register it with a 'primary-key'"
    elif spec.by_column:
        lacks = f"of merge engine {spec.engine.value} it takes whole rows alone; append them with INSERT or upsert()"
    elif any(case.operation is Operation.DELETE for case in program.cases):
        check_mark(program, definition)
    if lacks:
        raise _unsupported(program, definition, lacks)


def check_mark(program: Program, definition: TableDefinition) -> None:
    """Refuse to delete or move a key where nothing can mark it as deleted (U6). Raises NOT_SUPPORTED."""
    spec = merge_spec(definition)
    if not definition.external:
        return
    if not spec.tombstone and (spec.row_kind is None or spec.ignore_delete):
        lacks = "a deleted key needs a mark, and it has none; register it with a 'tombstone-key' (U6)"
        raise _unsupported(program, definition, lacks)
    for mark in filter(None, (spec.tombstone, spec.row_kind)):
        if checks := naming_checks(definition, mark):
            lacks = f"its CHECK constraint '{checks[0]}' is about '{mark}', the mark of a deleted key"
            raise _unsupported(program, definition, lacks)


def _unsupported(program: Program, definition: TableDefinition, lacks: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"{program.statement} is not supported on table '{definition.full_name}', which is external: {lacks}.",
    )


def _check_updatable(column: str, program: Program, definition: TableDefinition, spec: MergeSpec) -> None:
    function = spec.functions.get(column)
    what = f"its aggregate function is {function.name}" if function and function.name != _UPDATABLE else None
    if column == spec.row_kind:
        what = "it is the row kind, by which rows fold"
    if what:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"{program.statement} cannot set column '{column}' of table '{definition.full_name}': {what}. Append a row "
            "with the change instead (M11).",
        )


def omitted_value(definition: TableDefinition, column: TableColumn, spark: SparkSession) -> str:
    """Return Spark SQL of a column that an INSERT leaves out: its DEFAULT; under partial-update NULL (P1).

    Raises:
        TrinityError: as :func:`~trinity.engine.values.defaults.default_text`.
    """
    partial = definition.keyed and merge_spec(definition).engine is MergeEngine.PARTIAL_UPDATE
    return "NULL" if partial else default_text(column, lambda: spark)


def touched_groups(spec: MergeSpec, columns: Mapping[str, object]) -> list[SequenceGroup]:
    """Return the sequence groups that an UPDATE of these columns writes."""
    return [g for g in spec.groups if any(c in columns for c in g.columns)]


def refusing_groups(
    changes: DataFrame,
    program: Program,
    spec: MergeSpec,
    names: tuple[str, str, str],
    given: Callable[[Expression], bool],
) -> DataFrame:
    """Return the changes, in which updates of a group that would not take effect are refused (M9, M11).

    Args:
        changes: rows of the plan.
        program: the statement.
        spec: the table's options.
        names: columns of the plan: row id (with the old sequences), merge row, refusal.
        given: tells whether a value is a bare column of a MERGE's source: late rows then lose silently.
    """
    row_id, merge_row, refusal = names
    found = F.col(refusal)
    for number, case in enumerate(program.cases):
        if case.operation is not Operation.UPDATE:
            continue
        for group in touched_groups(spec, case.values or {}):
            bad = _without_effect(case, group, row_id, merge_row, given)
            if bad is not None:
                is_case = F.col(merge_row)["_trinity_case_number"] == number
                error = F.lit(_losing(program, spec, group).to_json())
                found = F.when(is_case & bad, error).otherwise(found)
    return changes.withColumn(refusal, found)


def _without_effect(
    case: Case, group: SequenceGroup, row_id: str, merge_row: str, given: Callable[[Expression], bool]
) -> Column | None:
    values = [value for name, value in (case.values or {}).items() if name in group.sequence]
    if values and all(map(given, values)):
        return None
    new = [f"{merge_row}.{quoted(c)}" for c in group.sequence]
    never_written = " AND ".join(f"{part} IS NULL" for part in new)
    old = ", ".join(f"{row_id}.{quoted(c)}" for c in group.sequence)
    return F.expr(f"({never_written}) OR struct({', '.join(new)}) < struct({old})")


def _losing(program: Program, spec: MergeSpec, group: SequenceGroup) -> TrinityError:
    sequence = ", ".join(group.sequence)
    return TrinityError(
        "INVALID_ARGUMENTS",
        f"{program.statement} would have no effect on a row: its sequence ({sequence}) is NULL, or smaller than the "
        f"one stored for ({', '.join(group.protected)}). SET ({sequence}) to a value that is not smaller (M9, M11).",
    )
