"""``table.delete`` and ``table.update`` as row-changing statements (U5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trinity.arrays import numbered
from trinity.engine.appending.append import arrow_reader, given_rows, is_spark_column, is_spark_frame
from trinity.engine.changing import statement as dml
from trinity.engine.program import Case, Counts, Expression, Program, When
from trinity.engine.writing.ingest import StoredForm, plan_ingest
from trinity.errors import TrinityError
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.spi import CommitResult, Operation, SplitSource, TableDefinition, TransactionId
from trinity.syntax.quoting import quoted
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def delete_rows(table: Target, condition_or_keys: Any, txn: TransactionId | None = None) -> CommitResult:
    """Delete the rows that a condition or keys select; None selects all."""
    condition_or_keys = given_rows(condition_or_keys)
    if condition_or_keys is None or isinstance(condition_or_keys, str) or is_spark_column(condition_or_keys):
        case = Case(When.MATCHED, Operation.DELETE, condition_or_keys)
        program = Program("DELETE", (case,), target_alias=table.name.table, unguarded=True)
        counts = dml.run(table, lambda _: nullcontext(program), txn)
    else:
        counts = dml.run(table, _by_keys(table, condition_or_keys), txn)
    return CommitResult(counts.version, counts.deleted, skipped=counts.skipped)


def _by_keys(table: Target, what: Any) -> dml.Prepare:
    """Return what prepares the deletion of keys. It reads them once: a stream is used up when the statement reruns."""
    made: list[Program] = []

    def prepare(splits: SplitSource) -> AbstractContextManager[Program]:
        if not made:
            keys = _keys(table, splits.definition, what)
            on = " AND ".join(f"t.{quoted(k)} = s.{quoted(k)}" for k in splits.definition.primary_key)
            made.append(Program("DELETE", (Case(When.MATCHED, Operation.DELETE),), keys, on))
        return nullcontext(made[0])

    return prepare


def update_rows(
    table: Target,
    values: Mapping[str, Expression],
    condition: Expression | None,
    txn: TransactionId | None,
) -> Counts:
    """Update the rows that a condition selects; None selects all."""
    case = Case(When.MATCHED, Operation.UPDATE, condition, values)
    program = Program("UPDATE", (case,), target_alias=table.name.table, unguarded=True)
    return dml.run(table, lambda _: nullcontext(program), txn)


def _keys(table: Target, definition: TableDefinition, what: Any) -> DataFrame | pa.Table:
    """Return distinct keys as they are stored, under the names of the key columns."""
    if not definition.keyed:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"Table '{table.name}' has no primary key to delete by; give delete() a condition."
        )
    spec = merge_spec(definition)
    if isinstance(what, list):
        what = _listed(spec, what)
    columns = tuple(definition.column(k) for k in spec.key)
    if is_spark_frame(what):
        from trinity.engine.changing.spark.source import key_frame

        _check_keys(table, spec, [name.lower() for name in what.columns])
        return key_frame(what, columns, str(table.name))
    keys = arrow_reader(what).read_all()
    _check_keys(table, spec, [name.lower() for name in keys.column_names])
    only = TableDefinition(definition.schema, definition.name, columns, spec.key)
    conformer = plan_ingest(StoredForm.of(table, only, only.to_arrow()), keys.schema)
    pages = [conformer.conform(page) for page in keys.to_batches()]
    stored = pa.Table.from_batches(pages, conformer.storage)
    rows = numbered(stored)
    return rows.group_by(rows.column_names, use_threads=False).aggregate([]).rename_columns(stored.column_names)


def _check_keys(table: Target, spec: MergeSpec, present: Collection[str]) -> None:
    for name in spec.key:
        if name.lower() not in present:
            raise TrinityError(
                "COLUMN_NOT_FOUND",
                f"The keys to delete from '{table.name}' lack column '{name}'; its key is ({', '.join(spec.key)}).",
            )


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
