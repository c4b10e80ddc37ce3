"""Every action within every other one, on every adapter: a serial order explains the result, or one failed (L7)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.interleavings import ACTIONS, cheap, interleave
from trinity import Session
from trinity_conformance import connectors

FULL = pytest.mark.full
KINDS = {"keyed": True, "plain": False}
PAIRS = list(product(ACTIONS, ACTIONS))
TRIPLES = 40
"""Number of triples, of a thousand, for each kind of table."""


@pytest.fixture
def opened(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Session]:
    """Yield a session with a catalog ``c`` of the connector that the test names."""
    options = {"connector": request.param, "warehouse": str(tmp_path)}
    with trinity.connect(spark=spark, catalogs={"c": options}, catalog="c") as session:
        yield session


@pytest.mark.parametrize("opened", ["parquet"], indirect=True)
def test_l7_what_takes_no_job_within_a_statement(opened: Session) -> None:
    """A quick part of the interleavings, which runs no Spark job within a statement."""
    for number, pair in enumerate(p for p in cheap() if p[0] == "update"):
        interleave(opened, f"c.default.t{number}", pair, keyed=True)


@FULL
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opened", connectors(), indirect=True)
def test_l7_every_pair(opened: Session, kind: str) -> None:
    for number, pair in enumerate(PAIRS):
        interleave(opened, f"c.default.t{number}", pair, keyed=KINDS[kind])


@FULL
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opened", ["parquet", "delta", "iceberg"], indirect=True)
def test_l7_triples(opened: Session, kind: str) -> None:
    drawn = random.Random(20).sample(list(product(ACTIONS, repeat=3)), TRIPLES)
    for number, triple in enumerate(drawn):
        interleave(opened, f"c.default.t{number}", triple, keyed=KINDS[kind])
