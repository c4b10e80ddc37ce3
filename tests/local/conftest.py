"""Sessions that execute in this process alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trinity
from tests.support.orders import make_orders
from trinity import Session, Table


@pytest.fixture
def local(warehouse: Path) -> Iterator[Session]:
    """A session over the test's own warehouse with all formats, ``memory`` too, that never starts Spark."""
    with trinity.connect(warehouse, catalogs={"memory": {"connector": "memory"}}, engine="local") as opened:
        yield opened


@pytest.fixture(params=["parquet", "delta", "iceberg", "memory"])
def local_fmt(request: pytest.FixtureRequest) -> str:
    """Each format in turn, ``memory`` too; also the name of its catalog."""
    return str(request.param)


@pytest.fixture
def local_orders(local: Session, local_fmt: str) -> Table:
    """An empty keyed table: order_id, ts, deleted, and an amount."""
    return make_orders(local, local_fmt)
