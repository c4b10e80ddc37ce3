"""Appends to Iceberg tables through the SPI alone: commit numbers, transactions, races, manifests."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException

from tests.support.adapter import append, code_of, compact, stored, write
from tests.support.alter import set_properties
from tests.support.iceberg_lake import open_catalog, with_pyiceberg
from tests.support.turns import without_turns
from trinity.spi import DataFile, SinkId, TableHandle, Tier
from trinity_iceberg import IcebergConnector


def test_commit_numbers_are_sequence_numbers(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    results = [append(lake, handle, (n, "x")) for n in range(3)]
    splits = open_catalog(tmp_path / "w").metadata.get_splits(handle)
    assert [f.commit for f in splits.files] == [r.version for r in results]
    assert splits.version == results[-1].version == with_pyiceberg(lake, handle).last_sequence_number
    assert results[0].rows == results[0].files == 1
    assert results[0].bytes == splits.files[0].size
    assert {f.tier for f in splits.files} == {Tier.LOG}


def test_order_in_a_commit_is_the_order_of_names(lake: IcebergConnector, handle: TableHandle) -> None:
    insert = lake.metadata.begin_insert(handle)
    fragments = [f for n in (2, 0, 1) for f in write(lake, insert.target, [{"id": n}], SinkId(n))]
    lake.metadata.finish_insert(insert, fragments)
    assert [r["id"] for r in stored(lake, handle)] == [0, 1, 2]


def test_txn_is_recorded_once(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    first = append(lake, handle, (1, "a"), txn=("app", 5))
    again = append(lake, handle, (1, "a"), txn=("app", 5))
    assert (again.skipped, again.version, again.rows) == (True, first.version, 0)
    assert not append(lake, handle, (2, "b"), txn=("other", 0)).skipped
    assert append(lake, handle, (1, "a"), txn=("app", 4)).skipped
    assert append(lake, handle).version == first.version + 1  # nothing to do, nothing committed
    empty = append(lake, handle, txn=("app", 6))
    assert (empty.skipped, empty.version, empty.files) == (False, first.version + 2, 0)
    compact(lake, handle, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], [])()
    lake.metadata.vacuum(handle, int(time.time() * 1000) + 10_000)
    reopened = open_catalog(tmp_path / "w")
    assert reopened.metadata.recorded_txn(handle, "app") == 6
    assert reopened.metadata.recorded_txn(handle, "nobody") is None
    assert append(reopened, handle, (1, "a"), txn=("app", 6)).skipped
    assert len(stored(reopened, handle)) == 2


def test_a_statement_that_read_refuses_later_rows(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    merge = lake.metadata.begin_merge(handle, {})
    fragments = write(lake, merge.insert.target, [{"id": 3}], SinkId())
    set_properties(lake, handle, {"bucket": "4"})  # changes no row
    compact(lake, handle, [{"id": 1, "v": "a"}], [])()
    lake.metadata.finish_merge(merge, fragments)
    merge = lake.metadata.begin_merge(handle, {})
    fragments = write(lake, merge.insert.target, [{"id": 4}], SinkId())
    append(lake, handle, (2, "b"))
    compact(lake, handle, [{"id": 1}], [])()
    lake.metadata.vacuum(handle, int(time.time() * 1000) + 10_000)  # hides the append, not the fact
    Path(DataFile.from_dict(json.loads(fragments[0])).path).touch()
    assert code_of(lambda: lake.metadata.finish_merge(merge, fragments))[0] == "TRANSACTION_CONFLICT"


def test_threads_all_land(lake: IcebergConnector, handle: TableHandle) -> None:
    errors: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for i in range(5):
                append(lake, handle, (n * 10 + i, "x"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert sorted(r["id"] for r in stored(lake, handle)) == sorted(n * 10 + i for n in range(8) for i in range(5))
    history = lake.metadata.history(handle)
    assert [h.version for h in history] == list(range(1, 42))


def _append_in_process(warehouse: str, handle: TableHandle, start: int) -> None:
    lake = open_catalog(Path(warehouse))
    for i in range(5):
        append(lake, handle, (start + i, "p"), txn=(f"p{start}", i))


def test_processes_all_land(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.starmap(_append_in_process, [(str(tmp_path / "w"), handle, n * 100) for n in range(2)])
    assert sorted(r["id"] for r in stored(lake, handle)) == [n * 100 + i for n in range(2) for i in range(5)]
    assert [lake.metadata.recorded_txn(handle, f"p{n * 100}") for n in range(2)] == [4, 4]
    times = [h.timestamp_ms for h in lake.metadata.history(handle)]
    assert times == sorted(set(times))


def test_many_commits_keep_few_manifests(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    for n in range(50):
        append(lake, handle, (n, "x"))
    iceberg = with_pyiceberg(lake, handle)
    snapshot = iceberg.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(iceberg.io)) <= 32
    splits = open_catalog(tmp_path / "w").metadata.get_splits(handle)
    assert [f.commit for f in splits.files] == list(range(2, 52))
    assert len(list(Path(handle.location, "metadata").glob("*.metadata.json"))) <= 21


def test_a_lost_race_leaves_no_files(
    lake: IcebergConnector, handle: TableHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_catalog(tmp_path / "w")
    real = lake._iceberg.commit_table
    raced: list[Any] = []

    def lose_once(*args: Any) -> Any:
        if not raced:
            raced.append(append(other, handle, (7, "other")))
        return real(*args)

    insert = lake.metadata.begin_insert(handle)
    fragments = write(lake, insert.target, [{"id": 1}], SinkId())
    monkeypatch.setattr(lake._iceberg, "commit_table", lose_once)
    without_turns(monkeypatch)
    assert lake.metadata.finish_insert(insert, fragments).version == raced[0].version + 1
    assert len(list(Path(handle.location, "metadata").glob("snap-*.avro"))) == 3  # create, the other's, ours
    assert [r["id"] for r in stored(lake, handle)] == [7, 1]


def test_commits_are_retried_for_as_long_as_the_table_says(
    lake: IcebergConnector, handle: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_properties(lake, handle, {"commit.retry.timeout": "0 seconds"})
    before = stored(lake, handle)

    def lost(*_: Any) -> Any:
        raise CommitFailedException("another writer was first")

    insert = lake.metadata.begin_insert(handle)
    fragments = write(lake, insert.target, [{"id": 1}], SinkId())
    with monkeypatch.context() as patch:
        patch.setattr(lake._iceberg, "commit_table", lost)
        for commit in (
            lambda: lake.metadata.finish_insert(insert, fragments),
            lambda: set_properties(lake, handle, {"bucket": "4"}),
        ):
            code, message = code_of(commit)
            assert (code, "for 0 s" in message) == ("TRANSACTION_CONFLICT", True)
    assert stored(lake, handle) == before
    assert lake.metadata.finish_insert(insert, fragments).rows == 1
