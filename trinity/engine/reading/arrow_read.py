"""Merged reads as Arrow data: in this process where the plan allows it, else by Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from trinity.calls.spark import spark_errors
from trinity.engine.reading.local.columns import to_user_columns
from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.local.limits import NotLocal
from trinity.engine.reading.plan import plan_read
from trinity.engine.target import Host
from trinity.errors import TrinityError
from trinity.spi import Column, SplitSource
from trinity.syntax.quoting import quoted

__all__ = ["arrow_rows", "counted_rows"]


def arrow_rows(
    session: Host, splits: SplitSource, columns: Sequence[str] | None, where: str | None, limit: int | None
) -> pa.Table:
    """Return the merged rows of a version, as of :meth:`trinity.Table.to_arrow`. Raises as that does."""
    if limit is not None and limit < 0:
        raise TrinityError("INVALID_ARGUMENTS", f"limit={limit} is less than 0.")
    wanted = _wanted(splits, columns)
    return _at_most(_pages(session, splits, wanted, where, limit), pa.schema([c.to_arrow() for c in wanted]), limit)


def counted_rows(session: Host, splits: SplitSource) -> int:
    """Return the number of merged rows of a version; only keys and ordering columns are read for it, if anything."""
    plan = plan_read(splits)
    found = LocalExecutor().count(plan)
    if not isinstance(found, NotLocal):
        return found
    from trinity.engine.reading.merged_read import planned_read

    with spark_errors():
        return planned_read(session, plan).count()


def _pages(
    session: Host, splits: SplitSource, columns: Sequence[Column], where: str | None, limit: int | None
) -> Iterable[pa.RecordBatch]:
    if where is None:
        plan = plan_read(splits)
        pages = LocalExecutor(columns).rows(plan)
        if not isinstance(pages, NotLocal):
            return pages
    from trinity.engine.reading.merged_read import filtered_read, planned_read

    rows = planned_read(session, plan) if where is None else filtered_read(session, splits, where)
    rows = rows.select(*[quoted(c.name) for c in columns])
    with spark_errors():
        found = (rows if limit is None else rows.limit(limit)).toArrow()
    return [to_user_columns(page, columns) for page in found.to_batches()]


def _wanted(splits: SplitSource, names: Sequence[str] | None) -> Sequence[Column]:
    shown = replace(splits.definition, columns=tuple(splits.definition.visible))
    if names is None:
        return shown.columns
    if len({name.lower() for name in names}) < len(names):
        raise TrinityError("DUPLICATE_COLUMN_NAME", f"A column is named twice among {', '.join(names)}.")
    return [shown.column(name) for name in names]


def _at_most(pages: Iterable[pa.RecordBatch], schema: pa.Schema, limit: int | None) -> pa.Table:
    found, left = list[pa.RecordBatch](), sys.maxsize if limit is None else limit
    for page in pages:
        found.append(page.slice(0, left))
        left -= len(found[-1])
        if not left:
            break
    return pa.Table.from_batches(found, schema)
