"""Rewrites of Delta tables, commits at the same time, and the files after a vacuum."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.adapter import KEYED, append, code_of, compact, ids, prepare, write
from tests.support.alter import set_properties
from tests.support.delta_lake import commit_file, open_catalog
from trinity.spi import Bucket, SinkId, TableHandle, Tier
from trinity.storage import CommitRaced
from trinity_delta import DeltaConnector
from trinity_delta.jvm import DeltaJvm, DeltaTransaction
from trinity_delta.own_log import OwnTransaction


def test_rewrite_concurrent_with_append(lake: DeltaConnector, handle: TableHandle, spark: SparkSession) -> None:
    append(lake, handle, (1, "a"), (2, "b"))
    append(lake, handle, (2, "c", 3))
    finish = compact(lake, handle, [{"id": 1, "v": "a"}], [{"id": 2, "v": "c", "_trinity_row_kind": 3}])
    append(lake, handle, (9, "late"))
    assert finish().version == 4
    splits = lake.metadata.get_splits(handle)
    found = sorted((f.tier.value, f.commit, f.rows, f.bucket) for f in splits.files)
    assert found == [("base", 2, 1, Bucket(0, 1)), ("log", 3, 1, None)]
    (sidecar,) = splits.sidecar
    assert (sidecar.tier, sidecar.commit, sidecar.rows) == (Tier.SIDECAR, 2, 1)
    assert sidecar.path.startswith(f"{handle.location}/_trinity/")
    assert pq.read_table(sidecar.path).column("id").to_pylist() == [2]
    # a second rewrite keeps the sidecar when told so, and other readers never see it
    splits = lake.metadata.get_splits(handle)
    log = [f for f in splits.files if f.tier is Tier.LOG]
    rewrite = lake.metadata.begin_rewrite(handle, log)
    again = write(lake, rewrite.target, [{"id": 9, "v": "late"}], SinkId(0, Tier.LOG, None, 3))
    lake.metadata.finish_rewrite(rewrite, again, replace_sidecar=False)
    assert lake.metadata.get_splits(handle).sidecar == (sidecar,)
    assert spark.read.format("delta").load(handle.location).count() == 2
    assert code_of(lambda: lake.metadata.finish_rewrite(rewrite, again, replace_sidecar=False))[0] == (
        "TRANSACTION_CONFLICT"
    )
    compact(lake, handle, [{"id": 1}], [])()
    assert lake.metadata.get_splits(handle).sidecar == ()


def test_two_rewrites_one_wins(lake: DeltaConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    append(lake, handle, (2, "b"))
    first, second = (compact(lake, handle, [{"id": 1}, {"id": 2}], []) for _ in range(2))
    first()
    code, message = code_of(second)
    assert code == "TRANSACTION_CONFLICT"
    assert handle.full_name in message
    assert ids(lake, handle) == [1, 2]


def test_a_rewrite_that_comes_second_is_tried_again(
    lake: DeltaConnector, handle: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process commits between the reload and the commit: the number is used, and the loop checks once more."""
    append(lake, handle, (1, "a"))
    finish = compact(lake, handle, [{"id": 1}], [{"id": 7}])
    before_the_first(OwnTransaction, "commit", prepare(lake, handle, (2, "b")), monkeypatch)
    assert finish().version == 3
    assert sorted((f.tier.value, f.commit) for f in lake.metadata.get_splits(handle).files) == [("base", 1), ("log", 2)]


@pytest.mark.parametrize(
    ("committed_by", "setting"),
    [(OwnTransaction, "comment"), (DeltaTransaction, "delta.randomPrefixLength")],
    ids=["by Trinity", "by Delta, which alone knows the setting"],
)
def test_a_change_of_settings_that_comes_second_is_tried_again(
    lake: DeltaConnector, handle: TableHandle, committed_by: type, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_the_first(committed_by, "alter", prepare(lake, handle, (2, "b")), monkeypatch)
    set_properties(lake, handle, {setting: "3"})
    assert lake.metadata.get_table_definition(handle).properties[setting] == "3"
    assert ids(lake, handle) == [2]
    assert lake.metadata.get_splits(handle).version == 2


def before_the_first(owner: type, name: str, other: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another writer commit just before the first call of a method, which makes that call's attempt lose."""
    monkeypatch.setattr("trinity.storage.commits.commit_loop", _without_lock)
    own = getattr(owner, name)

    def late(self: Any, *given: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, own)
        other()
        return own(self, *given, **options)

    monkeypatch.setattr(owner, name, late)


def _without_lock(location: str, attempt: Callable[[], Any], timeout_s: float = 1) -> Any:
    for _ in range(10):
        try:
            return attempt()
        except CommitRaced:
            continue
    raise AssertionError("raced ten times")


@pytest.mark.full
def test_vacuum_leaves_checkpoints(lake: DeltaConnector, tmp_path: Path) -> None:
    table = lake.metadata.create_table(KEYED.with_properties({"delta.checkpointInterval": "3"}))
    for i in range(4):
        append(lake, table, (i, "x"))
    log = Path(table.location, "_delta_log")
    assert list(log.glob("*.checkpoint.parquet"))
    lake.metadata.vacuum(table, int(time.time() * 1000) + 60_000)
    assert list(log.glob("*.checkpoint.parquet"))
    for version in range(3):  # Delta cleans up its log after a checkpoint
        commit_file(table, version).unlink()
    DeltaJvm(lake.metadata._logs.jvm().spark).forget(table.location)  # type: ignore[attr-defined]
    cold = open_catalog(tmp_path / "w", lake.metadata._logs.jvm().spark)  # type: ignore[attr-defined]
    assert ids(cold, table) == list(range(4))
    assert sorted(f.commit or 0 for f in cold.metadata.get_splits(table).files) == list(range(1, 5))
