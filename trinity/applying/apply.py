"""``trinity.apply_changes``, and the creation of its targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trinity.applying.arguments import ApplyArguments, RawArguments
from trinity.applying.local.intervals import why_not_local
from trinity.applying.shapes import Shape, check_target, shape_of
from trinity.applying.upserts import apply_as_upserts, apply_here, deleting_here, stored_columns
from trinity.calls import public
from trinity.definition.columns import columns_of
from trinity.engine.appending.append import append_rows, arrow_reader, given_rows, is_spark_frame, source_frame
from trinity.engine.executes import NotLocal, ThisProcess, execute, refuse_alone
from trinity.engine.program import Expression
from trinity.errors import TrinityError
from trinity.merge.properties import Properties
from trinity.session import Session
from trinity.spi import Column, CommitResult, TransactionId
from trinity.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


@public
def apply_changes(
    source: Any,
    target: Table | str,
    keys: Sequence[str],
    sequence_by: str | SparkColumn | Sequence[str],
    *,
    apply_as_deletes: Expression | None = None,
    apply_as_truncates: Expression | None = None,
    ignore_null_updates: bool = False,
    column_list: Sequence[str] | None = None,
    except_columns: Sequence[str] | None = None,
    stored_as_scd_type: int | str = 1,
    track_history_column_list: Sequence[str] | None = None,
    track_history_except_column_list: Sequence[str] | None = None,
    session: Session | None = None,
    txn: TransactionId | None = None,
    checkpoint: str | Path | None = None,
    **stream: Any,
) -> CommitResult | StreamingQuery:
    """Apply change events to a table, each batch in one commit; events may come in any order (H1-H5).

    Args:
        source: the events: data as in :meth:`Table.upsert`, or a streaming DataFrame.
        target: the table; or its name, with ``session``: the table is then created unless it exists.
        keys: columns that identify rows.
        sequence_by: column that orders the events of a key; or several, compared left to right.
        apply_as_deletes: condition of events that delete their row, Spark SQL text or Column.
        apply_as_truncates: not supported.
        ignore_null_updates: True to let NULL leave a value as it was; only for SCD type 1.
        column_list: columns that the target stores; all by default.
        except_columns: columns that the target does not store; instead of ``column_list``.
        stored_as_scd_type: 1 for the current rows, 2 for all their versions.
        track_history_column_list: columns whose change begins a version; by default all but keys and sequence.
        track_history_except_column_list: columns whose change does not; instead of ``track_history_column_list``.
        session: the session in which the target's name is resolved.
        txn: see :meth:`Table.upsert`; not for a stream.
        checkpoint: checkpoint folder of a stream; see :meth:`Table.stream_writer`.
        stream: ``query_name``, ``available_now``, ``processing_time`` and ``compact_every`` of a stream.

    Returns:
        the commit, whose ``rows`` counts the row versions written; of a stream its running query.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a target of another shape, with the CREATE TABLE of a right one;
            COLUMN_NOT_FOUND, TYPE_MISMATCH, NOT_SUPPORTED; CONSTRAINT_VIOLATION for a NULL in a key or sequence.
    """
    given = RawArguments(
        keys, sequence_by, apply_as_deletes, ignore_null_updates, column_list, except_columns, stored_as_scd_type,
        track_history_column_list, track_history_except_column_list,
    )  # fmt: skip
    if apply_as_truncates is not None:
        raise TrinityError(
            "NOT_SUPPORTED",
            "apply_as_truncates is not supported: late events would bring rows back that were there before. Leave such "
            "events out of the source, and truncate the table by itself (TRUNCATE TABLE) where it has to be.",
        )
    events = _EventSource.of(source)
    if events.streams != (checkpoint is not None) or (stream and not events.streams):
        why = "is a stream; give checkpoint=" if events.streams else "is no stream; leave checkpoint= and its words out"
        raise TrinityError("INVALID_ARGUMENTS", f"apply_changes(): the source {why}.")
    if events.streams and txn is not None:
        raise TrinityError("INVALID_ARGUMENTS", "apply_changes(): a stream has txn of its own; leave txn= out.")
    arguments = given.checked([column.name for column in events.columns])
    shape = shape_of(arguments, events.columns)
    table = _target_of(target, session, shape, partial(_check_executor, events.columns, arguments, shape))
    if checkpoint is None:
        return _apply(table, events.rows, arguments, shape, txn)
    check_target(str(table.name), table.definition, arguments, shape)
    return _start_stream(
        table, events.rows, partial(_apply, table, arguments=arguments, shape=shape), checkpoint, stream
    )


@public
def create_changes_target(
    session: Session,
    name: str,
    source: Any,
    keys: Sequence[str],
    sequence_by: str | SparkColumn | Sequence[str],
    *,
    apply_as_deletes: Expression | None = None,
    ignore_null_updates: bool = False,
    column_list: Sequence[str] | None = None,
    except_columns: Sequence[str] | None = None,
    stored_as_scd_type: int | str = 1,
    track_history_column_list: Sequence[str] | None = None,
    track_history_except_column_list: Sequence[str] | None = None,
    partition_by: Sequence[str] = (),
    properties: Properties | None = None,
    if_not_exists: bool = False,
) -> Table:
    """Create an empty table into which :func:`apply_changes` with the same arguments can apply events.

    The catalog of the name decides the format. ``source`` may also be the columns of the events: an Arrow or Spark
    schema, or a list of :class:`Column`. Partition columns must be among the keys (K5). ``properties`` are further
    properties of the table. With ``if_not_exists`` a table that exists already is returned.

    Raises:
        TrinityError: as :func:`apply_changes` for its arguments, and as ``session.create_table``.
    """
    given = RawArguments(
        keys, sequence_by, apply_as_deletes, ignore_null_updates, column_list, except_columns, stored_as_scd_type,
        track_history_column_list, track_history_except_column_list,
    )  # fmt: skip
    source = given_rows(source)
    schema = source.schema if is_spark_frame(source) else source
    columns = columns_of(schema) if _is_schema(schema) else _EventSource.of(source).columns
    shape = shape_of(given.checked([column.name for column in columns]), columns)
    wanted = {**shape.properties, **(properties or {})}
    return _create_target(session, name, shape, wanted, partition_by, if_not_exists=if_not_exists)


@dataclass(frozen=True)
class _EventSource:
    """The source of the events: its rows, and their columns."""

    rows: Any
    columns: Sequence[Column]

    @classmethod
    def of(cls, source: Any) -> _EventSource:
        if is_spark_frame(source := given_rows(source)):
            return cls(source, columns_of(source.schema, collated=True))
        rows = arrow_reader(source).read_all()
        return cls(rows, columns_of(rows.schema))

    @property
    def streams(self) -> bool:
        """True for a streaming DataFrame."""
        return is_spark_frame(self.rows) and bool(self.rows.isStreaming)


def _is_schema(given: Any) -> bool:
    return isinstance(given, (list, tuple, pa.Schema)) or type(given).__name__ == "StructType"


def _create_target(
    session: Session,
    name: str,
    shape: Shape,
    properties: Properties,
    partition_by: Sequence[str] = (),
    *,
    if_not_exists: bool,
) -> Table:
    return session.create_table(
        name,
        shape.columns,
        primary_key=shape.key,
        partition_by=partition_by,
        properties=properties,
        if_not_exists=if_not_exists,
    )


def _target_of(target: Table | str, session: Session | None, shape: Shape, check: Callable[[Session], None]) -> Table:
    """Return the target; create it if a name has no table. ``check`` is called with the session before that."""
    if not isinstance(target, str):
        check(target.session)
        return target
    if session is None:
        message = f"target='{target}' is a name; give session= too, or the table: session.table('{target}')."
        raise TrinityError("INVALID_ARGUMENTS", message)
    check(session)
    return _create_target(session, target, shape, shape.properties, if_not_exists=True)


def _check_executor(columns: Sequence[Column], arguments: ApplyArguments, shape: Shape, session: Session) -> None:
    """Refuse what needs Spark in a session that must not start it, before a table is made."""

    def why_no_deletes() -> NotLocal | None:
        found = deleting_here(columns, arguments, lambda: session.timezone)
        return found if isinstance(found, NotLocal) else None

    if arguments.history:
        refuse_alone(session, "apply_changes() of SCD type 2", lambda: why_not_local(shape.columns))
    if arguments.deletes is not None:
        refuse_alone(session, "apply_changes() with apply_as_deletes", why_no_deletes)


def _start_stream(
    table: Table, rows: DataFrame, step: Any, checkpoint: str | Path, options: dict[str, Any]
) -> StreamingQuery:
    from trinity.engine.streaming.batches import StreamOptions
    from trinity.engine.streaming.stream_in import stream_in

    if unknown := options.keys() - {"query_name", "available_now", "processing_time", "compact_every"}:
        raise TrinityError("INVALID_ARGUMENTS", f"apply_changes() has no argument '{min(unknown)}'.")
    apply = lambda batch, txn: (step(rows=batch, txn=txn), "")  # noqa: E731
    return stream_in(table, rows, StreamOptions(checkpoint, **options, apply=apply))


def _apply(table: Table, rows: Any, arguments: ApplyArguments, shape: Shape, txn: TransactionId | None) -> CommitResult:
    """Apply one batch."""
    definition = table.definition
    spec = check_target(str(table.name), definition, arguments, shape)
    if arguments.history:
        from trinity.applying.history import apply_to_history

        return apply_to_history(table, rows, arguments, txn)

    def here(_: ThisProcess) -> CommitResult | NotLocal:
        found = deleting_here(columns_of(rows.schema), arguments, lambda: table.session.timezone)
        return (
            found if isinstance(found, NotLocal) else apply_here(table, rows, arguments, definition, spec, txn, found)
        )

    def by_spark() -> CommitResult:
        return apply_as_upserts(table, source_frame(table.session.spark, rows), arguments, definition, spec, txn)

    if is_spark_frame(rows):
        return by_spark()
    if arguments.deletes is None:
        return append_rows(table, stored_columns(table, rows, arguments), txn, keyed=True)
    return execute(table.session, f"apply_changes() to '{table.name}'", here, by_spark, arrow=True)
