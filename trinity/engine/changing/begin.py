"""The begin of a row-changing statement: its version is pinned, and its plan is chosen."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from trinity.engine.changing.engine_rules import check_program
from trinity.engine.changing.expansion import expanded
from trinity.engine.changing.plan import StatementPlan, update_case_columns
from trinity.engine.program import Program
from trinity.errors import TrinityError
from trinity.predicates.conditions import condition_facts
from trinity.spi import STAMP, STORED_NAME, InsertTableHandle, MergeTableHandle, SplitSource, TableHandle
from trinity.syntax.sql_text import tree_of
from trinity.target import Target


class Begin:
    """The beginning of one attempt at a statement, on a version of its target.

    If this process begins and then leaves the statement to Spark, Spark continues with the same handle, unless its
    program updates other columns or alters the table in another way.
    """

    def __init__(self, table: Target, splits: SplitSource) -> None:
        self.table = table
        self.splits = splits
        self._begun: tuple[object, MergeTableHandle] | None = None

    def plan(self, program: Program) -> StatementPlan:
        """Return the plan of a statement, without the facts about its source: these the executor adds.

        Raises:
            TrinityError: NOT_SUPPORTED when the connector cannot change rows; the errors of the analysis.
        """
        table, splits = self.table, self.splits
        after = program.after or splits.definition
        program = expanded(program, after, lambda: table.session.spark)
        check_program(program, after)
        merge = self._merge(program)
        _check_versions(merge.table, program)
        if program.after is not None:
            splits = _with_new_columns(splits, merge.insert)
        condition = program.cases[0].condition if program.source is None else program.on
        facts = condition_facts(tree_of(condition), splits.definition, program.names)
        return StatementPlan(str(table.name), program, splits, merge, facts)

    def _merge(self, program: Program) -> MergeTableHandle:
        cases, after = update_case_columns(program), program.after
        if self._begun is None or self._begun[0] != (cases, after):
            pinned = self.table.handle.pinned(self.splits.version, self.splits.definition.id)
            metadata = self.table.connector.metadata
            merge = metadata.begin_merge(pinned, cases) if after is None else metadata.begin_merge(pinned, cases, after)
            merge = replace(merge, deletes={f.path: f.deletes for f in self.splits.files if f.deletes})
            self._begun = (cases, after), merge
        return self._begun[1]


def _check_versions(target: TableHandle, program: Program) -> None:
    """Check that source and subqueries read the target at the version that is changed. Raises TRANSACTION_CONFLICT."""
    for read in program.reads:
        if read.same_place(target) and (read.id, read.version) != (target.id, target.version):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Table '{target.full_name}' was changed while {program.statement} was analysed.",
            )


def _with_new_columns(splits: SplitSource, insert: InsertTableHandle) -> SplitSource:
    """Return a version with the columns that a statement adds, as if they were there, and NULL in all rows."""
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
