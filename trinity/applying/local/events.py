"""Events of Arrow data: their values in the types of the target's columns, in arrival order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trinity.applying.arguments import START_AT
from trinity.applying.plan import DELETE, SEQUENCE, WHERE, HistoryPlan
from trinity.applying.upserts import deleted, deleting_here, refuse_nulls
from trinity.arrays import as_arrow
from trinity.definition.columns import columns_of
from trinity.engine.appending.append import source_rows
from trinity.engine.changing.local.source import bounds_of
from trinity.engine.executes import NotLocal
from trinity.engine.values.local.assignment import assignment
from trinity.engine.writing.casts import cast_array
from trinity.engine.writing.ingest import raise_refusal
from trinity.spi import Column, parse_given_type, type_text


def typed_events(plan: HistoryPlan, source: pa.Table) -> pa.Table | NotLocal:
    """Return the events' stored columns under the target's names, with ``DELETE`` and ``SEQUENCE``.

    Raises:
        TrinityError: the refusal of an event; TYPE_MISMATCH for a column whose type cannot be assigned to the target's;
            as :func:`~trinity.applying.upserts.deleting_here`.
    """
    table, arguments = plan.table, plan.arguments
    gone = _deleted(plan, source)
    if isinstance(gone, NotLocal):
        return gone
    refuse_nulls(table, source, "key", arguments.keys)
    refuse_nulls(table, source, "sequence", arguments.sequence)
    rows, values = source_rows(source.select(list(plan.assigned)), table.session.timezone), dict[str, pa.Array]()
    for name, column in plan.assigned.items():
        given = rows.column(name).combine_chunks()
        how = assignment(parse_given_type(type_text(given.type)), column, str(table.name), WHERE)
        if isinstance(how, NotLocal):
            return how
        fitting = how.cast(given)
        if (refusals := how.refusals(given, fitting)) is not None:
            raise_refusal(refusals)
        values[name] = cast_array(fitting, column.to_arrow().type, f"column '{column.name}'", "UTC")
    kind = plan.definition.column(START_AT).to_arrow().type
    parts = [values[name] for name in arguments.sequence]
    sequence = parts[0] if len(parts) == 1 else pa.StructArray.from_arrays(parts, fields=list(kind))
    stored = {c.name: values[name] for name, c in plan.assigned.items() if c.name != plan.start}
    return pa.table({**stored, DELETE: gone, SEQUENCE: sequence})


def _deleted(plan: HistoryPlan, source: pa.Table) -> pa.Array | pa.ChunkedArray | NotLocal:
    if plan.arguments.deletes is None:
        return as_arrow(np.zeros(len(source), bool))
    condition = deleting_here(columns_of(source.schema), plan.arguments, lambda: plan.table.session.timezone)
    return condition if isinstance(condition, NotLocal) else deleted(source, condition)


def key_bounds(events: pa.Table, bounded: Sequence[Column]) -> Mapping[str, tuple[Any, Any]] | None:
    """Return key column -> (smallest, largest) value of the events; None without events."""
    if not len(events):
        return None
    found = {column.name: bounds_of(events.column(column.name)) for column in bounded}
    return {name: bounds for name, bounds in found.items() if bounds is not None}
