"""Fixtures of the Delta adapter's tests: a catalog and a keyed table in it."""

from __future__ import annotations

from pathlib import Path

import delta.tables  # noqa: F401 - Spark then raises Delta's conflicts as other classes
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.delta_lake import KEYED, open_catalog
from trinity.spi import TableHandle
from trinity_delta import DeltaConnector


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The Spark of the run when there is one, else one with the JARs of all formats."""
    settings = {"spark.master": "local[2]", "spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    return trinity.connect(tmp_path_factory.mktemp("spark"), spark_settings=settings).spark


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> DeltaConnector:
    return open_catalog(tmp_path / "w", spark)


@pytest.fixture
def table(lake: DeltaConnector) -> TableHandle:
    return lake.metadata.create_table(KEYED)
