"""The Spark of a test run, shared by all its tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from trinity.connecting import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
    # a statement's generated code runs over ten rows: a thorough compiler doubles what the JVM costs
    # (without that one the JVM keeps 48 MB for code, and once they are full it compiles nothing more);
    # a parallel garbage collector would use the core of other tests
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC",
    # each sort, group and hash join of ten rows would have a page of 64 MB, which the JVM fills with zeros and collects
    "spark.buffer.pageSize": "1m",
    "spark.sql.ui.explainMode": "simple",  # each query's plan would be stored for an unused web page
}
_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings to interpret expressions: to compile Java for ten rows takes a fifth to a third of a test.

The long tier, the demo and the benchmarks run generated code.
"""
AZURITE: Final = {
    "fs.abfss.impl": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "fs.azure.always.use.https": "false",
}
"""Hadoop's settings for Azure without TLS."""
_VENDED: Final = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
_BUCKETS: Final = {
    True: ("s3://nowhere/at-all",),
    False: ("s3://nowhere/at-all", "gs://nowhere/at-all", "abfss://nowhere@nobody.dfs.core.windows.net/at-all"),
}
"""Places in object stores; in the short tier of S3 alone, as Google's JAR has 40 MB."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> SparkSession:
    """Return the Spark session that runs, or start one with the JARs of all formats and object stores."""
    short_tier = "not full" in pytestconfig.getoption("markexpr")
    return started(tmp_path_factory.mktemp("spark"), short_tier)


def started(folder: Path, short_tier: bool) -> SparkSession:
    """Return the Spark session that runs, or start one.

    Args:
        folder: the folder for its own files.
        short_tier: whether it interprets expressions without generated code, and has the JARs of S3 alone.
    """
    settings = {
        **_SETTINGS,
        **(_INTERPRETED if short_tier else {}),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **{f"spark.hadoop.{name}": value for name, value in AZURITE.items()},
    }
    # a bucket brings the JARs of object stores; it is never asked for, as a server of Spark Connect would be
    places = () if "SPARK_REMOTE" in os.environ else _BUCKETS[short_tier]
    buckets = {f"objects{place[:2]}": {"connector": "parquet", "warehouse": place} for place in places}
    buckets["vended"] = {"connector": "iceberg", "type": "rest", "uri": "http://nowhere", **_VENDED}
    with connect(folder, catalogs=buckets, spark_settings=settings) as session:
        return session.spark


def clear_delta_cache(spark: SparkSession) -> None:
    """Let Spark forget the logs of Delta tables that it has read, as their folders may have been put back."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def drop_temp_views(spark: SparkSession) -> None:
    """Drop the temporary views that a test has made: they would hide tables of the same name in later tests."""
    own: Any = getattr(spark, "_jsparkSession", None)  # one of Spark Connect has none
    if own is not None:
        views = own.sessionState().catalog().listTempViews("default", "*")
        for number in range(views.size()):
            spark.catalog.dropTempView(views.apply(number).identifier().table())
