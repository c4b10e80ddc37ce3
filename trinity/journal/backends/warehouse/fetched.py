"""Rows that a statement on Trinity tables returns, as tuples and as Arrow data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trinity.engine.writing.casts import cast_array
from trinity.errors import TrinityError
from trinity.journal.backends.base import ArrowRows, Described, Result
from trinity.rows import rows_of
from trinity.spark.types import arrow_schema
from trinity.spi import DataType, parse_given_type, type_text
from trinity.zones import zone_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.result import Result as Answer

_COUNT: Final = "num_affected_rows"
_VOID: Final = DataType("void")
_INSTANT: Final = re.compile(r'"(type|elementType|keyType|valueType)":"timestamp"')
"""The type TIMESTAMP in the JSON of a schema."""
_READ_AHEAD: Final = 100_000
"""Number of rows that are read before ``execute`` returns; a result with fewer rows is read whole."""


def fetch_result(rows: Answer, timezone: str) -> Result:
    """Return the rows of a query, or the count of a change; ``timezone`` is the session's."""
    if not rows.columns:
        return Result(None, iter(()), -1)
    if rows.columns[0] == _COUNT:
        return Result(None, iter(()), rows.collect()[0][0])
    return (
        fetched_frame(rows.frame, timezone) if rows.frame is not None else _streamed_result(rows.to_reader(), timezone)
    )


def fetched_frame(rows: DataFrame, timezone: str) -> Result:
    """Return the rows of a DataFrame, which Spark computes whole."""
    description: list[Described] = [
        (f.name, f.dataType.simpleString(), None, None, None, None, f.nullable) for f in rows.schema.fields
    ]
    if _has_arrow_types(rows):
        return replace(_streamed_result(rows.toArrow().to_reader(), timezone), description=description)
    found = [tuple(r) for r in _with_local_times(rows).collect()]
    return Result(description, iter(found), len(found))


def _has_arrow_types(rows: DataFrame) -> bool:
    try:
        return bool(_kinds(arrow_schema(rows.schema)))
    except TrinityError:  # VARIANT, intervals
        return False


def _kinds(schema: pa.Schema) -> list[DataType]:
    return [parse_given_type(type_text(field.type)) for field in schema]


def _streamed_result(pages: pa.RecordBatchReader, timezone: str) -> Result:
    """Return the rows of a stream. The first ones are read now, so that ``execute`` raises most errors."""
    kinds = _kinds(pages.schema)
    description: list[Described] = [
        (f.name, str(kind), None, None, None, None, f.nullable) for f, kind in zip(pages.schema, kinds, strict=True)
    ]
    read, count = list[pa.RecordBatch](), 0
    for page in pages:
        read.append(page)
        count += len(page)
        if count >= _READ_AHEAD:
            break
    whole = count < _READ_AHEAD
    found = ArrowRows(pages.schema, chain(read, pages), lambda page: _tuples(page, kinds, timezone))
    return Result(description, found, count if whole else -1)


def _tuples(page: pa.RecordBatch, kinds: Sequence[DataType], timezone: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a page, in which instants are local times of ``timezone``."""
    columns = [
        cast_array(column, kind.to_arrow(), "a column", timezone) if kind != _VOID else column
        for column, kind in zip(page.columns, kinds, strict=True)
    ]
    return map(tuple, rows_of(pa.record_batch(columns, names=page.schema.names), zone_of(timezone)))


def _with_local_times(rows: DataFrame) -> DataFrame:
    """Return the rows with instants as datetimes without zone, in the session's zone, as parameters are read.

    PySpark would return them in the process's zone.
    """
    from trinity.spark_names import StructType

    clocks = StructType.fromJson(json.loads(_INSTANT.sub(r'"\1":"timestamp_ntz"', rows.schema.json())))
    if clocks == rows.schema:
        return rows
    plain = rows.toDF(*[f"_{number}" for number in range(len(clocks))])
    return plain.select(*[plain[f"_{number}"].cast(field.dataType) for number, field in enumerate(clocks)])
