"""Vacuum: files of running statements stay, retained versions stay, removed ones are refused by name (L3, L4, L10)."""

from __future__ import annotations

import datetime as dt
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.threads import meanwhile
from trinity import Column, Session, Table, TrinityError
from trinity.clock import clock_ahead

pytestmark = pytest.mark.inner

DAY_S = 24 * 3600


@pytest.fixture
def pages(session: Session, fmt: str) -> Table:
    """Make a table with the key k, the watermark ts, and a tombstone."""
    columns = [Column("k", "int"), Column("ts", "int"), Column("gone", "boolean"), Column("v", "string")]
    options = {"watermark-key": "ts", "tombstone-key": "gone"}
    return session.create_table(f"{fmt}.default.pages", columns, primary_key=["k"], properties=options)


def put_keys(table: Table, ts: int, v: str, *keys: int, gone: bool = False, txn: tuple[str, int] | None = None) -> bool:
    count = len(keys)
    data = {"k": pa.array(keys, pa.int32()), "ts": pa.array([ts] * count, pa.int32())}
    return table.upsert(pa.table({**data, "gone": [gone] * count, "v": [v] * count}), txn=txn).skipped


def contents(table: Table, **options: int) -> set[tuple[int, str]]:
    return {(r.k, r.v) for r in table.to_df(**options).collect()}  # type: ignore[arg-type]


def versions(table: Table) -> list[int]:
    return [r.version for r in reversed(table.history().collect())]


def parquet_files(table: Table) -> set[Path]:
    return {path for path in Path(table.handle.location).rglob("*.parquet") if "_delta_log" not in path.parts}


@pytest.mark.tiered
def test_a_reader_keeps_its_files(pages: Table) -> None:
    put_keys(pages, 1, "a", 1, 2)
    lazy = pages.to_df()
    put_keys(pages, 2, "b", 1)
    pages.compact(full=True)
    before = parquet_files(pages)
    assert pages.vacuum().files == 0
    assert parquet_files(pages) == before
    assert {(r.k, r.v) for r in lazy.collect()} == {(1, "a"), (2, "a")}
    assert contents(pages) == {(1, "b"), (2, "a")}


def test_a_statement_keeps_its_files(session: Session, tiered_fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = session.create_table(f"{tiered_fmt}.default.plain", [Column("k", "int"), Column("v", "string")])
    for k in (1, 2):
        table.append(pa.table({"k": pa.array([k], pa.int32()), "v": ["a"]}))

    def maintain() -> None:
        table.compact()
        table.vacuum()

    meanwhile(monkeypatch, table, "begin_merge", maintain)
    session.sql(f"UPDATE {table.name} SET v = concat(v, 'b') WHERE k = 1")
    assert contents(table) == {(1, "ab"), (2, "a")}
    table.vacuum("0 seconds")
    assert contents(table) == {(1, "ab"), (2, "a")}
    assert len(parquet_files(table)) == len(table.splits().files)


@pytest.mark.tiered
def test_what_a_crashed_statement_left_goes_after_its_time(pages: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    put_keys(pages, 1, "a", 1)
    kept = parquet_files(pages)

    def crash(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(pages.connector.metadata, "finish_insert", crash)
        with pytest.raises(KeyboardInterrupt):
            put_keys(pages, 2, "b", 1)
    [orphan] = parquet_files(pages) - kept
    assert pages.vacuum().files == 0
    aged = time.time() - 8 * DAY_S
    os.utime(orphan, (aged, aged))
    assert pages.vacuum("9 days").files == 0
    assert pages.vacuum().files == 1
    assert parquet_files(pages) == kept
    assert contents(pages) == {(1, "a")}


def test_versions_live_as_long_as_they_are_retained(pages: Table) -> None:
    put_keys(pages, 1, "a", 1)
    first = pages.splits().version
    put_keys(pages, 2, "b", 1)
    pages.compact(full=True)
    before = versions(pages)
    newest = before[-1]
    with clock_ahead(dt.timedelta(days=6)):
        assert pages.vacuum().oldest_version == before[0]
        assert versions(pages) == before
        assert contents(pages, version=first) == {(1, "a")}
    with clock_ahead(dt.timedelta(days=8)):
        result = pages.vacuum()
    assert (result.files, result.oldest_version) == (2, newest)
    assert versions(pages)[0] == newest
    assert contents(pages) == contents(pages, version=newest) == {(1, "b")}
    put_keys(pages, 3, "c", 2)
    assert versions(pages) == sorted(set(versions(pages)))


def test_what_is_gone_is_refused_by_the_oldest_that_is_left(pages: Table) -> None:
    put_keys(pages, 1, "a", 1)
    first = pages.splits()
    put_keys(pages, 2, "b", 1)
    pages.compact(full=True)
    oldest = pages.vacuum("0 seconds").oldest_version
    long_ago = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
    now = dt.datetime.now(dt.UTC)
    for gone in ({"version": first.version}, {"version": -1}, {"version": 10**6}, {"timestamp": long_ago}):
        with pytest.raises(TrinityError) as caught:
            pages.to_df(**gone)
        assert caught.value.code == "INVALID_ARGUMENTS"
        assert str(oldest) in caught.value.message
    assert {r.v for r in pages.to_df(timestamp=now).collect()} == {"b"}
    with pytest.raises(TrinityError) as caught:
        pages.session.sql(f"SELECT * FROM {pages.name} VERSION AS OF {first.version}")
    assert caught.value.code == "INVALID_ARGUMENTS"


@pytest.mark.tiered
def test_records_and_tombstones_outlive_all_maintenance(pages: Table, spark: SparkSession, warehouse: Path) -> None:
    put_keys(pages, 9, "a", 1, txn=("loader", 7))
    put_keys(pages, 10, "", 1, gone=True)
    put_keys(pages, 1, "b", 2)
    pages.compact(full=True)
    pages.vacuum("0 seconds")
    for ts in range(2, 13):  # past a checkpoint of each format that has any
        put_keys(pages, ts, f"v{ts}", 3)
    pages.compact()
    pages.vacuum("0 seconds")
    with trinity.connect(warehouse, spark=spark) as reopened:
        again = reopened.table(str(pages.name))
        assert put_keys(again, 99, "retried", 1, txn=("loader", 7))
        assert put_keys(again, 99, "retried", 1, txn=("loader", 6))
        assert not put_keys(again, 8, "late", 1, txn=("loader", 8))
        assert contents(again) == {(2, "b"), (3, "v12")}
        again.compact(full=True)
        again.vacuum("0 seconds")
        assert put_keys(again, 99, "retried", 1, txn=("loader", 8))
        assert not put_keys(again, 10, "tie", 1)
        assert contents(again) == {(1, "tie"), (2, "b"), (3, "v12")}


@pytest.mark.parametrize("retain", ["soon", "-1 day", "", "7"])
def test_a_text_that_is_no_duration_is_refused(session: Session, retain: str) -> None:
    table = session.create_table("parquet.default.t", [Column("k", "int")])
    with pytest.raises(TrinityError) as caught:
        table.vacuum(retain)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert "7 days" in caught.value.message
