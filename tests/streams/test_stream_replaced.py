"""A table that is replaced (L13): streams from it report that, and the new one's feed begins with it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import trinity
from tests.support.refusals import refused
from trinity import Column, Session, Table
from trinity.cli.tail import follow
from trinity.datasource import answers
from trinity.datasource.answers import answer
from trinity.spi import HistoryEntry
from trinity.storage.changelog import StoredChanges

pytestmark = pytest.mark.inner

ROUNDS: Final = {"changelog-producer": "full-compaction"}
OTHERS: Final[dict[str, list[dict[str, Any]]]] = {
    "like it": [{"k": 7, "v": "new"}],
    "with other columns": [{"q": 1.5, "k": 7}],
}
"""Rows of the table that replaces the first one."""


@pytest.fixture
def opened(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Yield a session without Spark."""
    monkeypatch.setattr(answers, "reads_all_now", lambda spark: False)
    with trinity.connect(warehouse, engine="local") as session:
        monkeypatch.setattr(Session, "spark", None)
        yield session


@pytest.fixture
def table(opened: Session, fmt: str) -> Table:
    return table_of_two_rows(opened, fmt)


def table_of_two_rows(session: Session, fmt: str, **properties: str) -> Table:
    rows = [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    return session.create_table(f"{fmt}.default.t", rows, primary_key=["k"], properties=properties)


def replaced(table: Table, rows: list[dict[str, Any]], **properties: str) -> int:
    """Replace the table by another one, and return the version that this made."""
    table.session.create_table(table.name, rows, primary_key=["k"], properties=properties, replace=True)
    return table.version


def answer_to(table: Table, ask: str, **more: Any) -> Any:
    return answer(lambda: [table.session], {"ask": ask, "table": str(table.name), **more})


def offset(table: Table, start: dict[str, Any], **more: Any) -> dict[str, Any]:
    return dict(answer_to(table, "offset", start=start, begun=True, most=None, **more))


def columns(table: Table) -> dict[str, Any]:
    """Return the columns that a stream would have if it were loaded now."""
    known = answer_to(table, "columns", at=None, changes=True)
    return {"columns": known["columns"], "of": known["version"], "chosen": False}


def shown(table: Table, after: int) -> list[tuple[int, str, Any]]:
    """Return (version, change type, key) of the feed, sorted."""
    rows = table.changes(after).to_arrow().to_pylist()
    return sorted((row["_commit_version"], row["_change_type"], row["k"]) for row in rows)


@pytest.mark.parametrize("other", OTHERS)
def test_a_stream_says_so(table: Table, other: str) -> None:
    reached = offset(table, {"begins": "rows", "table": ""})
    at = replaced(table, OTHERS[other])
    table.upsert([{"k": 8}])
    says = (f"Version {at} made another table of '{table.name}'", "new checkpoint", "another name")
    for again in ({}, columns(table)):  # of a query begun before the replacement, and of one loaded now
        end = offset(table, reached, **again)
        with refused("NOT_SUPPORTED", *says):
            answer_to(table, "batch", start=reached, end=end)
    seen = follow(table, reached["version"], lambda: True)
    with refused("NOT_SUPPORTED", *says):
        next(seen).to_arrow()
    anew = offset(table, {"begins": "rows", "table": ""})
    last = table.upsert([{"k": 9}]).version
    [found] = answer_to(table, "batch", start=anew, end=offset(table, anew))
    assert (found["version"], len(found["files"])) == (last, 1)


def test_a_table_without_rows_takes_the_place_of_one(opened: Session, fmt: str) -> None:
    """Earlier rows have none of its columns, though the names are the same."""
    columns = [Column("k", "int"), Column("v", "string")]
    table = opened.create_table(f"{fmt}.default.t", columns)
    start = table.version
    table.append([{"k": 1, "v": "a"}])
    table.delete()
    opened.create_table(table.name, columns[::-1], replace=True)
    at = table.version
    table.append([{"k": 8, "v": "b"}])
    with refused("NOT_SUPPORTED", f"Version {at} made another table"):
        table.changes(start).to_arrow()
    assert table.changes(at).to_arrow().select(["v", "k"]).to_pylist() == [{"v": "b", "k": 8}]


def test_a_query_that_runs_gets_all_before_it(table: Table) -> None:
    reached, having = offset(table, {"begins": "rows", "table": ""}), columns(table)
    before = table.upsert([{"k": 3}]).version
    at = replaced(table, OTHERS["with other columns"])
    end = offset(table, reached, **having)
    assert end["version"] == before
    [found] = answer_to(table, "batch", start=reached, end=end)
    assert found["version"] == before
    with refused("NOT_SUPPORTED", f"Version {at} made another table", "new checkpoint"):
        offset(table, end, **having)


def test_rounds_begin_with_it(opened: Session, fmt: str) -> None:
    """No round of full compactions has rows of the previous table, or changes between the two."""
    table = table_of_two_rows(opened, fmt, **ROUNDS)
    first = table.compact(full=True).version
    table.upsert([{"k": 3}])
    at = replaced(table, OTHERS["with other columns"], **ROUNDS)
    with refused("NOT_SUPPORTED", f"Version {at} made another table"):
        table.changes(first).to_arrow()
    table.upsert([{"k": 8}])
    assert shown(table, at) == []
    second = table.compact(full=True).version
    assert shown(table, at) == [(second, "insert", 8)]
    table.restore(first)
    back = table.version
    with refused("NOT_SUPPORTED", f"Version {back} made another table"):
        table.changes(second).to_arrow()
    table.upsert([{"k": 4}])
    third = table.compact(full=True).version
    assert shown(table, back) == [(third, "insert", 4)]


def test_commits_between_compactions_are_its_own(opened: Session, fmt: str) -> None:
    options = {**ROUNDS, "full-compaction.delta-commits": "2"}
    table = table_of_two_rows(opened, fmt, **options)
    before = table.version
    assert replaced(table, OTHERS["like it"], **options) == before + 1
    assert table.upsert([{"k": 8}]).version == table.version
    assert table.upsert([{"k": 9}]).version == table.version - 1


def test_no_changes_of_it_are_written(opened: Session, fmt: str, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of_two_rows(opened, fmt, **{"changelog-producer": "lookup"})
    with caplog.at_level(logging.WARNING, "trinity"):
        at = replaced(table, OTHERS["with other columns"], **{"changelog-producer": "lookup"})
        last = table.upsert([{"k": 8}]).version
        table.restore(at - 1)
        back, newest = table.version, table.upsert([{"k": 9}]).version
    assert caplog.text == ""
    assert table.changes(at, last).to_arrow()["k"].to_pylist() == [8]
    assert shown(table, back) == [(newest, "insert", 9)]


def test_a_new_stream_begins_with_its_rows(opened: Session, fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not begin with those of a full compaction of the previous table."""
    table = table_of_two_rows(opened, fmt, **ROUNDS)
    table.compact(full=True)
    at = replaced(table, OTHERS["with other columns"], **ROUNDS)
    table.upsert([{"k": 8, "q": 2.5}])
    read: list[int] = []

    def rows(_: Any, entry: HistoryEntry, place: str | None) -> StoredChanges:
        read.append(entry.version)
        return StoredChanges(entry.version)

    monkeypatch.setattr(answers, "stored_rows", rows)  # whose changes Spark writes
    start = {"begins": "rows", "table": ""}
    end = offset(table, start)
    answer_to(table, "batch", start=start, end=end)
    assert read == [at]
    folded = table.compact(full=True).version
    [found] = answer_to(table, "batch", start=end, end=offset(table, end))
    assert found["version"] == folded
    assert shown(table, at) == [(folded, "insert", 8)]
