"""Fixtures of the adapters' tests."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support.spark import spark_of_the_run


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The Spark of the run, with the JARs of all formats."""
    return spark_of_the_run(tmp_path_factory.mktemp("spark"))
