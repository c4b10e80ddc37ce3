"""Appends: data of any kind through the sinks into one commit (architecture.md, A write)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trinity.calls import STOPPED, is_stopped
from trinity.engine.appending.evolving import evolved, follow
from trinity.engine.appending.python_rows import from_pandas, with_python_rows
from trinity.engine.compacting.after_commit import after_commit
from trinity.engine.executes import NotLocal, execute
from trinity.engine.values.defaults import default_values
from trinity.engine.values.local.check_constraints import LocalChecks
from trinity.engine.writing.casts import cast_array
from trinity.engine.writing.ingest import REFUSAL, AppendTask, PageConformer, StoredForm, plan_ingest, raise_refusal
from trinity.engine.writing.spark.run_sinks import run_on_spark
from trinity.errors import TrinityError
from trinity.messages import value_text
from trinity.result import Result
from trinity.spark.remote import check_mode, is_remote
from trinity.spark.settings import pinned
from trinity.spark.types import arrow_frame, arrow_schema
from trinity.spi import (
    STAMP,
    CommitResult,
    InsertTableHandle,
    ReadScope,
    SplitSource,
    TableHandle,
    TransactionId,
    arrow_type,
    type_text,
)
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ARROW: Final = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)
"""Types of data that are used as they are; any other data may be rows of Python."""


def append_rows(
    table: Target,
    data: Any,
    txn: TransactionId | None = None,
    *,
    keyed: bool | None = None,
    evolve: bool = False,
    new: bool = False,
) -> CommitResult:
    """Append ``data`` in one commit, without reading the table: commits of other writers do not matter.

    Args:
        table: the table.
        data: see :meth:`trinity.Table.upsert`.
        txn: see :meth:`trinity.Table.upsert`.
        keyed: True when the caller expects a keyed table, False for a plain table, None for either.
        evolve: see :meth:`trinity.Table.upsert`.
        new: True for the first rows of a new table, which are not for one that has been put in its place since (L13).

    Raises:
        TrinityError: INVALID_ARGUMENTS for a table of the other kind; TRANSACTION_CONFLICT for a replaced table; the
            errors of ingest.
    """
    data, metadata = given_rows(data), table.connector.metadata
    if txn is not None:
        txn = checked_txn(txn)
        if is_recorded(table, txn):
            return CommitResult(table.splits().version, skipped=True)
    insert = metadata.begin_insert(table.handle)
    if new and insert.definition.replaced:
        raise TrinityError("TRANSACTION_CONFLICT", f"Another table was put in the place of '{table.name}'.")
    if keyed not in (None, insert.definition.keyed):
        remedy = "has no primary key to upsert by; use append()." if keyed else "has a primary key; use upsert()."
        raise TrinityError("INVALID_ARGUMENTS", f"Table '{table.name}' {remedy}")
    if not isinstance(data, _ARROW):
        data = with_python_rows(data, insert.definition)
    if evolve:
        data = evolve_table(table, data)
        insert = metadata.begin_insert(table.handle)
    fragments = write_rows(table, insert, data)
    done = metadata.finish_insert(insert, fragments, txn)
    if fragments:
        after_commit(table, insert.definition, done)
    return done


def evolve_table(table: Target, data: Any) -> Any:
    """Add the data's columns to the table (:func:`~trinity.engine.appending.evolving.follow`), and return the data.

    Data whose schema is refused is refused before the table is changed.
    """
    if not is_spark_frame(data):
        data = arrow_reader(data)
    given = arrow_schema(data.schema) if is_spark_frame(data) else data.schema
    check_columns(table, given, evolve=True)
    follow(table, given)
    return data


def append_derived(
    table: Target,
    rows: Any,
    at: TableHandle,
    splits: SplitSource,
    txn: TransactionId | None,
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
) -> CommitResult:
    """Append rows that were computed from the table's own rows at a version (L7).

    Args:
        table: the table.
        rows: the rows to append.
        at: the table's handle, pinned to that version.
        splits: the version.
        txn: see :meth:`trinity.Table.upsert`.
        bounds: the bounds of the rows that were read, as :class:`~trinity.spi.ReadScope` has them.

    Raises:
        TrinityError: TRANSACTION_CONFLICT when others have changed rows that were read since; the errors of ingest.
    """
    metadata = table.connector.metadata
    if txn is not None and is_recorded(table, txn := checked_txn(txn)):
        return CommitResult(at.version or 0, skipped=True)
    merge = metadata.begin_merge(at, {})
    fragments = write_rows(table, merge.insert, rows)
    if not fragments:
        return metadata.finish_insert(merge.insert, [], txn) if txn else CommitResult(at.version or 0)
    read = frozenset() if merge.insert.definition.keyed else frozenset(f.path for f in splits.files)
    done = metadata.finish_merge(replace(merge, scope=ReadScope(read, bounds or {})), fragments, txn)
    after_commit(table, merge.insert.definition, done)
    return done


def is_recorded(table: Target, txn: TransactionId) -> bool:
    """Return True when the table has recorded the ``txn``, or a higher version of its application (L4)."""
    recorded = table.connector.metadata.recorded_txn(table.handle, txn[0])
    return recorded is not None and recorded >= txn[1]


def checked_txn(txn: TransactionId) -> TransactionId:
    """Return a ``txn`` as (str, int). Raises INVALID_ARGUMENTS for anything else."""
    try:
        application, version = txn
        if not isinstance(application, str) or not application:
            raise ValueError
        if isinstance(version, bool) or operator.index(version) >= 2**63:  # True is not accepted as a number
            raise ValueError
        application.encode()
        return application, operator.index(version)
    except (TypeError, ValueError) as error:
        message = f"txn = {value_text(txn)}: give (application, version), as ('orders', 17)."
        raise TrinityError("INVALID_ARGUMENTS", message) from error


def write_rows(table: Target, insert: InsertTableHandle, data: Any) -> list[bytes]:
    """Run the append sinks over ``data`` and return their fragments; commit nothing."""
    if is_spark_frame(data):
        return _written_by_spark(table, insert, data)
    return execute(
        table.session,
        f"An append to '{table.handle.full_name}'",
        lambda _: _written_checked(table, insert, data),
        lambda: _written_by_spark(table, insert, source_frame(table.session.spark, data)),
        arrow=True,
    )


def _written_checked(table: Target, insert: InsertTableHandle, data: Any) -> list[bytes] | NotLocal:
    if not insert.definition.checks:
        return _written_here(table, insert, data)
    checks = _checks(table, insert)
    return checks if isinstance(checks, NotLocal) else _written_here(table, insert, data, checks.check)


def _checks(table: Target, insert: InsertTableHandle) -> LocalChecks | NotLocal:
    return LocalChecks.of(insert.definition, str(table.name), lambda: table.session.timezone)


def _written_here(
    table: Target, insert: InsertTableHandle, data: Any, check: Callable[[pa.RecordBatch], None] | None = None
) -> list[bytes]:
    reader = arrow_reader(data)
    conformer = _conformer(table, insert, reader.schema)
    return AppendTask(table.connector.sinks, insert.target, conformer, check)(0, reader)


def _written_by_spark(table: Target, insert: InsertTableHandle, data: DataFrame) -> list[bytes]:
    from trinity.spark_names import StructType

    given = StructType([f for f in data.schema if f.name != REFUSAL])
    conformer = _conformer(table, insert, arrow_schema(given))
    data = _checked_rows(table, insert, data)
    return run_on_spark(AppendTask(table.connector.sinks, insert.target, conformer), data)


def check_columns(table: Target, given: pa.Schema, *, evolve: bool) -> None:
    """Raise the error that an append of data with a schema would raise whatever its rows are; write nothing."""
    insert = table.connector.metadata.begin_insert(table.handle)
    definition = evolved(insert.definition, given) if evolve else insert.definition
    if definition is not insert.definition:  # any storage schema serves for this check
        storage = pa.schema([(c.name, arrow_type(c.type)) for c in definition.columns])
        insert = replace(insert, definition=definition, target=replace(insert.target, storage=storage))
    _conformer(table, insert, given)


def check_rows(table: Target, data: pa.Table) -> None:
    """Raise the error that an append of the data would raise; write nothing."""
    insert = table.connector.metadata.begin_insert(table.handle)
    conformer = _conformer(table, insert, data.schema)
    pages = [conformer.conform(page) for page in data.to_batches()]
    if insert.definition.checks and data.num_rows:
        execute(
            table.session,
            f"A check of rows for '{table.name}'",
            lambda _: _checked_here(table, insert, pages),
            lambda: _checked_by_spark(table, insert, data),
            arrow=True,
        )


def _checked_here(table: Target, insert: InsertTableHandle, pages: Sequence[pa.RecordBatch]) -> NotLocal | None:
    checks = _checks(table, insert)
    if isinstance(checks, NotLocal):
        return checks
    for page in pages:
        checks.check(page)
    return None


def _checked_by_spark(table: Target, insert: InsertTableHandle, data: pa.Table) -> None:
    from trinity.calls import spark_errors

    with spark_errors():
        found = _checked_rows(table, insert, arrow_frame(table.session.spark, data)).toArrow()
    raise_refusal(found.column(REFUSAL).combine_chunks())


def _checked_rows(table: Target, insert: InsertTableHandle, rows: DataFrame) -> DataFrame:
    """Return the rows; if the table has CHECKs, each with the error of the CHECK that it violates, or NULL."""
    if not insert.definition.checks:
        return rows
    from trinity.engine.values.spark.check_constraints import checked_input

    with pinned(rows.sparkSession):  # a stream's batches have a session of their own
        return checked_input(rows, insert.definition, str(table.name))


def _conformer(table: Target, insert: InsertTableHandle, given: pa.Schema) -> PageConformer:
    definition = insert.definition
    present = {name.lower() for name in given.names}
    if definition.stamped and STAMP in present:
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"The data for table '{table.name}' has a column '{STAMP}', which is Trinity's own; leave it out.",
        )
    omitted = [c for c in definition.columns if c.default is not None and c.name.lower() not in present]
    defaults = default_values(omitted, lambda: table.session.spark) if omitted else {}
    return plan_ingest(StoredForm.of(table, definition, insert.target.storage), given, defaults)


def is_spark_frame(data: Any) -> bool:
    """Return True for a Spark DataFrame, without importing Spark.

    Raises:
        TrinityError: CONFIGURATION_INVALID as :func:`check_mode`; INVALID_ARGUMENTS where its Spark was stopped.
    """
    if not any(c.__module__.startswith("pyspark.sql") and c.__name__ == "DataFrame" for c in type(data).__mro__):
        return False
    if is_stopped(data):
        raise TrinityError("INVALID_ARGUMENTS", f"The DataFrame {STOPPED}.")
    if is_remote(data):
        check_mode(data)
    return True


def given_rows(data: Any) -> Any:
    """Return the DataFrame of a :class:`Result` that Spark computes, and any other data as it is."""
    return data.frame if isinstance(data, Result) and data.frame is not None else data


def is_spark_column(value: Any) -> bool:
    """Return True for a Column of Spark, without importing Spark."""
    return any(c.__module__.startswith("pyspark.sql") and c.__name__ == "Column" for c in type(value).__mro__)


def source_frame(spark: SparkSession, data: Any) -> DataFrame:
    """Return data of any kind as a Spark DataFrame. Arrow types that no table has are converted to types of tables.

    Raises:
        TrinityError: INVALID_ARGUMENTS as :func:`arrow_reader`; TYPE_MISMATCH for a type without a counterpart,
            NUMERIC_VALUE_OUT_OF_RANGE for a value that does not fit.
    """
    if is_spark_frame(data := given_rows(data)):
        frame: DataFrame = data
        return frame
    return arrow_frame(spark, source_rows(data, str(spark.conf.get("spark.sql.session.timeZone"))))


def source_rows(data: Any, timezone: str) -> pa.Table:
    """Return Arrow data or a pandas DataFrame in types that a table can have.

    Args:
        data: the rows.
        timezone: the zone of their timestamps without zone.

    Raises:
        TrinityError: as :func:`source_frame`.
    """
    rows = arrow_reader(data).read_all()
    arrays = [
        values.combine_chunks()
        if pa.types.is_null(values.type)
        else _in_table_type(name, values.combine_chunks(), timezone)
        for name, values in zip(rows.column_names, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=rows.column_names)


def _in_table_type(name: str, values: pa.Array, timezone: str) -> pa.Array:
    where = f"column '{name}' of the data"
    return cast_array(values, arrow_type(type_text(values.type)), where, timezone)


def arrow_reader(data: Any) -> pa.RecordBatchReader:
    """Return Arrow data, a pandas DataFrame or rows of Python as a stream of record batches.

    Raises:
        TrinityError: INVALID_ARGUMENTS for anything else; DUPLICATE_COLUMN_NAME; TYPE_MISMATCH as
            :func:`with_python_rows`, and for values for which Arrow has no type.
    """
    if isinstance(data, pa.RecordBatchReader):  # as it is: a second stream over it would turn Ctrl-C into an error text
        return data
    if not isinstance(data, _ARROW):
        data = with_python_rows(data)
    if type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pandas"):
        data = from_pandas(data)
    if not hasattr(data, "__arrow_c_stream__"):
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Data of type {type(data).__name__} is not understood: give a Spark DataFrame, a pandas DataFrame, "
            "Arrow data (pyarrow, Polars, DuckDB, anything with __arrow_c_stream__), or a list of dicts.",
        )
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid as error:
        if "non-struct" in str(error):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Data of type {type(data).__name__} is one column and no table; give a frame of it, as by to_frame().",
            ) from error
        raise TrinityError(
            "TYPE_MISMATCH", f"The data has a column of a type that Arrow lacks; cast it first. ({error})"
        ) from error
