"""One attempt at a row-changing statement: from a pinned version to the fragments of its sinks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from trinity.engine.changing.char_comparisons import padded_program
from trinity.engine.changing.conditions import ConditionFacts, Names, condition_facts
from trinity.engine.changing.engine_rules import check_mark, check_program
from trinity.engine.changing.equalities import Equality, compared
from trinity.engine.changing.guard import MergeGuard
from trinity.engine.changing.live_keys import check_keys
from trinity.engine.changing.plan import MERGE_ROW, MergePlan, clauses, expanded, update_case_columns
from trinity.engine.changing.processors import processor_for
from trinity.engine.changing.run_merge_sinks import Distribution, write_changes, write_upserts
from trinity.engine.changing.source import Source, held_source
from trinity.engine.changing.unique_keys import check_unique, concerned
from trinity.engine.changing.upsert_merge import insert_case, is_upsert
from trinity.engine.compacting.partitions import whole_files
from trinity.engine.program import Program, When
from trinity.engine.reading.merged_read import merged_read
from trinity.engine.reading.predicate import Predicate
from trinity.engine.reading.pruning import prune
from trinity.engine.reading.spark.columns import to_user_columns
from trinity.engine.reading.spark.scan import located_scan
from trinity.engine.spark.remote import parallelism, plan_text
from trinity.engine.spark.types import arrow_schema
from trinity.engine.target import Target
from trinity.engine.writing.ingest import PageConformer, StoredForm, plan_ingest
from trinity.engine.writing.run_sinks import REFUSAL
from trinity.errors import TrinityError
from trinity.spark_names import DataFrame, F, StorageLevel
from trinity.spi import (
    DataFile,
    MergeTableHandle,
    Operation,
    ReadScope,
    SplitSource,
    TableDefinition,
    TableHandle,
    parse_type,
    removal,
)
from trinity.syntax.quoting import quoted

__all__ = ["Attempt"]

_ROWS_PER_TASK: Final = 100_000
"""Rows of an upsert per task. They go to the sinks in the source's own tasks, of which small ones are coalesced."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a statement.

    Attributes:
        table: the target.
        program: the statement, expanded.
        merge: what ``begin_merge`` returned.
        splits: the pinned version.
        facts: what ON, or the WHERE, tells about the rows of the target.
        equalities: the equalities of ON that tell which values a target column may have.
        source: facts about the source.
    """

    table: Target
    program: Program
    merge: MergeTableHandle
    splits: SplitSource
    facts: ConditionFacts
    equalities: Mapping[str, Equality]
    source: Source

    @classmethod
    @contextmanager
    def begun(cls, table: Target, splits: SplitSource, program: Program) -> Iterator[Attempt]:
        """Begin an attempt: pin a version, and hold and examine the source.

        Args:
            table: the target.
            splits: the version.
            program: the statement.

        Raises:
            TrinityError: NOT_SUPPORTED when the connector cannot change rows; the errors of the analysis.
        """
        program = expanded(program, splits.definition, table.session.spark)
        check_program(program, splits.definition)
        pinned = table.handle.pinned(splits.version, splits.definition.id)
        merge = table.connector.metadata.begin_merge(pinned, update_case_columns(program))
        _same_version(merge.table, program)
        merge = replace(merge, deletes={f.path: f.deletes for f in splits.files if f.deletes})
        columns = program.source.columns if program.source is not None else ()
        source_alias = program.source_alias if program.source is not None else None
        names = Names(program.target_alias, source_alias, columns)
        condition = program.cases[0].condition if program.source is None else program.on
        facts = condition_facts(condition, splits.definition, names)
        equalities = compared(table.session.spark, program, splits.definition, facts.equalities)
        program = padded_program(program, splits.definition)
        with held_source(program, splits.definition, equalities, len(splits.files)) as source:
            yield cls(table, program, merge, splits, facts, equalities, source)

    @property
    def definition(self) -> TableDefinition:
        """The target as it was pinned."""
        return self.merge.insert.definition

    @cached_property
    def row_id(self) -> str:
        """Name of the row id column."""
        return self.table.connector.metadata.merge_row_id_column(self.merge.table)

    @cached_property
    def whole(self) -> bool:
        """True when every row of the target matters: some WHEN selects rows that no source row matches."""
        return any(case.when is When.NOT_MATCHED_BY_SOURCE for case in self.program.cases)

    @cached_property
    def files(self) -> list[DataFile]:
        """The files that may hold a row that the statement can touch."""
        if self.source.empty and not self.whole:
            return []
        files = list(self.splits.files)
        if self.whole:
            return files
        columns = [c.name for c in self.definition.visible]
        if self.definition.keyed:  # the fold needs every version of a key
            columns = list(self.definition.primary_key)
        files = prune(files, Predicate.of(self.definition, self.facts.where(columns)))
        within = ReadScope(bounds={k: b for k, b in self.source.bounds.items() if k in columns})
        return [f for f in files if within.concerns(f) and self.source.may_touch(f, columns)]

    def scope(self) -> ReadScope:
        """Return the part of its target that the statement read (L7)."""
        keyed = self.definition.keyed
        files = frozenset() if keyed else frozenset(f.path for f in self.files)
        target = self.merge.table
        again = any(read.same_place(target) for read in self.program.reads)
        if again or concerned(self.program):  # the target is read once more, in full
            return ReadScope(frozenset() if keyed else frozenset(f.path for f in self.splits.files))
        if self.whole:
            return ReadScope(files)
        bounds = {**self.facts.bounds, **self.source.bounds}
        if keyed:
            bounds = {k: b for k, b in bounds.items() if k in self.definition.primary_key}
        if self.plan.inserting or self.plan.moving:  # keys that ON does not name were looked up
            bounds = {}
        return ReadScope(files, bounds)

    @cached_property
    def plan(self) -> MergePlan:
        """The plan over the target."""
        equalities = self.equalities if self.facts.only_equalities else {}
        return MergePlan(str(self.table.name), self.definition, self.program, self.row_id, self.layout, equalities)

    @cached_property
    def layout(self) -> tuple[str, ...]:
        """Columns whose old values accompany a deleted row: those of the insert layout."""
        return self.table.connector.metadata.insert_layout(self.merge.table)

    def changes(self) -> DataFrame:
        """Return the plan's rows. Not run yet."""
        return self.plan.changes(self._target())

    def _target(self) -> DataFrame:
        spark = self.table.session.spark
        if not self.definition.keyed:
            rows = located_scan(spark, self.files, self.splits.storage, self.row_id)
            rows = to_user_columns(rows, self.splits, (self.row_id,))
            return self._narrowed(rows)
        splits = replace(self.splits, files=tuple(self.files))
        where = None if self.whole else self.facts.where(self.definition.primary_key)
        return merged_read(spark, splits, where, self._keys())

    def _narrowed(self, rows: DataFrame) -> DataFrame:
        """Return only the rows that some source row can match, before an outer join exchanges them."""
        values = self.source.values
        unmatched = any(case.when is When.NOT_MATCHED for case in self.program.cases)
        if values is None or self.whole or not unmatched:
            return rows
        return rows.join(F.broadcast(values), values.columns, "left_semi").select(*map(quoted, rows.columns))

    def _keys(self) -> DataFrame | None:
        """Return the values that ON allows key columns to have, for the part below the fold."""
        values = self.source.values
        if values is None or self.whole:
            return None
        # below the fold a column has its stored name and type; that of TIME differs from the users' type
        key = [k for k in self.definition.primary_key if k in values.columns and k in self.splits.storage.names]
        key = [k for k in key if parse_type(self.definition.column(k).type).name != "time"]
        return values.select(*map(quoted, key)) if key else None

    # -- writing ------------------------------------------------------------------------------------------

    def write(self) -> tuple[list[bytes], dict[str, int]]:
        """Write the changes; return the sinks' fragments, and the number of rows changed by kind."""
        if (found := self._whole_files()) is not None:
            return found
        if (found := self._upserted()) is not None:
            return found
        if self.plan.moving and self.definition.keyed:
            check_mark(self.program, self.definition)
        changes = self.changes()
        fills = self.definition.keyed and (self.plan.inserting or self.plan.moving)
        if not fills and not concerned(self.program):
            return self._written(changes)
        held = changes.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            if fills:
                check_keys(self.table.session.spark, self.plan, self.splits, held)
            if concerned(self.program):
                check_unique(self.table.session.spark, self.plan, self.splits, held)
            return self._written(held)
        finally:
            held.unpersist()

    def _whole_files(self) -> tuple[list[bytes], dict[str, int]] | None:
        """Return a metadata-only delete from a plain table, of all rows or those of whole partitions (M12), or None."""
        case = self.program.cases[0]
        plain = self.program.source is None and not self.definition.keyed
        if not plain or case.operation is not Operation.DELETE:
            return None
        files = whole_files(self.table.session.spark, self.program, self.definition, self.files)
        if files is None:
            return None
        return [removal(f.path) for f in files], {
            "updated": 0,
            "deleted": sum(f.live_rows for f in files),
            "inserted": 0,
        }

    def _upserted(self) -> tuple[list[bytes], dict[str, int]] | None:
        """Return fragments and counts of an upsert MERGE; None for another one, or to let the join find an error."""
        keys = self._upsert_keys()
        if keys is None or keys.dropna().distinct().count() < (self.source.rows or 0):
            return None
        matched = self._target().count()
        rows = self._upserted_rows()
        conformer = self._conformer(arrow_schema(rows.drop(REFUSAL).schema))
        number, sinks = insert_case(self.plan), self.table.connector.sinks
        try:
            fragments = write_upserts(rows, sinks, self.merge, number, conformer, self.row_id)
        except TrinityError:  # a row cannot be stored; only the join knows which clause would store it
            return None
        return fragments, {"updated": matched, "deleted": 0, "inserted": (self.source.rows or 0) - matched}

    def _upsert_keys(self) -> DataFrame | None:
        """Return the keys of the source of an upsert, or None for another statement."""
        if not self.definition.keyed or concerned(self.program) or not is_upsert(self.plan):
            return None
        keys = self._keys()
        return keys if keys is not None and len(keys.columns) == len(self.definition.primary_key) else None

    def _upserted_rows(self) -> DataFrame:
        tasks = max(1, math.ceil((self.source.rows or 0) / _ROWS_PER_TASK))
        return self.plan.upserted(insert_case(self.plan)).coalesce(tasks)

    def _written(self, changes: DataFrame) -> tuple[list[bytes], dict[str, int]]:
        definition = self.definition
        names = tuple(c.name for c in definition.columns)
        return write_changes(
            changes,
            self.table.connector.sinks,
            self.merge,
            processor_for(self.merge.paradigm, names, self.layout, self.row_id, definition.primary_key),
            self._conformers(changes),
            self._distribution(),
            MergeGuard(
                str(self.table.name),
                definition.primary_key or ("file", "pos"),
                tuple(names.index(k) for k in definition.primary_key),
                definition.primary_key,
            ),
        )

    def _distribution(self) -> Distribution:
        metadata, target = self.table.connector.metadata, self.merge.table
        sinks = None
        if not self.definition.keyed:  # a sink's work depends on the files that it rewrites, not on its rows
            sinks = max(1, parallelism(self.table.session.spark))
        return Distribution(self.layout, metadata.update_layout(target), sinks, self._together())

    def _together(self) -> bool:
        """Return True when a row goes to the sink of the row that it replaces; text is padded only in storage form."""
        if not self.definition.keyed:
            return not self.layout
        texts = [k for k in self.layout if parse_type(self.definition.column(k).type).name in ("char", "varchar")]
        return not self.plan.moving and not texts

    def _conformers(self, changes: DataFrame) -> tuple[PageConformer, PageConformer | None]:
        definition, storage = self.definition, self.merge.insert.target.storage
        given = arrow_schema(changes.schema)
        data = self._conformer(pa.schema(list(given.field(MERGE_ROW).type)[: len(definition.columns)]))
        if not definition.keyed:
            return data, None
        held = list(given.field(self.row_id).type)
        columns = [definition.column(f.name) for f in held]
        stored = [storage.field(definition.columns.index(c)) for c in columns]
        only = replace(definition, columns=tuple(columns), primary_key=())  # stored values have their form as keys
        return data, plan_ingest(StoredForm.of(self.table, only, pa.schema(stored)), pa.schema(held))

    def _conformer(self, given: pa.Schema) -> PageConformer:
        return plan_ingest(StoredForm.of(self.table, self.definition, self.merge.insert.target.storage), given)

    # -- EXPLAIN ------------------------------------------------------------------------------------------

    def described(self) -> str:
        """Return paradigm, layouts, join, cases and Spark's plan, as text."""
        program, distribution = self.program, self._distribution()
        lines = [
            f"{program.statement} {self.table.name} AS {program.target_alias} at version {self.merge.table.version}",
            f"row change paradigm: {self.merge.paradigm.value}",
            f"row id: {self.row_id} ({', '.join(self.definition.primary_key or ('file', 'pos'))})",
            f"insert layout: {', '.join(distribution.insert) or 'none'}",
            f"update layout: {', '.join(distribution.update)}",
            f"files: {len(self.files)} of {len(self.splits.files)}",
        ]
        if program.source is not None:
            lines.append(f"join: {program.target_alias} RIGHT JOIN {program.source_alias} ON {program.on}")
        lines += clauses(program)
        upsert = self._upsert_keys() is not None
        if upsert:
            lines.append("upsert: unless the source has a key twice, the target is read for the counts alone")
        return "\n".join([*lines, "", plan_text(self._upserted_rows() if upsert else self.changes())])


def _same_version(target: TableHandle, program: Program) -> None:
    """Check that source and subqueries read the target at the version that is changed. Raises TRANSACTION_CONFLICT."""
    for read in program.reads:
        if read.same_place(target) and (read.id, read.version) != (target.id, target.version):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Table '{target.full_name}' was changed while {program.statement} was analysed.",
            )
