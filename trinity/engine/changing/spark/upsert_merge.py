"""A MERGE that is an upsert: it writes the rows of the source, and reads the target for the counts alone.

In such a MERGE, ON equates the whole key with columns of the source, and UPDATE and INSERT, both without conditions,
write the same columns of the source. A row is then stored as it came, whatever the target holds, and late rows lose
as those of an upsert do (M9). Only keys are joined, and no row leaves the task that read it.
"""

from __future__ import annotations

from trinity.engine.changing.conditions import same_expression
from trinity.engine.changing.plan import StatementPlan
from trinity.engine.program import When
from trinity.spi import Operation

__all__ = ["insert_case", "is_upsert"]


def is_upsert(plan: StatementPlan) -> bool:
    """Return True when every row of the source is written as it is, provided that no key occurs twice or is NULL.

    The join handles keys that ON would convert, or whose blanks are cut when they are stored.
    """
    spec, cases = plan.spec, {case.when: case for case in plan.program.cases if case.condition is None}
    update, insert = cases.get(When.MATCHED), cases.get(When.NOT_MATCHED)
    if spec is None or spec.by_column or update is None or insert is None or len(plan.program.cases) != 2:
        return False
    if (update.operation, insert.operation) != (Operation.UPDATE, Operation.INSERT) or plan.moving or plan.inserting:
        return False
    given, updated = insert.values or {}, update.values or {}
    others = [c.name for c in plan.definition.visible if c.name not in spec.key]
    return (
        set(plan.equalities) == set(spec.key)
        and all(e.same and e.stored for e in plan.equalities.values())
        and all(plan.from_source(value) for value in given.values())
        and all(same_expression(updated.get(name), given[name]) for name in others)
    )


def insert_case(plan: StatementPlan) -> int:
    """Return the number of the INSERT case."""
    return next(n for n, case in enumerate(plan.program.cases) if case.operation is Operation.INSERT)
