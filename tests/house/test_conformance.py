"""Every installed adapter against the model, over the shared Spark. ``trinity-conformance run FORMAT`` plays more."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_lake import BucketLake
from tests.support.budgets import BUDGET, QUICK
from tests.support.without_spark import run_without_spark
from trinity.engine.reading.hidden_rows import LEAST_ROWS
from trinity_conformance import Column, History, Shape, connectors, run_check
from trinity_conformance.playing.meanwhile import MEANWHILE
from trinity_conformance.playing.sink_checks import SINK_CHECKS
from trinity_conformance.playing.traces import Compact, Upsert
from trinity_conformance.report.script import script

pytestmark = pytest.mark.inner


# test_plugin.py runs Acme's adapter, which consists of the same code as the in-memory one
@pytest.mark.parametrize(
    "connector", [pytest.param(c, marks=[pytest.mark.full] if c == "memory" else []) for c in connectors()]
)
def test_adapter_conforms(connector: str, spark: SparkSession, tmp_path: Path) -> None:
    report = run_check(connector, spark, budget=QUICK, seed=1, folder=tmp_path)
    assert report.conforms, report.text()
    assert report.tally.histories > 0
    assert report.tally.observations["row-change"] > 0
    assert report.tally.observations["merge-engines"] > 0
    assert report.tally.observations["merge-sinks"] == len(SINK_CHECKS)


ALONE = """
import sys
from pathlib import Path
from tests.support.budgets import QUICK
from trinity_conformance import BUDGETS, run_check
budget = {"quick": QUICK, "smoke": BUDGETS["smoke"]}[sys.argv[3]]
report = run_check(sys.argv[1], None, budget=budget, seed=1, folder=Path(sys.argv[2]))
assert report.conforms, report.text()
seen = report.tally.coverage.counts
assert seen["local"] and seen["local change"] and not seen["spark after local"], seen
print(*(result.check.id for result in report.results if result.observations))
"""


@pytest.mark.parametrize(
    ("connector", "budget"),
    [("memory", "quick"), *(pytest.param(c, "smoke", marks=pytest.mark.full) for c in connectors())],
)
def test_adapter_conforms_without_spark(connector: str, budget: str, tmp_path: Path) -> None:
    compared = set(run_without_spark(ALONE, connector, str(tmp_path), budget).splitlines()[-1].split())
    assert {"read-equality", "row-change", "merge-engines", "merge-sinks"} <= compared
    assert "executors" not in compared


@pytest.mark.full
@pytest.mark.parametrize("connector", connectors())
def test_commits_within_commits(connector: str, spark: SparkSession, tmp_path: Path) -> None:
    report = run_check(connector, spark, "concurrency", BUDGET, folder=tmp_path)
    assert report.conforms, report.text()
    assert report.tally.observations["concurrency"] == 2 * len(MEANWHILE)


@pytest.mark.full
@pytest.mark.parametrize("connector", connectors())
def test_adapter_conforms_in_more_histories(connector: str, spark: SparkSession, tmp_path: Path) -> None:
    report = run_check(connector, spark, budget=BUDGET, folder=tmp_path)
    assert report.conforms, report.text()


@pytest.mark.full
@pytest.mark.parametrize("connector", connectors())
@LEAST_ROWS.set_to(0)
def test_adapter_conforms_when_reads_know_their_rows(connector: str, spark: SparkSession, tmp_path: Path) -> None:
    """No read joins, however small the table: each one searches for its hidden rows, or knows them."""
    report = run_check(connector, spark, budget=BUDGET, folder=tmp_path)
    assert report.conforms, report.text()


@pytest.mark.full
def test_adapter_conforms_in_a_bucket(cloud: BucketLake, spark: SparkSession, tmp_path: Path) -> None:
    options = cloud.settings()
    report = run_check(options.pop("connector"), spark, budget=BUDGET, folder=tmp_path, options=options)
    assert report.conforms, report.text()
    assert report.tally.observations["merge-sinks"] == len(SINK_CHECKS)
    assert list(tmp_path.rglob("*.parquet")) == []


@pytest.mark.parametrize(
    "cloud", ["parquet", *(pytest.param(f, marks=pytest.mark.full) for f in ("delta", "iceberg"))], indirect=True
)
def test_what_an_adapter_declares_is_verified_in_a_bucket(cloud: BucketLake, tmp_path: Path) -> None:
    """Tables of folders keep their names in the bucket; that is not reported."""
    options = cloud.settings()
    report = run_check(options.pop("connector"), None, "capabilities", folder=tmp_path, options=options)
    assert report.conforms, report.text()
    assert report.undeclared == []  # neither Iceberg's commits, whose metadata are put there, and whose names are not


@pytest.mark.full
def test_an_exported_history_plays_data_frames(spark: SparkSession, tmp_path: Path) -> None:
    """The frames have one partition for each split, as in the suite, and both executors take steps by turns."""
    steps = (
        Upsert((((1, "0.0"),), ((2, "NaN"),)), path="spark"),
        Upsert((((1, "1.5"),),), executor="local"),
        Compact(),
    )
    shape = Shape((Column("k", "int", nullable=False), Column("v", "double")), ("k",))
    space: dict[str, object] = {"__name__": "finding"}
    exec(compile(script(History(shape, steps), "parquet", "none"), "finding.py", "exec"), space)
    play = space["play"]
    assert callable(play)
    play(str(tmp_path))
