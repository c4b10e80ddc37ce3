"""The stored row versions of a table, as they are: before any fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.engine.reading.spark.scan import native_rows, plain_scan
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.spark.settings import pinned
from trinity.spark.types import arrow_frame
from trinity.spark_names import F
from trinity.spi import NATIVE_FILE, NATIVE_ROW, DataFile, SplitSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def row_versions(spark: SparkSession, splits: SplitSource) -> DataFrame:
    """Return stored row versions with ``_commit_version`` BIGINT, ``_file``, ``_pos`` and ``_tier``, for ``log()``."""
    with pinned(spark):
        rows = _with_origin(spark, [*splits.files, *splits.sidecar], splits)
        return to_user_columns(rows, splits, ("_commit_version", "_file", "_pos", "_tier"))


def _with_origin(spark: SparkSession, files: Sequence[DataFile], splits: SplitSource) -> DataFrame:
    if splits.native is None:
        rows = plain_scan(spark, files, splits.storage)
    else:
        rows = native_rows(spark, files, splits.native, splits.storage)
    if not files:
        origin = {"_commit_version": "bigint", "_file": "string", "_pos": "bigint", "_tier": "string"}
        return rows.select("*", *[F.lit(None).cast(kind).alias(name) for name, kind in origin.items()])
    facts = arrow_frame(
        spark,
        pa.table(
            {
                NATIVE_FILE: [splits.native.name(f) if splits.native else f.name for f in files],
                "_commit_version": pa.array([f.commit for f in files], pa.int64()),
                "_file": [f.path for f in files],
                "_tier": [f.tier.value for f in files],
            }
        ),
    )
    if splits.native is None:
        rows = rows.selectExpr("*", f"_metadata.file_name AS {NATIVE_FILE}", f"_metadata.row_index AS {NATIVE_ROW}")
    return rows.withColumnRenamed(NATIVE_ROW, "_pos").join(F.broadcast(facts), NATIVE_FILE)
