"""Events of the source: their values in the types of the target's columns, in arrival order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from trinity.applying.arguments import START_AT, ApplyArguments, null_value
from trinity.applying.plan import DELETE, SEQUENCE, WHERE, HistoryPlan
from trinity.engine.changing.spark.source import bounding
from trinity.engine.sql_permissions import guard_expression
from trinity.engine.values.spark.assignment import assigned, check_boolean, types_of
from trinity.engine.writing.ingest import REFUSAL
from trinity.errors import TrinityError
from trinity.spark.expressions import one_expression
from trinity.spark.texts import as_stored
from trinity.spark_names import Column, DataFrame, F, StorageLevel, StructType
from trinity.spi import Column as TableColumn
from trinity.spi import TableDefinition, parse_type
from trinity.syntax.quoting import quoted
from trinity.target import Target

EVENT_ARRIVAL: Final = "_trinity_event_arrival"
"""BIGINT: position of the event in the arrival order of its batch (K4)."""


@dataclass(frozen=True)
class Events:
    """The persisted events of a batch.

    Attributes:
        rows: the events' stored columns in the target's types and names, with :data:`~trinity.applying.plan.DELETE`,
            :data:`~trinity.applying.plan.SEQUENCE` and :data:`EVENT_ARRIVAL`.
        count: the number of events.
        bounds: key column -> (smallest, largest) value.
    """

    rows: DataFrame
    count: int
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def deleting(table: Target, source: DataFrame, arguments: ApplyArguments) -> Column:
    """Return the condition, never NULL, of the events that delete their row.

    Raises:
        TrinityError: SYNTAX_ERROR, PERMISSION_DENIED, COLUMN_NOT_FOUND, TYPE_MISMATCH for an invalid condition.
    """
    condition = arguments.deletes
    if condition is None:
        return F.lit(False)
    if isinstance(condition, str):
        one_expression(source.sparkSession, condition, "apply_as_deletes")
        guard_expression(table.session, condition)
        condition = F.expr(condition)
    (kind,) = types_of(source, [condition])
    check_boolean(kind, "apply_as_deletes")
    return F.coalesce(condition.cast("boolean"), F.lit(False))


def missing(table: Target, arguments: ApplyArguments, kinds: StructType) -> Column:
    """Return the error of events with a NULL in their key or sequence, as JSON; NULL for the others."""
    found = F.lit(None).cast("string")
    for what, names in (("key", arguments.keys), ("sequence", arguments.sequence)):
        for name in names:
            error = null_value(str(table.name), what, name).to_json()
            # a column that is not nullable needs no check
            if kinds[name].nullable:
                found = F.coalesce(found, F.when(F.col(quoted(name)).isNull(), F.lit(error)))
    return found


def typed_events(plan: HistoryPlan, source: DataFrame) -> DataFrame:
    """Return the events of :attr:`Events.rows`, with :data:`~trinity.engine.writing.ingest.REFUSAL`; lazy.

    Raises:
        TrinityError: TYPE_MISMATCH for a column whose type cannot be assigned to the target's; as :func:`deleting`.
    """
    table, arguments = plan.table, plan.arguments
    gone, refusals, found = deleting(table, source, arguments), [missing(table, arguments, source.schema)], []
    values: dict[str, Column] = {}
    for name, column in plan.assigned.items():
        value, refusal = assigned(F.col(quoted(name)), source.schema[name].dataType, column, str(table.name), WHERE)
        refusals += [refusal] if refusal is not None else []
        values[name] = as_stored(value, column)
        if column.name != START_AT:
            found.append(values[name].alias(column.name))
    parts = [values[name] for name in arguments.sequence]
    sequence = parts[0] if len(parts) == 1 else F.struct(*_fields(parts, arguments.sequence, plan.definition))
    arrival = F.monotonically_increasing_id().alias(EVENT_ARRIVAL)
    refusal = F.coalesce(*refusals).alias(REFUSAL)
    return source.select(*found, gone.alias(DELETE), sequence.alias(SEQUENCE), arrival, refusal)


def _fields(parts: Sequence[Column], names: Sequence[str], definition: TableDefinition) -> list[Column]:
    """Return the parts of a sequence under the names of START_AT's fields."""
    known = parse_type(definition.column(START_AT).type)
    return [part.alias(name) for part, name in zip(parts, known.fields or names, strict=True)]


@contextmanager
def persisted_events(events: DataFrame, bounded: Sequence[TableColumn]) -> Iterator[Events]:
    """Persist the events of :func:`typed_events` within the context, check all, and find the bounds of some columns.

    Raises:
        TrinityError: the refusal of an event; CONSTRAINT_VIOLATION for a NULL in its key or sequence.
    """
    persisted = events.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        wanted = [f(bounding(F.col(quoted(c.name)), c)) for c in bounded for f in (F.min, F.max)]
        seen = persisted.agg(F.count(F.lit(1)), F.first(REFUSAL, ignorenulls=True), *wanted).collect()[0]
        if seen[1] is not None:
            raise TrinityError.from_json(seen[1])
        bounds = {c.name: (seen[2 + 2 * i], seen[3 + 2 * i]) for i, c in enumerate(bounded)}
        yield Events(persisted.drop(REFUSAL), int(seen[0]), bounds)
    finally:
        persisted.unpersist()
