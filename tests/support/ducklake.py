"""The example adapter of DuckLake tables, which is not installed, for tests."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import trinity
from tests.support.paths import TESTS
from trinity import Session


def ducklake_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the class of the DuckLake adapter."""
    monkeypatch.syspath_prepend(str(TESTS / "plugins/ducklake"))
    return importlib.import_module("ducklake_trinity").DuckLakeFormat


@contextmanager
def open_lake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Yield a session without Spark, whose catalog is in a folder."""
    catalogs = {"lake": {"connector": ducklake_class(monkeypatch), "warehouse": str(folder / "lake")}}
    with trinity.connect(catalogs=catalogs, catalog="lake", engine="local") as session:
        yield session
