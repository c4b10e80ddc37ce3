"""Updates of sequence groups that would not take effect, refused row by row (M9, M11)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.changing.engine_rules import touched_groups, without_effect
from trinity.engine.changing.plan import StatementPlan
from trinity.engine.program import Case
from trinity.merge.arrow.keys import comparable
from trinity.merge.spec import SequenceGroup

__all__ = ["without_effect_on"]


def without_effect_on(plan: StatementPlan, case: Case, rows: tuple[pa.Table, pa.Table], refusal: pa.Array) -> pa.Array:
    """Return the errors of rows, with those of updates of a group that would not take effect.

    Args:
        plan: the statement.
        case: an UPDATE of it.
        rows: the sequence columns of the stored rows, and of the new ones.
        refusal: the errors so far, as JSON.
    """
    assert plan.spec is not None
    for group in touched_groups(plan.spec, case.values or {}):
        given = [value for name, value in (case.values or {}).items() if name in group.sequence]
        if given and all(map(plan.from_source, given)):  # late rows then lose silently
            continue
        error = without_effect(plan.program, group).to_json()
        refusal = pc.if_else(_in_vain(group, *rows), error, refusal)
    return refusal


def _in_vain(group: SequenceGroup, old: pa.Table, new: pa.Table) -> pa.Array:
    """Return True where a new sequence is NULL, or smaller than the stored one; NULL is smallest (G2, G3)."""
    old, new = (comparable(rows.select(group.sequence)) for rows in (old, new))
    nothing = pa.array([True] * len(new))
    smaller = pa.array([False] * len(new))
    for name in reversed(group.sequence):
        mine, other = new.column(name).combine_chunks(), old.column(name).combine_chunks()
        nothing = pc.and_(nothing, pc.is_null(mine))
        less = pc.or_(pc.fill_null(pc.less(mine, other), False), pc.and_(pc.is_null(mine), pc.is_valid(other)))
        same = pc.or_(pc.fill_null(pc.equal(mine, other), False), pc.and_(pc.is_null(mine), pc.is_null(other)))
        smaller = pc.or_(less, pc.and_(same, smaller))
    return pc.or_(nothing, smaller)
