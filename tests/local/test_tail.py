"""``trinity tail`` without Spark: a table's changes, printed in order as they are committed."""

from __future__ import annotations

import datetime as dt
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trinity import Column, Session, Table
from trinity.cli.main import app
from trinity.cli.tail import follow, print_changes

pytestmark = pytest.mark.inner


def printed(table: Table, after: int, *batches: list[dict[str, object]]) -> list[tuple[object, ...]]:
    """Return the commits that ``tail`` prints while they are made: number of the commit, change, key and value."""
    left, shown = list(batches), io.StringIO()

    def wait() -> bool:
        if left:
            table.upsert(left.pop(0))
        else:
            table.compact(full=True)
        return table.version < after + len(batches) + 1

    for rows in follow(table, after, wait):
        print_changes(rows, shown, lines=True)
    lines = [json.loads(line) for line in shown.getvalue().splitlines()]
    return [(line["_commit_version"] - after, line["_change_type"], line["k"], line["v"]) for line in lines]


def test_changes_are_printed_in_their_order(local: Session, local_fmt: str) -> None:
    rows: list[dict[str, object]] = [{"k": 2, "v": "b"}, {"k": 1, "v": "a"}]
    table = local.create_table(f"{local_fmt}.default.t", rows, primary_key=["k"])
    seen = printed(table, table.version, [{"k": 3, "v": "c"}, {"k": 1, "v": "z"}], [{"k": 2, "v": "y"}])
    assert seen == [
        (1, "update_preimage", 1, "a"), (1, "update_postimage", 1, "z"), (1, "insert", 3, "c"),
        (2, "update_preimage", 2, "b"), (2, "update_postimage", 2, "y"),
    ]  # fmt: skip


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone of this process."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_times_are_those_that_changes_prints(local: Session, warehouse: Path) -> None:
    table = local.create_table("t", [Column("k", "int"), Column("at", "timestamp")], primary_key=["k"])
    table.upsert([{"k": 1, "at": dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)}])
    shown = [
        CliRunner().invoke(app, [*command, "-w", str(warehouse), "--after", "0", "--engine", "local"]).stdout
        for command in (["tail", "t", "--once", "-o", "json"], ["changes", "t", "--json"])
    ]
    assert json.loads(shown[0]) == json.loads(shown[1])
    assert json.loads(shown[0])["at"] == "2024-01-01 12:00:00+00:00"


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_command(local: Session, warehouse: Path, output: str) -> None:
    local.create_table("parquet.default.t", [{"k": 1, "v": "a"}], primary_key=["k"])
    command = ["tail", "parquet.default.t", "-w", str(warehouse), "--after", "0", "--once", "--engine", "local"]
    found = CliRunner().invoke(app, [*command, "-o", output])
    assert found.exit_code == 0
    assert ("| insert " if output == "table" else '"_change_type": "insert"') in found.output
