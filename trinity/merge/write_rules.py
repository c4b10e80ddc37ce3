"""Rules for single rows, which sinks check on write, so that no later read or compaction fails on a row (L8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from trinity.errors import TrinityError
from trinity.merge.functions import FieldFunction, aggregate_function
from trinity.merge.properties import MergeEngine
from trinity.merge.row_kinds import retracts
from trinity.merge.spec import MergeSpec
from trinity.names import TableName


@dataclass(frozen=True)
class WriteRules:
    """The rules for the rows of one table. Picklable. A deduplicate table takes any row.

    Attributes:
        table: the table's name, for messages.
        spec: its merge rules.
        indexes: column -> its index in a page.
    """

    table: TableName
    spec: MergeSpec
    indexes: dict[str, int]

    def check(self, page: pa.RecordBatch) -> None:
        """Check a page of rows to be appended.

        Raises:
            TrinityError: INVALID_ARGUMENTS for a retract that the engine or a function cannot take (D2, D4, E2), or a
                value that a function cannot read; CONSTRAINT_VIOLATION for a nested key that breaks its null strategy.
        """
        retracts = self._retracts(page)
        if retracts is not None:
            self._check_retracts(page, retracts)
        for column, function in self.spec.functions.items():
            self._check_values(column, function, page.column(self.indexes[column]).drop_null())

    def _retracts(self, page: pa.RecordBatch) -> pa.Array | None:
        """Return the mask of the rows that are retracts; None if there are none, or if they need no check."""
        if self.spec.row_kind is None or self.spec.ignore_delete or self.spec.remove_on_delete:
            return None
        mask = retracts(page.column(self.indexes[self.spec.row_kind]))
        return mask if mask.true_count else None

    def _check_retracts(self, page: pa.RecordBatch, retracts: pa.Array) -> None:
        if self.spec.engine is MergeEngine.FIRST_ROW:
            raise self._refused(
                "merge engine first-row keeps what came first; set 'ignore-delete' to drop retracts (E2)"
            )
        if self.spec.engine is MergeEngine.PARTIAL_UPDATE and not self.spec.groups:
            raise self._refused(
                "a partial-update table takes them with 'ignore-delete', 'partial-update.remove-record-on-delete' or "
                "sequence groups (D2)"
            )
        for column, function in self.spec.functions.items():
            if not function.ignore_retract:
                self._check_retract(page, column, function, self._taking_part(page, column, retracts))

    def _taking_part(self, page: pa.RecordBatch, column: str, rows: pa.Array) -> pa.Array:
        """Return the mask of those rows that take part in the column's group (G2)."""
        group = self.spec.group_of(column)
        if group is None:
            return rows
        written = [pc.is_valid(page.column(self.indexes[c])) for c in group.sequence]
        return pc.and_(rows, reduce(pc.or_, written))

    def _check_retract(self, page: pa.RecordBatch, column: str, named: FieldFunction, rows: pa.Array) -> None:
        if not rows.true_count:
            return
        function = aggregate_function(named.name)
        assert function is not None
        if not function.retractable:
            raise self._refused(
                f"function '{named.name}' of column '{column}' cannot take a value back; set "
                f"'fields.{column}.ignore-retract' to leave the column as it is (D4)"
            )
        if problem := function.bad_retract(page.column(self.indexes[column]).filter(rows).drop_null()):
            raise self._refused(f"function '{named.name}' of column '{column}' {problem} (D4)")

    def _check_values(self, column: str, named: FieldFunction, values: pa.Array) -> None:
        function = aggregate_function(named.name)
        assert function is not None
        if len(values) and (found := function.bad_value(values, named.options)):
            code, problem = found
            raise TrinityError(
                code, f"Column '{column}' of table '{self.table}', function '{named.name}': {problem} (L8)."
            )

    def _refused(self, why: str) -> TrinityError:
        return TrinityError(
            "INVALID_ARGUMENTS",
            f"A retract (-U or -D in column '{self.spec.row_kind}') cannot be written to table '{self.table}': {why}.",
        )
