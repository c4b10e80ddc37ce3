"""One attempt at a row-changing statement: from a pinned version to the fragments of its sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from trinity.engine.changing.change_tasks import Written
from trinity.engine.changing.engine_rules import check_mark, check_program
from trinity.engine.changing.match_checks import MergeGuard
from trinity.engine.changing.plan import (
    Equality,
    StatementPlan,
    clauses,
    expanded,
    update_case_columns,
    written_unique_keys,
)
from trinity.engine.changing.processors import RowChangeProcessor, processor_for
from trinity.engine.changing.source import SourceStatistics, reads_all
from trinity.engine.executes import NotLocal
from trinity.engine.program import Program
from trinity.engine.reading.files import prune
from trinity.engine.reading.predicate import Predicate
from trinity.engine.writing.ingest import PageConformer, StoredForm, plan_ingest
from trinity.errors import TrinityError
from trinity.predicates.conditions import ConditionFacts, condition_facts, partition_columns
from trinity.spi import (
    STAMP,
    STORED_NAME,
    DataFile,
    InsertTableHandle,
    MergeTableHandle,
    Operation,
    ReadScope,
    SplitSource,
    TableDefinition,
    TableHandle,
    removal,
)
from trinity.spi import Column as TableColumn
from trinity.syntax.sql_text import tree_of
from trinity.target import Target


@dataclass(frozen=True)
class PinnedStatement:
    """A statement whose version is pinned, whoever executes it.

    Attributes:
        merge: what ``begin_merge`` returned.
        facts: what ON, or the WHERE, says about matching rows of the target.
    """

    table: Target
    program: Program
    merge: MergeTableHandle
    splits: SplitSource
    facts: ConditionFacts

    @classmethod
    def of(cls, table: Target, splits: SplitSource, program: Program) -> PinnedStatement:
        """Begin an attempt at a statement on a version of its target.

        Raises:
            TrinityError: NOT_SUPPORTED when the connector cannot change rows; the errors of the analysis.
        """
        program = expanded(program, program.after or splits.definition, lambda: table.session.spark)
        check_program(program, program.after or splits.definition)
        pinned, cases = table.handle.pinned(splits.version, splits.definition.id), update_case_columns(program)
        if program.after is None:
            merge = table.connector.metadata.begin_merge(pinned, cases)
        else:
            merge = table.connector.metadata.begin_merge(pinned, cases, program.after)
            splits = _with_new_columns(splits, merge.insert)
        _same_version(merge.table, program)
        merge = replace(merge, deletes={f.path: f.deletes for f in splits.files if f.deletes})
        condition = program.cases[0].condition if program.source is None else program.on
        facts = condition_facts(tree_of(condition), splits.definition, program.names)
        return cls(table, program, merge, splits, facts)

    def plan(self, equalities: Mapping[str, Equality]) -> StatementPlan:
        """Return the plan of the statement, given the equalities of ON whose values are known."""
        known, merge = equalities if self.facts.only_equalities else {}, self.merge
        name, definition = str(self.table.name), merge.insert.definition
        return StatementPlan(name, definition, self.program, merge.row_id, merge.insert_layout, known)


@dataclass(frozen=True)
class Attempt(ABC):
    """One attempt at a statement, which is executed as ``program``."""

    pinned: PinnedStatement
    program: Program
    source: SourceStatistics

    @property
    def table(self) -> Target:
        """The target."""
        return self.pinned.table

    @property
    def merge(self) -> MergeTableHandle:
        """What ``begin_merge`` returned."""
        return self.pinned.merge

    @property
    def splits(self) -> SplitSource:
        """The pinned version."""
        return self.pinned.splits

    @property
    def definition(self) -> TableDefinition:
        """The target as it was pinned."""
        return self.merge.insert.definition

    @property
    def row_id(self) -> str:
        """Name of the row id column."""
        return self.merge.row_id

    @property
    def layout(self) -> tuple[str, ...]:
        """Columns whose old values accompany a deleted row."""
        return self.merge.insert_layout

    @cached_property
    def whole(self) -> bool:
        """True when every row of the target matters: some WHEN selects rows that no source row matches."""
        return reads_all(self.program)

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
        files = prune(files, Predicate.of(self.definition, self.pinned.facts.where(columns)))
        within = ReadScope(bounds={k: b for k, b in self.source.bounds.items() if k in columns})
        return [f for f in files if within.concerns(f) and self.source.may_touch(f, columns)]

    def scope(self) -> ReadScope:
        """Return the part of its target that the statement read (L7)."""
        keyed = self.definition.keyed
        files = frozenset() if keyed else frozenset(f.path for f in self.files)
        target = self.merge.table
        again = any(read.same_place(target) for read in self.program.reads)
        if again or written_unique_keys(self.program):  # the target is read once more, in full
            return ReadScope(frozenset() if keyed else frozenset(f.path for f in self.splits.files))
        if self.whole:
            return ReadScope(files)
        bounds = {**self.pinned.facts.bounds, **self.source.bounds}
        if keyed:
            bounds = {k: b for k, b in bounds.items() if k in self.definition.primary_key}
        if self.plan.inserting_cases or self.plan.key_changing_cases:  # keys that ON does not name were looked up
            bounds = {}
        return ReadScope(files, bounds)

    @property
    @abstractmethod
    def plan(self) -> StatementPlan:
        """The plan over the target."""

    @property
    def fills(self) -> bool:
        """True when rows may get keys for which ON does not look, and which may be live (M4, M7)."""
        return self.definition.keyed and bool(self.plan.inserting_cases or self.plan.key_changing_cases)

    def write(self) -> Written | NotLocal:
        """Write the changes; return the sinks' fragments and the counts, or why only Spark can write them."""
        if (found := self._whole_files()) is not None:
            return found
        if self.plan.key_changing_cases and self.definition.keyed:
            check_mark(self.program, self.definition)
        return self._write_rows()

    @abstractmethod
    def _write_rows(self) -> Written | NotLocal:
        """Write the changes row by row."""

    @abstractmethod
    def selected(self, condition: str, columns: Sequence[TableColumn], files: Sequence[DataFile]) -> list[DataFile]:
        """Return the files for whose partition values a condition on partition columns is true."""

    def _whole_files(self) -> Written | None:
        """Return a metadata-only delete from a plain table, of all rows or those of whole partitions (M12), or None."""
        case = self.program.cases[0]
        plain = self.program.source is None and not self.definition.keyed
        if not plain or case.operation is not Operation.DELETE:
            return None
        files = self.files
        if case.condition is not None:
            columns = partition_columns(tree_of(case.condition), self.definition, self.program.names, files)
            if columns is None:
                return None
            files = self.selected(str(case.condition), columns, files)
        counts = {"updated": 0, "deleted": sum(f.live_rows for f in files), "inserted": 0}
        return [removal(f.path) for f in files], counts

    # -- what sinks are given -----------------------------------------------------------------------------

    @property
    def processor(self) -> RowChangeProcessor:
        """The processor of the table's paradigm."""
        names = [c.name for c in self.definition.columns]
        return processor_for(self.merge.paradigm, names, self.layout, self.row_id, self.definition.primary_key)

    @property
    def guard(self) -> MergeGuard:
        """Finds duplicate matches and colliding keys."""
        names, key = [c.name for c in self.definition.columns], self.definition.primary_key
        return MergeGuard(str(self.table.name), key or ("file", "pos"), tuple(map(names.index, key)), key)

    def conformers(self, data: pa.Schema, row_id: pa.DataType) -> tuple[PageConformer, PageConformer | None]:
        """Return the converters to storage form for the data columns and, in a keyed table, for the row id."""
        definition, storage = self.definition, self.merge.insert.target.storage
        conformer = self.conformer(data)
        if not definition.keyed:
            return conformer, None
        fields = list(row_id)
        columns = [definition.column(f.name) for f in fields]
        stored = [storage.field(definition.columns.index(c)) for c in columns]
        only = replace(definition, columns=tuple(columns), primary_key=())  # stored values have their form as keys
        return conformer, plan_ingest(StoredForm.of(self.table, only, pa.schema(stored)), pa.schema(fields))

    def conformer(self, given: pa.Schema) -> PageConformer:
        """Return the converter to storage form for rows of a schema."""
        return plan_ingest(StoredForm.of(self.table, self.definition, self.merge.insert.target.storage), given)

    # -- EXPLAIN ------------------------------------------------------------------------------------------

    def described(self) -> str:
        """Return paradigm, layouts, join and cases, as text."""
        program = self.program
        lines = [
            f"{program.statement} {self.table.name} AS {program.target_alias} at version {self.merge.table.version}",
            f"row change paradigm: {self.merge.paradigm.value}",
            f"row id: {self.row_id} ({', '.join(self.definition.primary_key or ('file', 'pos'))})",
            f"insert layout: {', '.join(self.layout) or 'none'}",
            f"update layout: {', '.join(self.merge.update_layout)}",
            f"files: {len(self.files)} of {len(self.splits.files)}",
        ]
        if program.source is not None:
            lines.append(f"join: {program.target_alias} RIGHT JOIN {program.source_alias} ON {program.on}")
        return "\n".join([*lines, *clauses(program)])


def _same_version(target: TableHandle, program: Program) -> None:
    """Check that source and subqueries read the target at the version that is changed. Raises TRANSACTION_CONFLICT."""
    for read in program.reads:
        if read.same_place(target) and (read.id, read.version) != (target.id, target.version):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Table '{target.full_name}' was changed while {program.statement} was analysed.",
            )


def _with_new_columns(splits: SplitSource, insert: InsertTableHandle) -> SplitSource:
    """Return a version as a table that has the columns of a row change, which are NULL in all its rows."""
    stored = {c.identity: f for c, f in zip(splits.definition.columns, splits.storage, strict=True)}
    stamped = splits.definition.stamped
    columns = [c for c in insert.definition.columns if stamped or c.name != STAMP]
    kinds = insert.target.storage
    fields = [
        stored.get(c.identity)
        or pa.field(c.name, kinds.field(c.name).type, metadata={STORED_NAME: _unused_stored_name(c.name)})
        for c in columns
    ]
    storage = pa.schema(fields, splits.storage.metadata)
    return replace(splits, definition=insert.definition.with_columns(columns), storage=storage)


def _unused_stored_name(name: str) -> bytes:
    """Return a stored name that no file uses; ``name`` itself may belong to a dropped column."""
    return f"_trinity_added_{name}".encode()
