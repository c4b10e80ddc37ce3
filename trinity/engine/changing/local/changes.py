"""The changes of a row-changing statement as Arrow pages: the same rows as Spark's (M1).

They are pages as a row-change processor takes them (:mod:`trinity.engine.changing.processors`): the layout columns,
the row id, the merge row of the first WHEN that holds, and its refusal: NULL, or the row's error as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow
from trinity.engine.changing.engine_rules import without_effect
from trinity.engine.changing.local.compiled import CompiledCase, CompiledStatement, target_field
from trinity.engine.changing.local.joined import Joined
from trinity.engine.changing.plan import StatementPlan
from trinity.engine.program import When
from trinity.engine.writing.ingest import REFUSAL
from trinity.merge.arrow.fold import beats
from trinity.merge.kernels.keys import comparable
from trinity.spi import Column, Operation, arrow_type

FILE_FIELD, PLACE_FIELD = "file", "pos"
"""Columns of a plain target's rows: the fields of their row id."""


@dataclass(frozen=True)
class LocalChanges:
    """The changes that a compiled statement makes to the rows of its target.

    Attributes:
        joined: the columns of the join's rows that the join itself reads.
        kept: columns that no UPDATE changes, and that sinks keep as they are stored: they are NULL in the changes.
    """

    plan: StatementPlan
    compiled: CompiledStatement
    joined: frozenset[str]
    kept: frozenset[str]

    @cached_property
    def fields(self) -> list[Column]:
        """The columns of the target that are read."""
        definition = self.plan.definition
        names = {*self.plan.insert_layout, *definition.primary_key}
        if self.plan.spec is not None:
            names.update(*self.plan.row_id_columns)
        for case in self.compiled.cases:
            if case.case.operation is Operation.UPDATE:
                names.update(c.name for c in definition.visible if c.name not in (case.values.keys() | self.kept))
        read = self.compiled.fields | self.joined
        return [c for c in definition.visible if c.name in names or target_field(definition, c.name) in read]

    @cached_property
    def data_schema(self) -> pa.Schema:
        """The schema of the rows that cases make: all columns of the table."""
        return pa.schema([(c.name, arrow_type(c.type)) for c in self.plan.definition.columns])

    @cached_property
    def row_id_type(self) -> pa.StructType:
        """The type of the row id."""
        if self.plan.spec is None:
            return pa.struct([(FILE_FIELD, pa.string()), (PLACE_FIELD, pa.int64())])
        ordered, others = self.plan.row_id_columns
        return pa.struct([(name, self.data_schema.field(name).type) for name in (*ordered, *others)])

    def of(self, joined: Joined) -> Iterator[pa.RecordBatch]:
        """Yield the changes of joined rows: layout columns, row id, merge row, refusal.

        Raises:
            TrinityError: the error of evaluating an expression, as Spark raises it.
        """
        when, rows = joined
        cases = [(number, case) for number, case in enumerate(self.compiled.cases) if case.case.when is when]
        for number, case in cases:
            if not rows.num_rows:
                return
            selected = rows
            if case.condition is not None:
                holds = pc.fill_null(case.condition.evaluate(rows).cast(pa.bool_()), False)
                selected = rows.filter(holds)
                if number != cases[-1][0]:
                    rows = rows.filter(pc.invert(holds))
            if case.case.operation is not None and selected.num_rows:
                yield self._changed(number, case, selected)
            if case.condition is None:
                return

    def _changed(self, number: int, case: CompiledCase, rows: pa.RecordBatch) -> pa.RecordBatch:
        data, refusal = self._row(case, rows)
        refusal = self._row_errors(number, case, rows, data, refusal)
        layout = [self._stored_column(rows, name) for name in self.plan.insert_layout]
        present = None if case.case.when is When.NOT_MATCHED else True
        assert case.case.operation is not None
        facts = [
            pa.repeat(pa.scalar(value, kind), rows.num_rows)
            for value, kind in (
                (present, pa.bool_()), (int(case.case.operation), pa.int8()), (number, pa.int32())
            )
        ]  # fmt: skip
        names = [*self.data_schema.names, "present", "operation", "case_number"]
        merge_row = pa.StructArray.from_arrays([*data.columns, *facts], names=names)
        columns = [*layout, self._row_id(number, case.case.when, rows), merge_row, refusal]
        return pa.RecordBatch.from_arrays(columns, names=[*map(str, range(len(layout) + 2)), REFUSAL])

    # -- what the join's rows become ----------------------------------------------------------------------

    def _stored_column(self, rows: pa.RecordBatch, name: str) -> pa.Array:
        return rows.column(target_field(self.plan.definition, name))

    def _row_id(self, number: int, when: When, rows: pa.RecordBatch) -> pa.StructArray:
        if when is When.NOT_MATCHED:
            return pa.nulls(rows.num_rows, self.row_id_type)
        if self.plan.spec is None:
            parts = [rows.column(FILE_FIELD), rows.column(PLACE_FIELD)]
        else:
            ordered, others = self.plan.row_id_columns
            dies = number in self.plan.deleting_cases
            kinds = self.data_schema
            parts = [self._stored_column(rows, name) for name in ordered]
            parts += [
                self._stored_column(rows, name) if dies else pa.nulls(rows.num_rows, kinds.field(name).type)
                for name in others
            ]
        return pa.StructArray.from_arrays(parts, fields=list(self.row_id_type))

    def _row(self, case: CompiledCase, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """Return the new rows, and the error of each with a value that does not fit, as JSON."""
        data, refusal = list[pa.Array](), pa.nulls(rows.num_rows, pa.string())
        for column, field in zip(self.plan.definition.columns, self.data_schema, strict=True):
            if column.name in case.values:
                value, errors = case.values[column.name].evaluate(rows)
                refusal = refusal if errors is None else pc.coalesce(refusal, errors)
            elif case.case.operation is Operation.UPDATE and not column.hidden and column.name not in self.kept:
                value = self._stored_column(rows, column.name)
            else:
                value = pa.nulls(rows.num_rows, field.type)
            data.append(value)
        return pa.RecordBatch.from_arrays(data, schema=self.data_schema), refusal

    # -- what is refused ----------------------------------------------------------------------------------

    def _row_errors(
        self, number: int, case: CompiledCase, rows: pa.RecordBatch, data: pa.RecordBatch, refusal: pa.Array
    ) -> pa.Array:
        """Return the errors of rows that lose to the stored ones (M9), or that a constraint forbids (M6)."""
        spec = self.plan.spec
        for group in self.plan.refused_groups(case.case):
            error = without_effect(self.plan.program, group).to_json()
            stale = _has_stale_sequence(*self._side_by_side(rows, data, group.sequence))
            refusal = pc.if_else(stale, error, refusal)
        if spec is not None and self.plan.may_lose(case.case):
            earlier, later = self._side_by_side(rows, data, spec.ordering)
            loses = as_arrow(beats(spec, earlier, later))
            refusal = pc.if_else(loses, self.plan.loses_error().to_json(), refusal)
        checks = self.compiled.checks
        if checks is None or case.case.operation is Operation.DELETE or refusal.null_count < len(refusal):
            return refusal
        broken = checks.violation(data)  # only the first refusal is raised, so that any row may have it
        return refusal if broken is None else pa.repeat(broken.to_json(), len(refusal))

    def _side_by_side(
        self, rows: pa.RecordBatch, data: pa.RecordBatch, names: Sequence[str]
    ) -> tuple[pa.Table, pa.Table]:
        """Return the named columns of the stored rows, and of the new ones."""
        wanted = list(dict.fromkeys(names))
        earlier = pa.Table.from_arrays([self._stored_column(rows, name) for name in wanted], names=wanted)
        return earlier, pa.Table.from_batches([data.select(wanted)])


def _has_stale_sequence(old: pa.Table, new: pa.Table) -> pa.Array:
    """Return True where a new sequence is NULL, or smaller than the stored one; NULL is smallest (G2, G3)."""
    old, new = comparable(old), comparable(new)
    nothing = pa.array([True] * len(new))
    smaller = pa.array([False] * len(new))
    for name in reversed(new.column_names):
        mine, other = new.column(name).combine_chunks(), old.column(name).combine_chunks()
        nothing = pc.and_(nothing, pc.is_null(mine))
        less = pc.or_(pc.fill_null(pc.less(mine, other), False), pc.and_(pc.is_null(mine), pc.is_valid(other)))
        same = pc.or_(pc.fill_null(pc.equal(mine, other), False), pc.and_(pc.is_null(mine), pc.is_null(other)))
        smaller = pc.or_(less, pc.and_(same, smaller))
    return pc.or_(nothing, smaller)
