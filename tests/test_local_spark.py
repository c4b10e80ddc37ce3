"""The Spark that ``trinity.connect`` starts: what its Python workers are spared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession


def _of_worker(_: Iterable[int]) -> Iterator[tuple[list[str], list[str], int]]:
    import gc
    import sys
    from zipimport import zipimporter

    searched = [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]
    yield [*sys.path, *searched], list(sys.modules), gc.get_freeze_count()


def test_a_task_searches_no_archives_and_imports_nothing_again(spark: SparkSession) -> None:
    """Each task of pyspark's own workers reads the directories of Spark's archives before it begins."""
    for path, imported, frozen in spark.sparkContext.parallelize([1, 2], 2).mapPartitions(_of_worker).collect():
        assert not [entry for entry in path if "spark-core" in entry or "pyspark.zip" in entry or "py4j" in entry]
        assert not [entry for entry in path if entry.endswith(".jar")]
        assert frozen
        assert {"trinity.engine.writer", "pyarrow.parquet"} <= set(imported)


def test_jars_are_given_as_files(spark: SparkSession) -> None:
    """As ``spark.jars.packages`` they would be searched for Python modules, by every task."""
    settings = spark.sparkContext.getConf()
    assert "delta-spark" in str(settings.get("spark.jars"))
    assert not settings.get("spark.jars.packages")
    assert not settings.get("spark.submit.pyFiles")
