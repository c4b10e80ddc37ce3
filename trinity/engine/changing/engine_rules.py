"""Row changes that SQL must not make: in tables that fold by column, keep the first row, or are external (M9, M11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from trinity.definition.checks import naming_checks
from trinity.engine.program import Program, When
from trinity.engine.values.defaults import default_text
from trinity.errors import TrinityError
from trinity.merge.properties import MergeEngine
from trinity.merge.spec import MergeSpec, SequenceGroup, merge_spec
from trinity.spi import Column as TableColumn
from trinity.spi import Operation, TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    """Refuse row changes of an external table, which lacks hidden columns, and whose files are not replaced (U6)."""
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
    """Refuse DELETE and updates of keys in tables without a mark of deletion (U6). Raises NOT_SUPPORTED."""
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


def omitted_value(definition: TableDefinition, column: TableColumn, spark: Callable[[], SparkSession]) -> str:
    """Return Spark SQL for a column that an INSERT leaves out: its DEFAULT; under partial-update NULL (P1).

    Raises:
        TrinityError: as :func:`~trinity.engine.values.defaults.default_text`.
    """
    partial = definition.keyed and merge_spec(definition).engine is MergeEngine.PARTIAL_UPDATE
    return "NULL" if partial else default_text(column, spark)


def touched_groups(spec: MergeSpec, columns: Mapping[str, object]) -> list[SequenceGroup]:
    """Return the sequence groups that an UPDATE of these columns writes."""
    return [g for g in spec.groups if any(c in columns for c in g.columns)]


def without_effect(program: Program, group: SequenceGroup) -> TrinityError:
    """Return the error for an update of a sequence group that changes nothing (M9, M11)."""
    sequence = ", ".join(group.sequence)
    return TrinityError(
        "INVALID_ARGUMENTS",
        f"{program.statement} would have no effect on a row: its sequence ({sequence}) is NULL, or smaller than the "
        f"one stored for ({', '.join(group.protected)}). SET ({sequence}) to a value that is not smaller (M9, M11).",
    )
