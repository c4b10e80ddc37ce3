"""Keys under which a statement writes rows, compared in Arrow with the rows stored there (M4, M7, M9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.changing.local.changes import LocalChanges
from trinity.engine.changing.local.stored_winners import stored_winners
from trinity.engine.executes import NotLocal
from trinity.hidden import DELETED
from trinity.merge.arrow.fold import beats, compared_columns
from trinity.merge.kernels.keys import Keys, comparable
from trinity.merge.spec import MergeSpec
from trinity.spi import Operation

_MOVED = "moved"


def check_keys(changes: LocalChanges, pages: Sequence[pa.RecordBatch]) -> NotLocal | None:
    """Refuse new keys that are live and not vacated by the same statement, and key updates that would lose.

    Returns:
        why this process cannot look the keys up, or None.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION naming the key (M4), INVALID_ARGUMENTS (M9).
    """
    plan, fold = changes.plan, changes.plan.fold
    spec = fold.spec
    rows = [_Rows(changes, spec, page) for page in pages]
    filled = pa.concat_tables([page.filled for page in rows]).combine_chunks() if rows else pa.table({})
    if not len(filled):
        return None
    keys, numbers = Keys.of(filled, spec.key)
    columns = [plan.splits.definition.column(name) for name in compared_columns(spec)]
    stored = stored_winners(fold, filled.select(spec.key), columns)
    if isinstance(stored, NotLocal):
        return stored
    at = np.full(len(keys) + 1, -1)  # the last entry, with index -1, is for keys that were not found
    at[keys.numbers(stored)] = np.arange(len(stored))
    indexes = np.flatnonzero(at[numbers] >= 0)
    new, old = filled.take(indexes), stored.take(at[numbers[indexes]])
    vacated = keys.numbers(pa.concat_tables([page.vacated for page in rows]))
    live = ~as_numpy(old.column(DELETED)) & ~np.isin(numbers[indexes], vacated)
    loses = as_numpy(new.column(_MOVED)) & beats(spec, old, new)
    for index in np.flatnonzero(live | loses)[:1]:
        if not live[index]:
            raise plan.loses_error()
        raise plan.key_exists_error([new.column(k)[int(index)].as_py() for k in spec.key])
    return None


class _Rows:
    """A page of changes.

    Attributes:
        filled: key and ordering columns of new rows whose keys may be live, and whether an update moved them there.
        vacated: the keys of rows that are deleted, or moved to another key.
    """

    def __init__(self, changes: LocalChanges, spec: MergeSpec, page: pa.RecordBatch) -> None:
        plan = changes.plan
        row_id, merge_row = page.column(len(plan.insert_layout)), page.column(len(plan.insert_layout) + 1)
        fields = merge_row.flatten()
        operation, case = fields[-2:]
        new = pa.table({name: fields[changes.data_schema.get_field_index(name)] for name in plan.collision_columns})
        old = pa.table({k: pc.struct_field(row_id, [row_id.type.get_field_index(k)]) for k in spec.key})
        moving = pc.is_in(case, value_set=pa.array(plan.key_changing_cases, case.type))
        moved = pc.and_(moving, pc.invert(_keeps_key(old, new)))
        fills = pc.or_(moved, pc.is_in(case, value_set=pa.array(plan.inserting_cases, case.type)))
        leaves = pc.or_(moved, pc.equal(operation, pa.scalar(int(Operation.DELETE), operation.type)))
        self.filled = new.append_column(_MOVED, moved).filter(fills)
        self.vacated = old.filter(leaves)


def _keeps_key(old: pa.Table, new: pa.Table) -> pa.Array:
    """Return True for each row whose key stays as it is."""
    same = as_arrow(np.ones(len(old), bool))
    old, new = comparable(old), comparable(new)
    for name in old.column_names:
        mine, its = (rows.column(name).combine_chunks() for rows in (old, new))
        same = pc.and_(same, pc.fill_null(pc.equal(mine, its), False))
    return same
