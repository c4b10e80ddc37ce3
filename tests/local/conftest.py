"""Sessions that execute in this process, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trinity
from tests.support.orders import make_orders
from trinity import Session, Table


@pytest.fixture
def local(warehouse: Path) -> Iterator[Session]:
    """Yield a session that never starts Spark, over the test's own warehouse, with all formats and ``memory``."""
    with trinity.connect(warehouse, catalogs={"memory": {"connector": "memory"}}, engine="local") as opened:
        yield opened


@pytest.fixture(params=["parquet", "delta", "iceberg", "memory"])
def local_fmt(request: pytest.FixtureRequest) -> str:
    """Return each format in turn, ``memory`` too, which is the name of its catalog, too."""
    return str(request.param)


@pytest.fixture
def local_orders(local: Session, local_fmt: str) -> Table:
    """Make an empty keyed table with the columns order_id, ts, deleted, and an amount."""
    return make_orders(local, local_fmt)
