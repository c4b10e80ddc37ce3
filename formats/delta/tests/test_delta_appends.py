"""Appends to Delta tables through the SPI alone: commit numbers, transactions, races."""

from __future__ import annotations

import json
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.adapter import append, code_of, compact, ids, prepare_merge, write
from tests.support.alter import set_properties
from tests.support.delta_lake import commit_file, open_catalog
from trinity.spi import ColumnStats, DataFile, SinkId, TableHandle, Tier
from trinity.storage import CommitRaced
from trinity_delta import DeltaConnector
from trinity_delta.actions import transaction
from trinity_delta.jvm import DeltaJvm


def test_append_and_commit_numbers(lake: DeltaConnector, handle: TableHandle, spark: SparkSession) -> None:
    assert append(lake, handle).version == 0  # nothing to commit
    result = append(lake, handle, (1, "a"), (2, "b"))
    assert (result.version, result.rows, result.files, result.skipped) == (1, 2, 1, False)
    append(lake, handle, (1, "c"))
    splits = lake.metadata.get_splits(handle)
    assert [(f.commit, f.tier, f.rows) for f in splits.files] == [(1, Tier.LOG, 2), (2, Tier.LOG, 1)]
    assert splits.files[0].stats["id"] == ColumnStats(1, 2, 0)
    assert splits.files[0].stats["v"] == ColumnStats("a", "b", 0)
    added = [json.loads(line) for line in commit_file(handle, 2).read_text().splitlines()]
    assert [a["add"]["tags"] for a in added if "add" in a] == [{"trinity.tier": "log", "trinity.order": "2"}]
    # the JVM's own view of the version is the same
    rebuilt = open_catalog(Path(handle.location).parents[1], spark)
    rebuilt.metadata._snapshots._replay = (  # type: ignore[attr-defined]
        lambda t, states, version: rebuilt.metadata._snapshots._rebuild(t, states, version)  # type: ignore[attr-defined]
    )
    again = rebuilt.metadata.get_splits(handle)
    assert sorted(again.files, key=lambda f: f.name) == sorted(splits.files, key=lambda f: f.name)
    assert (again.definition, again.timestamp_ms) == (splits.definition, splits.timestamp_ms)


def test_a_raced_append_keeps_the_number_of_its_commit(
    lake: DeltaConnector, handle: TableHandle, spark: SparkSession
) -> None:
    """Delta rebases a blind append onto other commits; the commit number is that of the commit that added the file."""
    append(lake, handle, (1, "a"))
    fresh = DeltaJvm(spark)
    slow = fresh.start("t", handle.location)
    append(lake, handle, (2, "b"))
    path = write(lake, lake.metadata.begin_insert(handle).target, [{"id": 3}], SinkId())[0]
    file = DataFile.from_dict(json.loads(path))
    raced = {
        "add": {
            "path": file.name, "partitionValues": {}, "size": file.size, "modificationTime": 0, "dataChange": True,
            "stats": '{"numRecords":1}', "tags": {"trinity.tier": "log"},
        }
    }  # fmt: skip
    assert slow.commit([raced], operation="Write") == 3
    assert sorted((f.commit, f.rows) for f in lake.metadata.get_splits(handle).files) == [(1, 1), (2, 1), (3, 1)]


def test_txn_is_a_no_op_when_repeated(lake: DeltaConnector, handle: TableHandle, tmp_path: Path) -> None:
    assert not append(lake, handle, (1, "a"), txn=("app", 5)).skipped
    for version in (5, 4):
        result = append(lake, handle, (2, "b"), txn=("app", version))
        assert (result.skipped, result.version, result.rows) == (True, 1, 0)
    assert not append(lake, handle, txn=("app", 6)).skipped  # no rows, but the record moves
    assert not append(lake, handle, (3, "c"), txn=("other", 1)).skipped
    compact(lake, handle, [{"id": 1}, {"id": 3}], [])()
    lake.metadata.vacuum(handle, int(time.time() * 1000) + 60_000)
    again = open_catalog(tmp_path / "w", lake.metadata._logs.jvm().spark)  # type: ignore[attr-defined]
    assert again.metadata.recorded_txn(handle, "app") == 6
    assert again.metadata.recorded_txn(handle, "nobody") is None
    assert append(again, handle, (2, "b"), txn=("app", 6)).skipped
    assert ids(again, handle) == [1, 3]


def test_a_concurrent_commit_of_the_same_application_conflicts(
    lake: DeltaConnector, handle: TableHandle, spark: SparkSession
) -> None:
    for other, raced in (("app", True), ("another", False)):
        slow = DeltaJvm(spark).start("t", handle.location)
        slow.read_txn("app")
        append(lake, handle, txn=(other, 1))
        with pytest.raises(CommitRaced) if raced else nullcontext():
            slow.commit([transaction(("app", 2))], operation="Write")
    assert [lake.metadata.recorded_txn(handle, name) for name in ("app", "another")] == [2, 1]


def test_a_statement_that_read_refuses_later_rows(lake: DeltaConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    late = prepare_merge(lake, handle, 2)
    append(lake, handle, (3, "c"))
    assert code_of(late)[0] == "TRANSACTION_CONFLICT"
    late = prepare_merge(lake, handle, 4)
    compact(lake, handle, [{"id": 1}, {"id": 3}], [])()  # means the same: no conflict
    set_properties(lake, handle, {"comment": "x"})
    late()
    assert ids(lake, handle) == [1, 3, 4]


def test_concurrent_appends_all_land(lake: DeltaConnector, handle: TableHandle, tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            own = open_catalog(tmp_path / "w", lake.metadata._logs.jvm().spark)  # type: ignore[attr-defined]
            for i in range(3):
                append(own, handle, (worker * 10 + i, "x"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(w,)) for w in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    splits = lake.metadata.get_splits(handle)
    assert sorted(f.commit or 0 for f in splits.files) == list(range(1, 13))
    assert ids(lake, handle) == sorted(w * 10 + i for w in range(4) for i in range(3))
    cold = open_catalog(tmp_path / "w", lake.metadata._logs.jvm().spark)  # type: ignore[attr-defined]
    assert cold.metadata._snapshots._rebuild(handle, None, 12).files == {  # type: ignore[attr-defined]
        f.name: f for f in splits.files
    }
