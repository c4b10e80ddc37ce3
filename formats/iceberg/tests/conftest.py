"""Fixtures of the Iceberg adapter's tests: a catalog and a keyed table in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.adapter import KEYED
from tests.support.iceberg_lake import open_catalog
from trinity.spi import TableHandle
from trinity_iceberg import IcebergConnector


@pytest.fixture
def lake(tmp_path: Path) -> IcebergConnector:
    return open_catalog(tmp_path / "w")


@pytest.fixture
def handle(lake: IcebergConnector) -> TableHandle:
    return lake.metadata.create_table(KEYED)
