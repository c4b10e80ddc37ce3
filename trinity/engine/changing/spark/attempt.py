"""The execution of row changes as DataFrames of Spark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from trinity.engine.appending.append import source_frame
from trinity.engine.changing.attempt import Attempt
from trinity.engine.changing.begin import Begin
from trinity.engine.changing.change_tasks import Written
from trinity.engine.changing.plan import StatementPlan, written_unique_keys
from trinity.engine.changing.spark.changes import SparkChanges
from trinity.engine.changing.spark.char_comparisons import padded_program
from trinity.engine.changing.spark.live_keys import check_keys, check_unique
from trinity.engine.changing.spark.run_merge_sinks import Distribution, write_changes, write_upserts
from trinity.engine.changing.spark.source import SparkSource, compared, persisted_source
from trinity.engine.program import Program, When
from trinity.engine.reading.spark.merged_read import merged_read
from trinity.engine.reading.spark.scan import located_scan
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.engine.sql_permissions import guard_program
from trinity.engine.writing.ingest import REFUSAL
from trinity.errors import TrinityError
from trinity.hidden import FILE_NUMBER, MERGE_ROW
from trinity.predicates.conditions import same_expression
from trinity.spark.frames import local_frame
from trinity.spark.remote import parallelism, plan_text
from trinity.spark.types import arrow_schema
from trinity.spark_names import DataFrame, F, StorageLevel
from trinity.spi import Column as TableColumn
from trinity.spi import DataFile, Operation, parse_type
from trinity.syntax.quoting import quoted
from trinity.syntax.sql_text import tree_of

_ROWS_PER_TASK: Final = 100_000
"""Rows of an upsert for each task: the source's own tasks write them, and are coalesced if they have fewer."""


@dataclass(frozen=True)
class SparkAttempt(Attempt):
    """An attempt at a statement that Spark executes."""

    source: SparkSource

    @classmethod
    @contextmanager
    def of(cls, begin: Begin, program: Program) -> Iterator[SparkAttempt]:
        """Plan a statement, persist its source, and collect the source's statistics.

        Raises:
            TrinityError: as :meth:`Begin.plan`; the errors of the analysis.
        """
        session = begin.table.session
        if program.unguarded:
            guard_program(session, program)
        if isinstance(program.source, pa.Table):
            program = replace(program, source=source_frame(session.spark, program.source))
        plan = begin.plan(program)
        equalities = compared(session.spark, plan)
        plan = replace(plan, program=padded_program(plan.program, plan.splits.definition))
        with persisted_source(plan, equalities) as source:
            yield cls(begin.table, plan.of_source(source, equalities), source)

    @cached_property
    def changes(self) -> SparkChanges:
        """The changes of the target's rows."""
        return SparkChanges(self.plan)

    def _changes(self) -> DataFrame:
        return self.changes.of(self._target())

    def _target(self) -> DataFrame:
        spark = self.table.session.spark
        if not self.plan.definition.keyed:
            rows = located_scan(spark, self.plan.files, self.plan.splits.storage, self.plan.row_id)
            rows = to_user_columns(rows, self.plan.splits, (self.plan.row_id,))
            return self._matchable_rows(rows)
        splits = replace(self.plan.splits, files=tuple(self.plan.files))
        where = None if self.plan.needs_all_rows else self.plan.facts.where(self.plan.definition.primary_key)
        return merged_read(spark, splits, where, self._keys())

    def _matchable_rows(self, rows: DataFrame) -> DataFrame:
        """Return only the rows that a source row can match, so that the outer join exchanges fewer."""
        values = self.source.values
        unmatched = any(case.when is When.NOT_MATCHED for case in self.plan.program.cases)
        if values is None or self.plan.needs_all_rows or not unmatched:
            return rows
        return rows.join(F.broadcast(values), values.columns, "left_semi").select(*map(quoted, rows.columns))

    def _keys(self) -> DataFrame | None:
        """Return the values that ON allows in key columns, to narrow the read below the fold; None without any."""
        values = self.source.values
        if values is None or self.plan.needs_all_rows:
            return None
        # below the fold a column has its stored name and type; that of TIME differs from the users' type
        definition, stored = self.plan.definition, self.plan.splits.storage.names
        key = [k for k in definition.primary_key if k in values.columns and k in stored]
        key = [k for k in key if parse_type(definition.column(k).type).name != "time"]
        return values.select(*map(quoted, key)) if key else None

    # -- writing ------------------------------------------------------------------------------------------

    def _write_rows(self) -> Written:
        if (found := self._upsert_merge()) is not None:
            return found
        changes = self._changes()
        if not self.plan.may_collide and not written_unique_keys(self.plan.program):
            return self._write_changes(changes)
        persisted = changes.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            if self.plan.may_collide:
                check_keys(self.table.session.spark, self.plan, persisted)
            if written_unique_keys(self.plan.program):
                check_unique(self.table.session.spark, self.plan, persisted)
            return self._write_changes(persisted)
        finally:
            persisted.unpersist()

    def selected(self, condition: str, columns: Sequence[TableColumn]) -> list[DataFile]:
        files = self.plan.files
        types = {FILE_NUMBER: "int", **{c.name: c.type for c in columns}}
        values = [(number, *(file.partition[c.name] for c in columns)) for number, file in enumerate(files)]
        rows = local_frame(self.table.session.spark, types, values).alias(self.plan.program.target_alias)
        return [files[row[0]] for row in rows.where(condition).select(FILE_NUMBER).collect()]

    def _upsert_merge(self) -> Written | None:
        """Write a MERGE that is an upsert, and return fragments and counts; None where the join has to execute it."""
        keys = self._upsert_keys()
        if keys is None or keys.dropna().distinct().count() < (self.source.rows or 0):
            return None
        matched = self._target().count()
        rows = self._upserted_rows()
        conformer = self.conformer(arrow_schema(rows.drop(REFUSAL).schema))
        number, sinks = _insert_case(self.plan), self.table.connector.sinks
        try:
            fragments = write_upserts(rows, sinks, self.plan.merge, number, conformer, self.plan.row_id)
        except TrinityError:  # a row cannot be stored; only the join knows which clause would store it
            return None
        return fragments, {"updated": matched, "deleted": 0, "inserted": (self.source.rows or 0) - matched}

    def _upsert_keys(self) -> DataFrame | None:
        """Return the keys of the source of an upsert, or None for another statement."""
        if not self.plan.definition.keyed or written_unique_keys(self.plan.program) or not _is_upsert(self.plan):
            return None
        keys = self._keys()
        return keys if keys is not None and len(keys.columns) == len(self.plan.definition.primary_key) else None

    def _upserted_rows(self) -> DataFrame:
        tasks = max(1, math.ceil((self.source.rows or 0) / _ROWS_PER_TASK))
        return self.changes.upserted(_insert_case(self.plan)).coalesce(tasks)

    def _write_changes(self, changes: DataFrame) -> Written:
        given = arrow_schema(changes.schema)
        data = pa.schema(list(given.field(MERGE_ROW).type)[: len(self.plan.definition.columns)])
        return write_changes(
            changes,
            self.table.connector.sinks,
            self.plan.merge,
            self.processor,
            self.conformers(data, given.field(self.plan.row_id).type),
            self._distribution(),
            self.guard,
        )

    def _distribution(self) -> Distribution:
        sinks = None
        if not self.plan.definition.keyed:  # a sink's work depends on the files that it rewrites, not on its rows
            sinks = max(1, parallelism(self.table.session.spark))
        return Distribution(self.plan.insert_layout, self.plan.merge.update_layout, sinks, self._shares_sink())

    def _shares_sink(self) -> bool:
        """Return True when the layout sends a new row to the sink of the row that it replaces.

        CHAR and VARCHAR do not: their texts get their final form only in storage.
        """
        definition, layout = self.plan.definition, self.plan.insert_layout
        if not definition.keyed:
            return not layout
        texts = [k for k in layout if parse_type(definition.column(k).type).has_length]
        return not self.plan.key_changing_cases and not texts

    # -- EXPLAIN ------------------------------------------------------------------------------------------

    def described(self) -> str:
        lines = [self.plan.described()]
        upsert = self._upsert_keys() is not None
        if upsert:
            lines.append("upsert: unless the source has a key twice, the target is read for the counts alone")
        return "\n".join(
            [*lines, "", "executed by Spark", plan_text(self._upserted_rows() if upsert else self._changes())]
        )


def _is_upsert(plan: StatementPlan) -> bool:
    """Return True when a MERGE writes every row of its source as it is, provided that no key occurs twice or is NULL.

    It is False, too, for keys that ON converts, or whose trailing blanks are cut when they are stored.
    """
    spec, cases = plan.spec, {case.when: case for case in plan.program.cases if case.condition is None}
    update, insert = cases.get(When.MATCHED), cases.get(When.NOT_MATCHED)
    if spec is None or spec.by_column or update is None or insert is None or len(plan.program.cases) != 2:
        return False
    if (
        (update.operation, insert.operation) != (Operation.UPDATE, Operation.INSERT)
        or plan.key_changing_cases
        or plan.inserting_cases
    ):
        return False
    given, updated = insert.values or {}, update.values or {}
    others = [c.name for c in plan.definition.visible if c.name not in spec.key]
    return (
        set(plan.equalities) == set(spec.key)
        and all(e.same and e.stored for e in plan.equalities.values())
        and all(plan.from_source(value) for value in given.values())
        and all(same_expression(tree_of(updated.get(name)), tree_of(given[name])) for name in others)
    )


def _insert_case(plan: StatementPlan) -> int:
    """Return the number of the INSERT case."""
    return next(n for n, case in enumerate(plan.program.cases) if case.operation is Operation.INSERT)
