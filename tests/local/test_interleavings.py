"""L7 and L13 without Spark: every action within every other one; a serial order explains the result, or one failed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

import trinity
from tests.support.interleavings import ACTIONS, interleave
from tests.support.refusals import refused
from trinity import Column, Session
from trinity_conformance import connectors

KINDS = {"keyed": True, "plain": False}
PAIRS = list(product(ACTIONS, ACTIONS))
QUICK = [("update", other) for other in ACTIONS] + [(one, "merge") for one in ("compact", "delete", "append")]
QUICK += [("append", "replace"), ("compact", "replace"), ("replace", "append")]


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """Yield a session without Spark, with a catalog ``c`` of the connector that the test names."""
    options = {"connector": request.param, "warehouse": str(tmp_path)}
    with trinity.connect(catalogs={"c": options}, catalog="c", engine="local") as session:
        yield session


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opened", ["memory"], indirect=True)
def test_l7_a_part_of_all_pairs(opened: Session, kind: str) -> None:
    for number, pair in enumerate(QUICK):
        interleave(opened, f"c.default.t{number}", pair, keyed=KINDS[kind])


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opened", connectors(), indirect=True)
def test_l7_every_pair(opened: Session, kind: str) -> None:
    for number, pair in enumerate(PAIRS):
        interleave(opened, f"c.default.t{number}", pair, keyed=KINDS[kind])


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opened", connectors(), indirect=True)
def test_l7_triples(opened: Session, kind: str) -> None:
    drawn = random.Random(20).sample(list(product(ACTIONS, repeat=3)), 60)
    for number, triple in enumerate(drawn):
        interleave(opened, f"c.default.t{number}", triple, keyed=KINDS[kind])


@pytest.mark.parametrize("opened", ["memory", "parquet", "delta", "iceberg"], indirect=True)
def test_l7_a_compaction_brings_no_tombstones_back(opened: Session) -> None:
    """No live file shows that the table was truncated after the compaction had begun."""
    columns = [Column("k", "int"), Column("ts", "int")]
    table = opened.create_table("c.default.t", columns, primary_key=["k"], properties={"watermark-key": "ts"})
    table.upsert(pa.table({"k": [1], "ts": [200]}))
    table.delete([1])
    table.compact("full")
    splits, metadata = table.splits(), table.connector.metadata
    assert (splits.files, len(splits.sidecar)) == ((), 1)
    begun = replace(metadata.begin_rewrite(table.handle, ()), sidecar=splits.sidecar)
    table.truncate()
    with refused("TRANSACTION_CONFLICT", "tombstones", "compact again"):
        metadata.finish_rewrite(begun, [], replace_sidecar=True)
    table.upsert(pa.table({"k": [1], "ts": [100]}))
    assert table.to_arrow().to_pylist() == [{"k": 1, "ts": 100}]
