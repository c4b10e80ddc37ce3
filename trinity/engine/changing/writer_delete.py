"""``table.delete`` and ``table.update`` as row-changing statements (U5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa

from trinity.engine.appending.append import arrow_reader, given_rows, is_spark_frame
from trinity.engine.changing import statement as dml
from trinity.engine.changing.equalities import in_type
from trinity.engine.guard import guard_program
from trinity.engine.program import Case, Counts, Expression, Program, When
from trinity.engine.spark.texts import as_stored
from trinity.engine.spark.types import arrow_frame, spark_type
from trinity.engine.target import Target
from trinity.engine.values.assignment import check_assignable
from trinity.engine.writing.ingest import StoredForm, plan_ingest
from trinity.errors import TrinityError
from trinity.merge.parse import merge_spec
from trinity.merge.spec import MergeSpec
from trinity.spark_names import Column, DataFrame
from trinity.spi import Column as TableColumn
from trinity.spi import CommitResult, Operation, SplitSource, TableDefinition, TransactionId
from trinity.syntax.quoting import quoted

__all__ = ["delete_rows", "update_rows"]


def delete_rows(table: Target, condition_or_keys: Any, txn: TransactionId | None = None) -> CommitResult:
    """Delete the rows that a condition or keys select; None selects all."""
    condition_or_keys = given_rows(condition_or_keys)
    if condition_or_keys is None or isinstance(condition_or_keys, str | Column):
        case = Case(When.MATCHED, Operation.DELETE, condition_or_keys)
        program = Program("DELETE", (case,), target_alias=table.name.table)
        guard_program(table.session, program)
        counts = dml.run(table, lambda _: nullcontext(program), txn)
    else:
        counts = dml.run(table, _by_keys(table, condition_or_keys), txn)
    return CommitResult(counts.version, counts.deleted, skipped=counts.skipped)


def _by_keys(table: Target, what: Any) -> dml.Prepare:
    """Return the program that deletes keys. They are read once: a stream would be used up when the statement reruns."""
    made: list[Program] = []

    def prepare(splits: SplitSource) -> AbstractContextManager[Program]:
        if not made:
            keys = _key_frame(table, splits.definition, what)
            on = " AND ".join(f"t.{quoted(k)} = s.{quoted(k)}" for k in keys.columns)
            made.append(Program("DELETE", (Case(When.MATCHED, Operation.DELETE),), keys, on))
        return nullcontext(made[0])

    return prepare


def update_rows(
    table: Target,
    values: Mapping[str, Expression],
    condition: Expression | None,
    txn: TransactionId | None = None,
) -> Counts:
    """Update the rows that a condition selects; None selects all."""
    case = Case(When.MATCHED, Operation.UPDATE, condition, values)
    program = Program("UPDATE", (case,), target_alias=table.name.table)
    guard_program(table.session, program)
    return dml.run(table, lambda _: nullcontext(program), txn)


def _key_frame(table: Target, definition: TableDefinition, what: Any) -> DataFrame:
    if not definition.keyed:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"Table '{table.name}' has no primary key to delete by; give delete() a condition."
        )
    spec = merge_spec(definition)
    if isinstance(what, list):
        what = _listed(spec, what)
    columns = [definition.column(k) for k in spec.key]
    if is_spark_frame(what):
        given = {c.lower(): c for c in what.columns}
        _check_keys(table, spec, given)
        frame: DataFrame = what
        named = [(given[c.name.lower()], c) for c in columns]
        return frame.select(*[_key_column(frame, name, c, str(table.name)) for name, c in named]).distinct()
    keys = arrow_reader(what).read_all()
    _check_keys(table, spec, [name.lower() for name in keys.column_names])
    only = TableDefinition(definition.schema, definition.name, tuple(columns), spec.key)
    conformer = plan_ingest(StoredForm.of(table, only, only.to_arrow()), keys.schema)
    pages = [conformer.conform(page) for page in keys.to_batches()]
    return arrow_frame(table.session.spark, pa.Table.from_batches(pages, conformer.storage)).distinct()


def _check_keys(table: Target, spec: MergeSpec, present: Collection[str]) -> None:
    for name in spec.key:
        if name.lower() not in present:
            raise TrinityError(
                "COLUMN_NOT_FOUND",
                f"The keys to delete from '{table.name}' lack column '{name}'; its key is ({', '.join(spec.key)}).",
            )


def _key_column(frame: DataFrame, name: str, column: TableColumn, table: str) -> Column:
    """Return keys as they are stored (K2); NULL for those that the column's type cannot hold, and no row can have."""
    given, kind = frame[quoted(name)], frame.schema[name].dataType
    check_assignable(kind, column, table, "The keys to delete")
    return as_stored(in_type(given, kind.simpleString(), spark_type(column.type)), column).alias(column.name)


def _listed(spec: MergeSpec, keys: list[Any]) -> pa.Table:
    if not keys:
        raise TrinityError("INVALID_ARGUMENTS", "delete() was given no keys.")
    if isinstance(keys[0], dict):
        return pa.Table.from_pylist(keys)
    if not isinstance(keys[0], tuple | list):
        keys = [(key,) for key in keys]
    if any(len(key) != len(spec.key) for key in keys):
        raise TrinityError("INVALID_ARGUMENTS", f"Each key has {len(spec.key)} parts: ({', '.join(spec.key)}).")
    return pa.Table.from_pylist([dict(zip(spec.key, key, strict=True)) for key in keys])
