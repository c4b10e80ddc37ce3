"""A Delta catalog driven through the SPI alone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from trinity.spi import ConnectorContext, TableHandle
from trinity_delta import DeltaConnector, DeltaFormat


def open_catalog(warehouse: Path, spark: SparkSession | None) -> DeltaConnector:
    """Open the catalog ``lake``. Without a Spark session, asking for one fails."""

    def lend() -> SparkSession:
        assert spark is not None, "no JVM is needed here"
        return spark

    connector = DeltaFormat().create("lake", {"warehouse": str(warehouse)}, ConnectorContext(lend))
    assert isinstance(connector, DeltaConnector)
    return connector


def commit_file(table: TableHandle, version: int) -> Path:
    """Return the path of a version's commit file."""
    return Path(table.location, "_delta_log", f"{version:020d}.json")


def commit_by_others(table: TableHandle, *actions: dict[str, Any], operation: str = "ALTER", **parameters: Any) -> None:
    """Write the next commit as another engine writes it."""
    log = sorted(Path(table.location, "_delta_log").glob("*.json"))
    now = int(time.time() * 1000) + 1000
    named = {"operation": operation, "operationParameters": parameters}
    info = {"commitInfo": {"timestamp": now, "inCommitTimestamp": now, **named}}
    lines = "\n".join(json.dumps(a) for a in (info, *actions))
    log[-1].with_name(f"{len(log):020d}.json").write_text(lines)


def last_action(table: TableHandle, kind: str) -> Any:
    """Return the newest action of a kind in the log."""
    files = sorted(Path(table.location, "_delta_log").glob("*.json"))
    return [a[kind] for f in files for a in map(json.loads, f.read_text().splitlines()) if kind in a][-1]


def restore_by_others(table: TableHandle, to: int, **info: Any) -> None:
    """Restore a version as Spark's RESTORE does: its files and its settings, but not its domain metadata.

    Args:
        table: the table.
        to: the version.
        info: fields of ``commitInfo`` that name the version, instead of its number.
    """
    now, then = _live(table, len(list(Path(table.location, "_delta_log").glob("*.json"))) - 1), _live(table, to)
    gone = [{"remove": {**_named(now[key]), "deletionTimestamp": 1, "dataChange": True}} for key in now.keys() - then]
    come = [{"add": {**then[key], "dataChange": True}} for key in then.keys() - now]
    actions = ({"metaData": _newest(table, "metaData", to)}, *come, *gone)
    commit_by_others(table, *actions, operation="RESTORE", version=None if info else to, **info)


def _named(added: dict[str, Any]) -> dict[str, Any]:
    return {key: added[key] for key in ("path", "deletionVector", "tags") if key in added}


def _newest(table: TableHandle, kind: str, version: int) -> Any:
    """Return the newest action of a kind up to a version."""
    return [a[kind] for n in range(version + 1) for a in actions_of(table, n) if kind in a][-1]


def actions_of(table: TableHandle, version: int) -> list[dict[str, Any]]:
    """Return the actions of a version's commit."""
    return [json.loads(line) for line in commit_file(table, version).read_text().splitlines()]


def _live(table: TableHandle, version: int) -> dict[tuple[str, str | None], Any]:
    """Return the files of a version, by path and deletion vector."""
    found: dict[tuple[str, str | None], Any] = {}
    for number in range(version + 1):
        actions = actions_of(table, number)
        for file in (a["remove"] for a in actions if "remove" in a):
            found.pop(file_key(file), None)
        found |= {file_key(a["add"]): a["add"] for a in actions if "add" in a}
    return found


def file_key(file: dict[str, Any]) -> tuple[str, str | None]:
    """Return the path of a file and its deletion vector."""
    return file["path"], (file.get("deletionVector") or {}).get("pathOrInlineDv")
