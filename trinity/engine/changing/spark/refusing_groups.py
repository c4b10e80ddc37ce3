"""Updates of sequence groups that would not take effect, refused row by row (M9, M11)."""

from __future__ import annotations

from collections.abc import Callable

from trinity.engine.changing.engine_rules import touched_groups, without_effect
from trinity.engine.program import Case, Program, Value
from trinity.merge.spec import MergeSpec, SequenceGroup
from trinity.spark_names import Column, DataFrame, F
from trinity.spi import Operation
from trinity.syntax.quoting import quoted

__all__ = ["refusing_groups"]


def refusing_groups(
    changes: DataFrame,
    program: Program,
    spec: MergeSpec,
    names: tuple[str, str, str],
    given: Callable[[Value], bool],
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
                error = F.lit(without_effect(program, group).to_json())
                found = F.when(is_case & bad, error).otherwise(found)
    return changes.withColumn(refusal, found)


def _without_effect(
    case: Case, group: SequenceGroup, row_id: str, merge_row: str, given: Callable[[Value], bool]
) -> Column | None:
    values = [value for name, value in (case.values or {}).items() if name in group.sequence]
    if values and all(map(given, values)):
        return None
    new = [f"{merge_row}.{quoted(c)}" for c in group.sequence]
    never_written = " AND ".join(f"{part} IS NULL" for part in new)
    old = ", ".join(f"{row_id}.{quoted(c)}" for c in group.sequence)
    return F.expr(f"({never_written}) OR struct({', '.join(new)}) < struct({old})")
