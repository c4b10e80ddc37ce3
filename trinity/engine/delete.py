"""A writer's delete: tombstones for live rows, appended (U5, U6)."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Collection
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trinity.engine.append import arrow_reader, is_spark_frame, write_rows
from trinity.engine.ingest import plan_ingest
from trinity.engine.read import merged_read
from trinity.engine.sparktypes import spark_type
from trinity.errors import TrinityError
from trinity.merge import MergeSpec, duration_ms
from trinity.spi import ROW_KIND, CommitResult, TableDefinition, parse_type
from trinity.spi import Column as TableColumn

if TYPE_CHECKING:
    from trinity.table import Table

__all__ = ["delete_rows"]

_DELETE_KIND: Final = 3


def delete_rows(table: Table, condition_or_keys: Any) -> CommitResult:
    """Appends the tombstones of the rows that a condition or keys select.

    The rows are read at a pinned version; when others committed meanwhile the statement is run again (L7).
    """
    definition = table.definition
    if not definition.keyed:
        raise TrinityError(
            "NOT_SUPPORTED", f"Table '{table.name}' has no primary key; rows of a plain table cannot be deleted yet."
        )
    timeout = duration_ms(definition.properties.get("commit.retry.timeout", "10 minutes"), "'commit.retry.timeout'")
    deadline = time.monotonic() + timeout / 1000
    while True:
        try:
            return _attempt(table, condition_or_keys)
        except TrinityError as error:
            if error.code != "TRANSACTION_CONFLICT" or time.monotonic() > deadline:
                raise


def _attempt(table: Table, condition_or_keys: Any) -> CommitResult:
    metadata = table.connector.metadata
    insert = metadata.begin_insert(table.handle, reads=True)
    splits = metadata.get_splits(insert.table)
    spec = MergeSpec.of(splits.definition)
    rows = merged_read(table.session.spark, splits)
    doomed = _selected(table, rows, splits.definition, spec, condition_or_keys)
    fragments = write_rows(table, insert, _tombstones(doomed, spec, splits.definition))
    if not fragments:
        return CommitResult(splits.version)
    return metadata.finish_insert(insert, fragments)


def _selected(table: Table, rows: DataFrame, definition: TableDefinition, spec: MergeSpec, what: Any) -> DataFrame:
    if isinstance(what, str | Column):
        from trinity.sql.errors import spark_errors

        with spark_errors():
            return rows.where(what)
    keys = _key_frame(table, definition, spec, what)
    # null-safe and by value: both sides have the table's own key types
    return rows.join(F.broadcast(keys), list(spec.key), "left_semi").select(rows.columns)


def _key_frame(table: Table, definition: TableDefinition, spec: MergeSpec, what: Any) -> DataFrame:
    if isinstance(what, list):
        what = _listed(spec, what)
    columns = [definition.column(k) for k in spec.key]
    if is_spark_frame(what):
        given = {c.lower(): c for c in what.columns}
        _check_keys(table, spec, given)
        frame: DataFrame = what
        return frame.select(*[_key_column(frame[given[c.name.lower()]], c) for c in columns]).distinct()
    keys = arrow_reader(what).read_all()
    _check_keys(table, spec, [name.lower() for name in keys.column_names])
    only = TableDefinition(definition.schema, definition.name, tuple(columns), spec.key)
    key = MergeSpec(spec.key)
    conformer = plan_ingest(str(table.name), only, key, only.to_arrow(), keys.schema, {}, table.session.timezone)
    pages = [conformer.conform(page) for page in keys.to_batches()]
    schema = ", ".join(f"`{c.name}` {spark_type(c.type)}" for c in columns)
    return table.session.spark.createDataFrame(pa.Table.from_batches(pages, conformer.storage), schema).distinct()


def _check_keys(table: Table, spec: MergeSpec, present: Collection[str]) -> None:
    for name in spec.key:
        if name.lower() not in present:
            raise TrinityError(
                "COLUMN_NOT_FOUND",
                f"The keys to delete from '{table.name}' lack column '{name}'; its key is ({', '.join(spec.key)}).",
            )


def _key_column(given: Column, column: TableColumn) -> Column:
    """A key as it is stored: in the column's type, CHAR padded (K2)."""
    kind = parse_type(column.type)
    stored = given.cast(spark_type(column.type))
    return (F.rpad(stored, kind.arguments[0], " ") if kind.name == "char" else stored).alias(column.name)


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


def _tombstones(rows: DataFrame, spec: MergeSpec, definition: TableDefinition) -> DataFrame:
    """The rows as their own tombstones: key, watermark and other columns are kept (U5)."""
    if spec.tombstone:
        kind = spark_type(definition.column(spec.tombstone).type)
        mark = F.lit(_tombstone_value(spec, definition)).cast(kind)
        return rows.withColumn(spec.tombstone, mark)
    if spec.hidden_row_kind:
        return rows.withColumn(ROW_KIND, F.lit(_DELETE_KIND))
    assert spec.row_kind
    return rows.withColumn(spec.row_kind, F.lit("-D"))


def _tombstone_value(spec: MergeSpec, definition: TableDefinition) -> Any:
    """The value that marks a deleted row: TRUE, the defined string, or a canonical one of the type (U5)."""
    assert spec.tombstone
    kind = parse_type(definition.column(spec.tombstone).type)
    if spec.tombstone_value is not None:
        return spec.tombstone_value
    if kind.name == "decimal":  # 1, unless the type has no digit before the point
        return Decimal(1) if kind.arguments[0] > kind.arguments[1] else Decimal(0)
    return _CANONICAL[kind.name]


_CANONICAL: Final[dict[str, Any]] = {
    "boolean": True,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double"), 1),
    **dict.fromkeys(("string", "char", "varchar"), "D"),
    "binary": b"\x01",
    "date": dt.date(1970, 1, 1),
    "timestamp": dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc),
    "timestamp_ntz": dt.datetime(1970, 1, 1),
    "time": dt.time(0),
}
