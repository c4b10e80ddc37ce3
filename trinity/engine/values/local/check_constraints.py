"""CHECK constraints and DEFAULTs that this process evaluates, with the results that Spark has (M6, N2).

They may use the expressions of :mod:`trinity.engine.expressions`; all others are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from trinity.definition.checks import SHOWN_CHARACTERS, constrained_columns, refuse_folded, violation_text
from trinity.engine.executes import NotLocal
from trinity.engine.expressions import ONE_ROW, Compiled, Refused, Scope, compile_expression, compile_predicate
from trinity.engine.values.local.assignment import assignment
from trinity.engine.writing.casts import converts
from trinity.errors import TrinityError
from trinity.merge.arrow.fold import is_deleted
from trinity.merge.spec import merge_spec
from trinity.spi import Check, Column, TableDefinition, parse_type


@dataclass(frozen=True)
class LocalChecks:
    """The constraints of a table, to be evaluated over pages of its rows.

    Attributes:
        table: full name, for messages.
        definition: the table.
        conditions: the condition of each constraint.
    """

    table: str
    definition: TableDefinition
    conditions: tuple[Compiled, ...]

    @classmethod
    def of(cls, definition: TableDefinition, table: str, timezone: Callable[[], str]) -> LocalChecks | NotLocal:
        """Compile the constraints of a table.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, TYPE_MISMATCH for what is no condition; NOT_SUPPORTED where rows fold by
                column.
        """
        refuse_folded(definition)
        scope = Scope.of(definition.visible, is_stored_expression=True)
        found = []
        for check in definition.checks:
            condition = compile_predicate(check.expression, scope, timezone)
            if isinstance(condition, NotLocal):
                return NotLocal(f"CHECK constraint '{check.name}': {condition.reason}")
            found.append(condition)
        return cls(table, definition, tuple(found))

    def check(self, page: pa.RecordBatch) -> None:
        """Check rows that are about to be stored. NULL passes, and so does a row that deletes its key.

        Args:
            page: the rows in storage form, all columns in the table's order.

        Raises:
            TrinityError: CONSTRAINT_VIOLATION of the first violated constraint, naming the first row that violates it.
        """
        if (error := self.violation(page)) is not None:
            raise error

    def violation(self, page: pa.RecordBatch) -> TrinityError | None:
        """Return the error that :meth:`check` raises for rows; None when all of them are valid."""
        names = [c.name for c in self.definition.columns]
        rows = pa.RecordBatch.from_arrays(page.columns, names=names)
        for check, condition in zip(self.definition.checks, self.conditions, strict=True):
            violated = pc.fill_null(pc.invert(condition.evaluate(self._rows_to_check(check, rows))), False)
            if violated.true_count:
                return self._violation(check, self._rows_to_check(check, rows).filter(violated).slice(0, 1))
        return None

    def _rows_to_check(self, check: Check, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that have to meet a constraint: all rows for one of the format's own, else live rows."""
        if check.every or not self.definition.keyed:
            return rows
        deleted = is_deleted(merge_spec(self.definition), pa.Table.from_batches([rows])).combine_chunks()
        return rows.filter(pc.invert(deleted)) if deleted.true_count else rows

    def _violation(self, check: Check, row: pa.RecordBatch) -> TrinityError:
        columns = constrained_columns(self.definition, check)
        shown = ", ".join(f"{name} = {_as_spark_text(row.column(name)[0].as_py())}" for name in columns) or "always"
        head, end = violation_text(self.table, check)
        return TrinityError("CONSTRAINT_VIOLATION", f"{head}{shown}{end}")


def _as_spark_text(value: Any) -> str:
    """Return a value as text: common values as Spark's CAST to STRING writes them."""
    if value is None:
        return "NULL"
    return (str(value).lower() if isinstance(value, bool) else str(value))[:SHOWN_CHARACTERS]


def constant_of(column: Column) -> Compiled | NotLocal:
    """Return a column's DEFAULT as a constant of the column's type; Spark's if it depends on the time zone."""
    try:
        found = compile_expression(column.default or "NULL", Scope((), is_stored_expression=True), no_zone)
        if isinstance(found, NotLocal) or found.type == parse_type(column.type):
            return found
        return _as_stored_number(found, column)
    except TrinityError as error:  # for the name of a column, say: Spark reports that it is no constant
        return NotLocal(error.message)


def _as_stored_number(value: Compiled, column: Column) -> Compiled | NotLocal:
    """Convert a number to a column's type, as it is stored there; or return why only Spark converts it."""
    kind, why = (
        parse_type(column.type),
        NotLocal(f"DEFAULT {column.default} of '{column.name}' is of type {value.type}"),
    )
    stored = assignment(value.type, column, "", "DEFAULT") if converts(value.type, kind) else why
    if isinstance(stored, NotLocal):
        return stored
    given = value.evaluate(ONE_ROW)
    kept = stored.cast(given)
    return why if kept.null_count > given.null_count else Compiled(kind, lambda _: kept[0])


def no_zone() -> NoReturn:
    """Raise Refused: to be called as the time zone of a session where it is not known, so that Spark is asked."""
    raise Refused("its value depends on the session's time zone")
