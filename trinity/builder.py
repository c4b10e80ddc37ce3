"""``table.merge(...)``: MERGE from data, in the style of Delta's ``DeltaTable.merge``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.calls import public
from trinity.engine.program import Case, Counts, Expression, Program, When
from trinity.errors import TrinityError
from trinity.spi import Operation, TransactionId
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@public
@dataclass(frozen=True)
class MergeBuilder:
    """A MERGE that is being built. Each ``when_`` method returns a new builder; :meth:`execute` runs the MERGE.

    Conditions and values are Spark SQL text or Columns, over the target ``t`` and the source ``s`` (or the alias of the
    source DataFrame). WHEN clauses are tried in the order in which they are added (M1).
    """

    table: Target
    source: DataFrame | pa.Table
    on: Expression
    cases: tuple[Case, ...] = ()

    def when_matched_update(
        self, values: Mapping[str, Expression], condition: Expression | None = None
    ) -> MergeBuilder:
        """Add WHEN MATCHED THEN UPDATE SET; ``values`` maps columns to their new values."""
        return self._with(When.MATCHED, Operation.UPDATE, condition, values)

    def when_matched_update_all(self, condition: Expression | None = None) -> MergeBuilder:
        """Add WHEN MATCHED THEN UPDATE SET *: each column takes the value of the source's column of that name."""
        return self._with(When.MATCHED, Operation.UPDATE, condition, None)

    def when_matched_delete(self, condition: Expression | None = None) -> MergeBuilder:
        """Add WHEN MATCHED THEN DELETE."""
        return self._with(When.MATCHED, Operation.DELETE, condition, None)

    def when_not_matched_insert(
        self, values: Mapping[str, Expression], condition: Expression | None = None
    ) -> MergeBuilder:
        """Add WHEN NOT MATCHED THEN INSERT; ``values`` maps columns to values, others take their DEFAULT, else NULL."""
        return self._with(When.NOT_MATCHED, Operation.INSERT, condition, values)

    def when_not_matched_insert_all(self, condition: Expression | None = None) -> MergeBuilder:
        """Add WHEN NOT MATCHED THEN INSERT *: each column takes the value of the source's column of that name."""
        return self._with(When.NOT_MATCHED, Operation.INSERT, condition, None)

    def when_not_matched_by_source_update(
        self, values: Mapping[str, Expression], condition: Expression | None = None
    ) -> MergeBuilder:
        """Add WHEN NOT MATCHED BY SOURCE THEN UPDATE SET; ``values`` maps columns to their new values."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Operation.UPDATE, condition, values)

    def when_not_matched_by_source_delete(self, condition: Expression | None = None) -> MergeBuilder:
        """Add WHEN NOT MATCHED BY SOURCE THEN DELETE."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Operation.DELETE, condition, None)

    def execute(self, *, txn: TransactionId | None = None) -> Counts:
        """Run the MERGE.

        Args:
            txn: (application, version): a retry with the same or a lower version does nothing (L4).

        Returns:
            rows updated, deleted and inserted, and the version of the table after it.

        Raises:
            TrinityError: INVALID_ARGUMENTS without a WHEN clause; MERGE_TARGET_ROW_MULTIPLE_MATCHES (M2),
                CONSTRAINT_VIOLATION, TYPE_MISMATCH, COLUMN_NOT_FOUND, NUMERIC_VALUE_OUT_OF_RANGE, TRANSACTION_CONFLICT;
                the table is then as it was.
        """
        from trinity.engine.changing import statement as dml

        if not self.cases:
            raise TrinityError("INVALID_ARGUMENTS", f"The merge into '{self.table.name}' has no WHEN clause; add one.")

        program = Program("MERGE", self.cases, self.source, self.on, source_alias=self._alias or "s", unguarded=True)
        return dml.run(self.table, lambda _: nullcontext(program), txn)

    @property
    def _alias(self) -> str | None:
        from trinity.engine.appending.append import is_spark_frame
        from trinity.spark.remote import alias_of

        return alias_of(self.source) if is_spark_frame(self.source) else None

    def _with(
        self,
        when: When,
        operation: Operation,
        condition: Expression | None,
        values: Mapping[str, Expression] | None,
    ) -> MergeBuilder:
        return replace(self, cases=(*self.cases, Case(when, operation, condition, values)))
