"""Rows for the benchmarks: a base of even ids, and changes of a share of them, made by hashing."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from trinity import Column

COLUMNS: Final = [
    Column("id", "bigint"),
    Column("ts", "timestamp"),
    Column("del", "boolean"),
    Column("s", "string"),
    Column("a", "bigint"),
    Column("b", "double"),
    Column("c", "int"),
    Column("d", "double"),
]

_START_US: Final = 1_700_000_000_000_000
_DAY_US: Final = 86_400_000_000


def base_rows(spark: SparkSession, rows: int) -> DataFrame:
    """Return ``rows`` rows with the even ids below ``2 * rows``, none deleted."""
    ids = spark.range(0, rows, 1, 8).select((F.col("id") * 2).alias("id"), F.lit(False).alias("del"))
    return _filled(ids, 1, _START_US)


def changes(spark: SparkSession, rows: int, count: int, salt: int, parts: int) -> DataFrame:
    """Return ``count`` changes, spread evenly over the key space: 8 of 10 update, 1 deletes, 1 inserts (an odd id)."""
    number = F.pmod(F.xxhash64("id", F.lit(salt)), F.lit(rows)) * 2
    kind = F.pmod(F.xxhash64("id", F.lit(salt + 1)), F.lit(10))
    ids = spark.range(0, count, 1, parts).select(
        F.when(kind == 0, number + 1).otherwise(number).alias("id"), (kind == 1).alias("del")
    )
    return _filled(ids, salt, _START_US + 2 * _DAY_US)


def batch(spark: SparkSession, rows: int, count: int, number: int) -> DataFrame:
    """Return about ``count`` changes, in two parts, no key twice: each newer than all of a lower number."""
    days = F.lit(number).cast("long") * _DAY_US
    rows_of = changes(spark, rows, count, 1000 + 10 * number, 2).dropDuplicates(["id"]).coalesce(2)
    return rows_of.withColumn("ts", F.timestamp_micros(F.unix_micros("ts") + days))


def _filled(ids: DataFrame, salt: int, start_us: int) -> DataFrame:
    def drawn(offset: int, limit: int) -> F.Column:  # type: ignore[name-defined]
        return F.pmod(F.xxhash64("id", F.lit(salt + offset)), F.lit(limit))

    return ids.select(
        "id",
        F.timestamp_micros(F.lit(start_us) + drawn(2, _DAY_US)).alias("ts"),
        "del",
        F.substring(F.md5(F.concat_ws("-", "id", F.lit(salt))), 1, 20).alias("s"),
        F.xxhash64("id", F.lit(salt + 3)).alias("a"),
        (F.xxhash64("id", F.lit(salt + 4)) / 1e12).alias("b"),
        drawn(5, 10_000).cast("int").alias("c"),
        (drawn(6, 1_000_000) / 100).alias("d"),
    )
