"""Merged reads as Arrow data: in this process where the plan allows it, else by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from trinity.calls import spark_errors, translated
from trinity.engine.executes import NotLocal, ThisProcess, execute
from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.local.selection import to_user_columns
from trinity.engine.reading.plan import ReadPlan, plan_read, session_plan
from trinity.errors import TrinityError
from trinity.spi import Column, SplitSource
from trinity.storage.parquet_files import OldDays
from trinity.syntax.quoting import quoted
from trinity.target import Host

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def arrow_reader(
    session: Host,
    splits: SplitSource,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Return the merged rows of a version as a stream. Raises as :meth:`trinity.Table.to_reader`."""

    def stream(schema: pa.Schema, pages: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, translated(pages))  # pages may fail after the call

    return _executed(session, splits, columns, where, limit, stream)


def arrow_table(
    session: Host,
    splits: SplitSource,
    columns: Sequence[str] | None,
    where: str | None,
    limit: int | None,
) -> pa.Table:
    """Return the merged rows of a version. Raises as :meth:`trinity.Table.to_arrow`.

    If a file turns out to have values that only Spark converts, Spark reads all rows.
    """

    def whole(schema: pa.Schema, pages: Iterable[pa.RecordBatch]) -> pa.Table | NotLocal:
        try:
            return pa.Table.from_batches(pages, schema)
        except OldDays as error:
            return NotLocal(error.message, error)

    return _executed(session, splits, columns, where, limit, whole)


def _executed(
    session: Host,
    splits: SplitSource,
    columns: Sequence[str] | None,
    where: str | None,
    limit: int | None,
    taken: Callable[[pa.Schema, Iterable[pa.RecordBatch]], T | NotLocal],
) -> T:
    """Return what ``taken`` makes of the merged rows, which this process or Spark reads."""
    if limit is not None and limit < 0:
        raise TrinityError("INVALID_ARGUMENTS", f"limit={limit} is less than 0.")
    wanted = _selected_columns(splits, columns)

    @cache
    def plan(spark: SparkSession | None) -> ReadPlan:
        """Plan once; again only for a Spark that was started since, since its time zone may be another."""
        return session_plan(session, splits, where, arrow=True)

    def result(pages: Iterator[pa.RecordBatch]) -> T | NotLocal:
        return taken(_schema(wanted), pages if limit is None else _at_most(pages, limit))

    def here(_: ThisProcess) -> T | NotLocal:
        pages = LocalExecutor(wanted).rows(plan(session.running_spark))
        return pages if isinstance(pages, NotLocal) else result(pages)

    def by_spark() -> T:
        found = result(_by_spark(session, plan, wanted, where, limit))
        assert not isinstance(found, NotLocal)
        return found

    return execute(session, f"Reading '{splits.definition.full_name}'", here, by_spark, arrow=True)


def arrow_schema(splits: SplitSource, columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of :func:`arrow_reader`."""
    return _schema(_selected_columns(splits, columns))


def _schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([column.to_arrow() for column in columns])


def counted_rows(session: Host, splits: SplitSource) -> int:
    """Return the number of merged rows of a version; only keys and ordering columns are read for it, if anything."""
    plan = plan_read(splits)
    return execute(
        session,
        f"Counting the rows of '{splits.definition.full_name}'",
        lambda _: LocalExecutor().count(plan),
        lambda: _counted_by_spark(session, plan),
        arrow=True,
    )


def _counted_by_spark(session: Host, plan: ReadPlan) -> int:
    from trinity.engine.reading.spark.merged_read import planned_read

    with spark_errors():
        return planned_read(session, lambda _: plan).count()


def _by_spark(
    session: Host,
    plan: Callable[[SparkSession], ReadPlan],
    columns: Sequence[Column],
    where: str | None,
    limit: int | None,
) -> Iterator[pa.RecordBatch]:
    from trinity.engine.reading.spark.merged_read import planned_read

    rows = planned_read(session, plan, where).select(*[quoted(c.name) for c in columns])
    with spark_errors():
        found = (rows if limit is None else rows.limit(limit)).toArrow()
    return (to_user_columns(page, columns) for page in found.to_batches())


def _selected_columns(splits: SplitSource, names: Sequence[str] | None) -> Sequence[Column]:
    shown = replace(splits.definition, columns=tuple(splits.definition.visible))
    if names is None:
        return shown.columns
    if len({name.lower() for name in names}) < len(names):
        raise TrinityError("DUPLICATE_COLUMN_NAME", f"A column is named twice among {', '.join(names)}.")
    return [shown.column(name) for name in names]


def _at_most(pages: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    for page in pages:
        yield page.slice(0, limit)
        limit -= min(limit, len(page))
        if not limit:
            break
