"""Fixtures of the Delta adapter's tests: a catalog and a keyed table in it."""

from __future__ import annotations

from pathlib import Path

import delta.tables  # noqa: F401 - Spark then raises Delta's conflicts as other classes
import pytest
from pyspark.sql import SparkSession

from tests.support.adapter import KEYED
from tests.support.delta_lake import open_catalog
from trinity.spi import TableHandle
from trinity_delta import DeltaConnector


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> DeltaConnector:
    return open_catalog(tmp_path / "w", spark)


@pytest.fixture
def handle(lake: DeltaConnector) -> TableHandle:
    return lake.metadata.create_table(KEYED)
