"""A Delta catalog that is driven through the SPI alone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from trinity.spi import ConnectorContext, TableHandle
from trinity_delta import DeltaConnector, DeltaFormat

__all__ = ["commit_by_others", "commit_file", "last_action", "open_catalog"]


def open_catalog(warehouse: Path, spark: SparkSession | None) -> DeltaConnector:
    """The catalog ``lake``; without a Spark nothing may ask for one."""

    def lend() -> SparkSession:
        assert spark is not None, "no JVM is needed here"
        return spark

    connector = DeltaFormat().create("lake", {"warehouse": str(warehouse)}, ConnectorContext(lend))
    assert isinstance(connector, DeltaConnector)
    return connector


def commit_file(table: TableHandle, version: int) -> Path:
    """The file of a version's actions."""
    return Path(table.location, "_delta_log", f"{version:020d}.json")


def commit_by_others(table: TableHandle, *actions: dict[str, Any], operation: str = "ALTER") -> None:
    """The next commit, as another engine writes it."""
    log = sorted(Path(table.location, "_delta_log").glob("*.json"))
    now = int(time.time() * 1000) + 1000
    said = {"operation": operation, "operationParameters": {}}
    info = {"commitInfo": {"timestamp": now, "inCommitTimestamp": now, **said}}
    lines = "\n".join(json.dumps(a) for a in (info, *actions))
    log[-1].with_name(f"{len(log):020d}.json").write_text(lines)


def last_action(table: TableHandle, kind: str) -> Any:
    """The newest action of a kind in the log."""
    files = sorted(Path(table.location, "_delta_log").glob("*.json"))
    return [a[kind] for f in files for a in map(json.loads, f.read_text().splitlines()) if kind in a][-1]
