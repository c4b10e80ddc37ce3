"""L7 and L13 without Spark: every action within every other one; a serial order explains the result, or one failed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import trinity
from trinity import Session
from trinity_conformance import connectors
from trinity_conformance.playing.interleavings import ACTIONS, interleave

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
