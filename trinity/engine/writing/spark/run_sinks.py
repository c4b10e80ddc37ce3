"""Sinks that Spark runs, in tasks through ``mapInArrow`` (architecture.md, A write)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trinity.calls import current_work, translated
from trinity.errors import TrinityError
from trinity.storage.grants import with_grants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESULT: Final = "fragment binary, error string"
_RESULT_ARROW: Final = pa.schema([("fragment", pa.binary()), ("error", pa.string())])

Task = Callable[[int, Iterable[pa.RecordBatch]], list[bytes]]
"""A function (order in the commit, pages) -> fragments."""


def run_on_spark(task: Task, rows: DataFrame) -> list[bytes]:
    """Run the task in every partition of a DataFrame. The arrival order of rows is that of the partitions' numbers.

    Raises:
        TrinityError: the first error of a task, as the task raised it. Tasks return their errors as values, so that
            Spark neither retries a task that cannot succeed nor puts the message into a stack trace.
    """

    def on_executor(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        try:
            found = [{"fragment": f} for f in task(context.partitionId() if context else 0, pages)]
        except TrinityError as error:
            yield pa.RecordBatch.from_pylist([{"error": error.to_json()}], schema=_RESULT_ARROW)
        else:
            yield pa.RecordBatch.from_pylist(found, schema=_RESULT_ARROW)

    current_work().executor = "spark"
    results = map_in_arrow(rows, on_executor, _RESULT).collect()
    for result in results:
        if result.error is not None:
            raise TrinityError.from_json(result.error)
    return [bytes(result.fragment) for result in results]


def _with_valid_offsets(page: pa.RecordBatch) -> pa.RecordBatch:
    """Return a page with all offsets of lists: the JVM sends none for empty lists, and Arrow's kernels would crash."""
    if page.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=page.schema)
    every = pa.array(range(page.num_rows), pa.int64())
    columns = [c.take(every) if _is_deep(c.type) else c for c in page.columns]
    return pa.RecordBatch.from_arrays(columns, schema=page.schema)


def _is_deep(kind: pa.DataType) -> bool:
    """Return True for a list or map within another type: it may lack items where the outer value is NULL or empty."""
    children = [kind.field(number).type for number in range(kind.num_fields)]
    return any((pa.types.is_nested(child) and not pa.types.is_struct(child)) or _is_deep(child) for child in children)


Pages = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(rows: DataFrame, function: Pages, schema: Any) -> DataFrame:
    """Return ``mapInArrow`` of rows. Column names may have dots and backticks, which Spark would read as syntax.

    Errors of the function are raised in the task as TrinityErrors, since Spark passes on no more than their text.
    """
    function = with_grants(function)
    names = list(rows.columns)
    if not any(sign in name for name in names for sign in ".`"):
        return rows.mapInArrow(lambda pages: translated(function(map(_with_valid_offsets, pages))), schema)
    plain = rows.toDF(*[f"_{number}" for number in range(len(names))])
    return plain.mapInArrow(
        lambda pages: translated(function(_with_valid_offsets(page).rename_columns(names) for page in pages)), schema
    )
