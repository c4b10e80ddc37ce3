"""Sessions that apply events, by this process or by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trinity
from trinity import Session


@pytest.fixture(params=["local", pytest.param("spark", marks=[pytest.mark.full, pytest.mark.spark])])
def applying(request: pytest.FixtureRequest, warehouse: Path) -> Iterator[Session]:
    """Yield a session of each executor; Spark's is in the long tier."""
    if request.param == "spark":
        yield request.getfixturevalue("session")
        return
    with trinity.connect(warehouse, engine="local") as opened:
        yield opened
