"""Every installed adapter against the model, over the shared Spark. More of it: ``trinity-conformance run FORMAT``."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from trinity_conformance import Budget, connectors, run_check
from trinity_conformance.shrink import ShrinkBudget

BUDGET = Budget("test", seconds=12, histories=5, failures=1, shrink=ShrinkBudget(seconds=40, tries=40))


@pytest.mark.parametrize("connector", connectors())
def test_adapter_conforms(connector: str, spark: SparkSession, tmp_path: Path) -> None:
    report = run_check(connector, spark, budget=BUDGET, folder=tmp_path)
    assert report.conforms, report.text()
    assert report.tally.histories > 0
