"""One attempt at a row-changing statement: from its plan to the fragments of its sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from trinity.engine.changing.change_tasks import Written
from trinity.engine.changing.engine_rules import check_mark
from trinity.engine.changing.match_checks import MergeGuard
from trinity.engine.changing.plan import StatementPlan
from trinity.engine.changing.processors import RowChangeProcessor, processor_for
from trinity.engine.executes import NotLocal
from trinity.engine.writing.ingest import PageConformer, StoredForm, plan_ingest
from trinity.spi import Column as TableColumn
from trinity.spi import DataFile, removal
from trinity.storage.parquet_files import live_rows_in
from trinity.target import Target


@dataclass(frozen=True)
class Attempt(ABC):
    """An execution of a statement's plan on its target."""

    table: Target
    plan: StatementPlan

    def write(self) -> Written | NotLocal:
        """Write the changes; return the sinks' fragments and the counts, or why only Spark can write them."""
        if (columns := self.plan.partition_columns) is not None:
            return self._remove_files(columns)
        if self.plan.key_changing_cases and self.plan.definition.keyed:
            check_mark(self.plan.program, self.plan.definition)
        return self._write_rows()

    @abstractmethod
    def _write_rows(self) -> Written | NotLocal:
        """Write the changes row by row."""

    @abstractmethod
    def selected(self, condition: str, columns: Sequence[TableColumn]) -> list[DataFile]:
        """Return the plan's files for whose partition values a condition on partition columns is true."""

    @abstractmethod
    def described(self) -> str:
        """Return the plan as text, and who executes it."""

    def _remove_files(self, columns: Sequence[TableColumn]) -> Written:
        """Return fragments and counts of a metadata-only DELETE from a plain table, of all rows or partitions (M12)."""
        condition = self.plan.program.cases[0].condition
        files = self.plan.files if condition is None else self.selected(str(condition), columns)
        counts = {"updated": 0, "deleted": live_rows_in(files), "inserted": 0}
        return [removal(f.path) for f in files], counts

    # -- what sinks are given -----------------------------------------------------------------------------

    @property
    def processor(self) -> RowChangeProcessor:
        """The processor of the table's paradigm."""
        plan, key = self.plan, self.plan.definition.primary_key
        names = [c.name for c in plan.definition.columns]
        return processor_for(plan.merge.paradigm, names, plan.insert_layout, plan.row_id, key)

    @property
    def guard(self) -> MergeGuard:
        """The checks that find duplicate matches and colliding keys."""
        definition, key = self.plan.definition, self.plan.definition.primary_key
        names = [c.name for c in definition.columns]
        return MergeGuard(self.plan.table, key or ("file", "pos"), tuple(map(names.index, key)), key)

    def conformers(self, data: pa.Schema, row_id: pa.DataType) -> tuple[PageConformer, PageConformer | None]:
        """Return the converters to storage form for the data columns and, in a keyed table, for the row id."""
        definition, storage = self.plan.definition, self.plan.merge.insert.target.storage
        conformer = self.conformer(data)
        if not definition.keyed:
            return conformer, None
        fields = list(row_id)
        columns = [definition.column(f.name) for f in fields]
        stored = [storage.field(definition.columns.index(c)) for c in columns]
        only = replace(definition, columns=tuple(columns), primary_key=())  # stored keys are normalized already
        return conformer, plan_ingest(StoredForm.of(self.table, only, pa.schema(stored)), pa.schema(fields))

    def conformer(self, given: pa.Schema) -> PageConformer:
        """Return the converter to storage form for rows of a schema."""
        storage = self.plan.merge.insert.target.storage
        return plan_ingest(StoredForm.of(self.table, self.plan.definition, storage), given)
