"""Engines of SQLAlchemy over a warehouse of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import trinity
from trinity import Session


@pytest.fixture
def engine(warehouse: Path) -> Iterator[sa.Engine]:
    """Yield an engine that never starts Spark."""
    found = sa.create_engine(f"trinity:///{warehouse}?engine=local")
    yield found
    found.dispose()


@pytest.fixture
def second_session(warehouse: Path) -> Iterator[Session]:
    """Yield a second session over the same warehouse."""
    with trinity.connect(warehouse, engine="local") as opened:
        yield opened
