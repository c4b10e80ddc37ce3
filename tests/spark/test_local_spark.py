"""The Spark that ``trinity.connect`` starts: work that its Python workers need not do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from pyspark.sql import SparkSession

from trinity import Session, TrinityError
from trinity.spark.class_lookups import without_call_sites

pytestmark = pytest.mark.inner


def _of_worker(_: Iterable[int]) -> Iterator[tuple[list[str], list[str], int]]:
    import gc
    import sys
    from zipimport import zipimporter

    searched = [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]
    yield [*sys.path, *searched], list(sys.modules), gc.get_freeze_count()


def test_a_task_searches_no_archives_and_imports_nothing_again(spark: SparkSession) -> None:
    """In pyspark's own workers, each task reads the directories of Spark's archives before it begins."""
    for path, imported, frozen in spark.sparkContext.parallelize([1, 2], 2).mapPartitions(_of_worker).collect():
        assert not [entry for entry in path if "spark-core" in entry or "pyspark.zip" in entry or "py4j" in entry]
        assert not [entry for entry in path if entry.endswith(".jar")]
        assert frozen
        assert {"trinity.engine.writing.spark.run_sinks", "pyarrow.parquet"} <= set(imported)


def test_jars_are_given_as_files(spark: SparkSession) -> None:
    """Every task would search ``spark.jars.packages`` for Python modules."""
    settings = spark.sparkContext.getConf()
    assert "delta-spark" in str(settings.get("spark.jars"))
    assert not settings.get("spark.jars.packages")
    assert not settings.get("spark.submit.pyFiles")


def test_columns_of_a_statement_tell_no_line(session: Session) -> None:
    """pyspark's debugging is off while Trinity plans, and restored afterwards, even if the statement fails."""
    from pyspark.errors import utils
    from pyspark.sql import functions as F

    F.col("a")  # pyspark reads its setting with the first
    assert utils.is_debugging_enabled()
    session.sql("CREATE TABLE t (a INT)")
    session.sql("INSERT INTO t VALUES (1)")
    table = session.table("t")
    with without_call_sites():
        table.update(None, {"a": "a + 1"})
        assert not utils.is_debugging_enabled()
    with pytest.raises(TrinityError):
        table.update(None, {"b": "1"})
    assert utils.is_debugging_enabled()
    with pytest.raises(Exception, match="test_local_spark"):
        session.spark.range(1).select(F.col("id") / F.lit(0)).collect()
