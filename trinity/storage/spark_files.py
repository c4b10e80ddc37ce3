"""Reads of Parquet files by Spark, independent of the user's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.storage.location import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

READ_OPTIONS: Final[Mapping[str, str]] = {
    # for files that do not say by which calendar they were written
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # a skipped file would be missing rows
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    # a path is neither a pattern nor a folder; Hadoop's patterns cannot escape a colon
    "__globPaths__": "false",
    "recursiveFileLookup": "false",
    "mergeSchema": "false",
}
"""Options of a read that override settings of the session (N3)."""


def spark_schema(schema: pa.Schema) -> StructType:
    """Return an Arrow schema as Spark's, with every column nullable and without metadata.

    A timestamp without zone is a TIMESTAMP_NTZ. By default pyspark makes it a TIMESTAMP, whose values depend on the
    session's zone (N3).
    """
    from trinity.spark_names import from_arrow_schema

    return from_arrow_schema(pa.schema([(f.name, f.type) for f in schema]), prefer_timestamp_ntz=True)


def check_calendar(spark: SparkSession, table: str) -> None:
    """Check that settings do not ask for the Julian calendar: a format's own reader has no options to override them.

    Raises:
        TrinityError: CONFIGURATION_INVALID naming the setting.
    """
    for kind in ("datetime", "int96"):
        key = f"spark.sql.parquet.{kind}RebaseModeInRead"
        if (spark.conf.get(key, None) or "").upper() == "LEGACY":
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Table '{table}' is read by its format's own reader, which under {key}=LEGACY takes its dates for "
                "those of the Julian calendar; set it to CORRECTED.",
            )


def _for_spark(path: str) -> str:
    return Location.of(path).for_spark


def read_files(
    spark: SparkSession,
    paths: Sequence[str],
    schema: StructType,
    options: Mapping[str, str] | None = None,
    name: Callable[[str], str] = _for_spark,
) -> DataFrame:
    """Return rows of Parquet files, independent of the session's settings for reads.

    Args:
        spark: the session.
        paths: paths of the files.
        schema: the wanted columns; a column that a file lacks is NULL.
        options: further options of the reader.
        name: returns the text of a path for the reader.
    """
    read = spark.read.schema(schema).options(**{**READ_OPTIONS, **(options or {})})
    return read.parquet(*map(name, paths))
