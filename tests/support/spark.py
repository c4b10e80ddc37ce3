"""The Spark of a test run: of one folder's tests or of all, it is the same."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from trinity.connecting import connect

__all__ = ["spark_of_the_run"]

_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
    # a statement's generated code runs over ten rows: a thorough compiler doubles what the JVM costs
    # (without that one the JVM keeps 48 MB for code, and once they are full it compiles nothing more)
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m",
}


def spark_of_the_run(folder: Path) -> SparkSession:
    """The one that runs, or a new one, with the JARs of all formats and of object stores.

    Args:
        folder: for a new one's own files.
    """
    settings = {**_SETTINGS, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    # a bucket brings the JARs of object stores; it is never asked for
    buckets = {"objects": {"connector": "parquet", "warehouse": "s3://nowhere/at-all"}}
    return connect(folder, catalogs=buckets, spark_settings=settings).spark
