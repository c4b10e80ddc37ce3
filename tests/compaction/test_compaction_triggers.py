"""``compaction.trigger.*``: a writer compacts in the background once the log exceeds the table's options."""

from __future__ import annotations

import logging
import re
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import trinity
from tests.support.tables import keyed_table
from trinity import Column, Session, Table, TrinityError
from trinity.engine.compacting import after_commit
from trinity.engine.compacting.after_commit import THREAD
from trinity.merge.properties import compaction_trigger

pytestmark = pytest.mark.inner

COLUMNS = [Column("k", "bigint"), Column("ts", "bigint")]


def triggered_table(session: Session, fmt: str, **trigger: str) -> Table:
    """Create a table with a trigger of compactions, whose properties are given by the last part of their names."""
    properties = {f"compaction__trigger__{name}": value for name, value in trigger.items()}
    return keyed_table(session, fmt, COLUMNS, watermark_key="ts", **properties)


def fill(table: Table, start: int, stop: int, ts: int = 1) -> None:
    table.upsert(pa.table({"k": range(start, stop), "ts": [ts] * (stop - start)}))


def operations(table: Table) -> list[str]:
    """Return the operations of ``history()``, oldest first, once no background compaction runs."""
    for thread in threading.enumerate():
        if thread.name.startswith(THREAD):
            thread.join()
    return [entry.operation.lower() for entry in table.connector.metadata.history(table.handle)]


@pytest.mark.parametrize(
    ("properties", "share", "commits", "strength"),
    [
        ({"log-share": "0.1"}, 0.1, 1, "full"),
        ({"log-share": "0.1"}, 0.099, 500, None),
        ({"commits": "20"}, 9.0, 19, None),
        ({"commits": "20"}, 0.0, 20, "minor"),
        ({"commits": "20", "log-share": " 0.5 "}, 0.5, 20, "full"),
        ({"commits": "20", "log-share": "0.5", "strength": " Resolve"}, 0.1, 20, "resolve"),
        ({"log-share": "2"}, float("inf"), 1, "full"),
    ],
)
def test_when_and_how(properties: dict[str, str], share: float, commits: int, strength: str | None) -> None:
    trigger = compaction_trigger({f"compaction.trigger.{k}": v for k, v in properties.items()})
    assert trigger is not None
    assert trigger.due(share, commits) == strength


def test_nothing_is_due_without_a_limit() -> None:
    assert compaction_trigger({"compaction.trigger.strength": "full"}) is None


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"log_share": "0"}, "'compaction.trigger.log-share' = '0'; it is a number above 0"),
        ({"log_share": "much"}, "'compaction.trigger.log-share' = 'much'"),
        ({"log_share": "nan"}, "'compaction.trigger.log-share' = 'nan'"),
        ({"commits": "1"}, "'compaction.trigger.commits' = '1'; it is a number from 2 on"),
        ({"commits": "5", "strength": "most"}, "it is one of minor, resolve, full"),
        ({"strength": "full"}, "needs 'compaction.trigger.log-share' or 'compaction.trigger.commits'"),
        ({"log_share": "0.1", "strength": "minor"}, "leaves the share of the log as it is"),
    ],
)
def test_what_is_no_limit_is_refused(tmp_path: Path, options: dict[str, str], why: str) -> None:
    with trinity.connect(tmp_path) as session, pytest.raises(TrinityError, match=re.escape(why)) as refused:
        triggered_table(session, "parquet", **options)
    assert refused.value.code == "INVALID_TABLE_PROPERTY"


def test_tables_that_nothing_compacts_are_refused(tmp_path: Path) -> None:
    limit = {"compaction.trigger.commits": "3"}
    with trinity.connect(tmp_path) as session:
        with pytest.raises(TrinityError, match="needs a PRIMARY KEY"):
            session.create_table("p", COLUMNS, properties=limit)
        with pytest.raises(TrinityError, match="keep-versions"):
            session.create_table("p", COLUMNS, primary_key=["k"], properties={**limit, "keep-versions": "true"})


def test_a_limit_that_is_not_reached_starts_nothing(tmp_path: Path) -> None:
    with trinity.connect(tmp_path) as session:
        table = triggered_table(session, "parquet", commits="3")
        fill(table, 0, 10)
        fill(table, 0, 10, ts=2)
        assert operations(table) == ["create", "append", "append"]


def test_the_writer_compacts_once_the_log_is_large(session: Session, tiered_fmt: str) -> None:
    table = triggered_table(session, tiered_fmt, log_share="0.5", commits="3")
    fill(table, 0, 1000)  # the table has only a log
    assert operations(table)[2:] == ["compact"]
    fill(table, 0, 10, ts=2)
    fill(table, 0, 10, ts=3)
    assert len(operations(table)) == 5
    fill(table, 5, 20, ts=4)  # the third commit
    assert operations(table)[5:] == ["append", "compact"]
    assert (table.health().commits, table.health().base.rows) == (1, 1000)
    expected = {k: 1 if k > 19 else 4 if k > 4 else 3 for k in range(1000)}
    assert {row.k: row.ts for row in table.to_df().collect()} == expected
    assert not after_commit._waiting


def test_a_failed_compaction_fails_no_commit(
    session: Session, tiered_fmt: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise TrinityError("FILESYSTEM_ERROR", "the disk is full")

    monkeypatch.setattr("trinity.engine.compacting.compact.compact", fails)
    table = triggered_table(session, tiered_fmt, commits="2")
    fill(table, 0, 10)
    with caplog.at_level(logging.WARNING, "trinity"):
        fill(table, 0, 10, ts=2)
        assert operations(table) == ["create", "append", "append"]
    assert "is committed, but to compact fails" in caplog.text
