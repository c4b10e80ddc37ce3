"""Parquet files through Spark's reader, which must not take from the user's settings how to read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.storage.location import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["READ_OPTIONS", "check_calendar", "read_files", "spark_schema"]

READ_OPTIONS: Final[Mapping[str, str]] = {
    # of files that do not say by which calendar they were written
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # a file that is not read is rows that are not there
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    # a path is a file, whatever it looks like: no pattern, no folder, and Hadoop's patterns have no way to say a colon
    "__globPaths__": "false",
    "recursiveFileLookup": "false",
    "mergeSchema": "false",
}
"""Options of a read that are stronger than settings of the session (N3)."""


def spark_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema as Spark's, every column nullable and without metadata.

    A timestamp without zone is a TIMESTAMP_NTZ. Pyspark by itself takes it for a TIMESTAMP, whose values move with the
    session's zone (N3).
    """
    from trinity.spark_names import from_arrow_schema

    return from_arrow_schema(pa.schema([(f.name, f.type) for f in schema]), prefer_timestamp_ntz=True)


def check_calendar(spark: SparkSession, table: str) -> None:
    """Refuses a read by a format's own reader, which takes no options, where settings say that days are Julian.

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
    """Rows of Parquet files, whatever the session's settings say of how to read them.

    Args:
        spark: the session.
        paths: of the files.
        schema: what is wanted of them; a column that a file lacks is NULL.
        options: further options of the reader.
        name: the name of a path for the reader.
    """
    read = spark.read.schema(schema).options(**{**READ_OPTIONS, **(options or {})})
    return read.parquet(*map(name, paths))
