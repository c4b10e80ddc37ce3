"""Resolves of Delta tables: deletion vectors, as the log names them and Delta's own reader honours them (R1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.adapter import append, code_of, compact, resolve, with_base
from tests.support.delta_lake import commit_file, open_catalog
from trinity.spi import TableHandle, Tier
from trinity_delta import DeltaConnector
from trinity_delta.snapshot import MOST_REPLAYED


def read(spark: SparkSession, handle: TableHandle, version: int | None = None) -> list[tuple[int, str]]:
    """Return the rows as Delta's own reader in Spark reads them."""
    reader = spark.read.format("delta")
    reader = reader if version is None else reader.option("versionAsOf", version)
    return sorted((r.id, r.v) for r in reader.load(handle.location).collect())


def actions(handle: TableHandle, version: int, kind: str) -> list[dict[str, Any]]:
    lines = commit_file(handle, version).read_text().splitlines()
    return [action[kind] for action in map(json.loads, lines) if kind in action]


@pytest.mark.full
def test_r1_other_readers_see_the_merged_rows(
    lake: DeltaConnector, handle: TableHandle, spark: SparkSession, tmp_path: Path
) -> None:
    with_base(lake, handle)
    before = lake.metadata.get_splits(handle).version
    done = resolve(lake, handle, [{"id": 2, "v": "b"}], [1])()
    assert read(spark, handle) == [(1, "a"), (2, "b"), (3, "a")]
    assert lake.metadata.history(handle)[-1].operation == "resolve"
    # one commit: the feature, the file without and with its vector, and nothing that a stream would show as a change
    [protocol] = actions(handle, done.version, "protocol")
    assert "deletionVectors" in {*protocol["readerFeatures"]} & {*protocol["writerFeatures"]}
    [marked] = [a for a in actions(handle, done.version, "add") if "deletionVector" in a]
    assert (json.loads(marked["stats"])["numRecords"], json.loads(marked["stats"])["tightBounds"]) == (3, False)
    assert not any(a["dataChange"] for kind in ("add", "remove") for a in actions(handle, done.version, kind))
    for rebuilt in (False, True):
        with MOST_REPLAYED.set_to(0 if rebuilt else 1000):
            splits = open_catalog(tmp_path / "w", spark).metadata.get_splits(handle)
        found = sorted((f.tier, f.rows, f.live_rows, f.commit) for f in splits.files)
        assert found == [(Tier.BASE, 1, 1, 3), (Tier.BASE, 3, 2, 1)]
    assert read(spark, handle, before) == [(1, "a"), (2, "a"), (2, "b"), (3, "a")]
    append(lake, handle, (4, "c"))
    assert read(spark, handle) == [(1, "a"), (2, "b"), (3, "a"), (4, "c")]


@pytest.mark.full
def test_r1_a_later_resolve_takes_the_vectors_place(
    lake: DeltaConnector, handle: TableHandle, spark: SparkSession
) -> None:
    with_base(lake, handle)
    resolve(lake, handle, [{"id": 2, "v": "b"}], [1])()
    append(lake, handle, (3, "c"))
    done = resolve(lake, handle, [{"id": 3, "v": "c"}], [2])()
    assert actions(handle, done.version, "protocol") == []
    assert read(spark, handle) == [(1, "a"), (2, "b"), (3, "c")]
    [base] = [f for f in lake.metadata.get_splits(handle).files if f.bucket]
    assert base.deletes is not None
    assert base.deletes.positions().to_pylist() == [1, 2]
    compact(lake, handle, [{"id": n, "v": "d"} for n in (1, 2, 3)], [])()
    assert read(spark, handle) == [(1, "d"), (2, "d"), (3, "d")]
    assert not any(f.deletes for f in lake.metadata.get_splits(handle).files)
    lake.metadata.vacuum(handle, 2**62)
    assert list(Path(handle.location).glob("*.bin")) == []


def test_k6_rows_that_come_during_a_resolve_stay(lake: DeltaConnector, handle: TableHandle) -> None:
    with_base(lake, handle)
    first, second = (resolve(lake, handle, [{"id": 2, "v": "b"}], [1]) for _ in range(2))
    later = append(lake, handle, (2, "c")).version
    first()
    files = lake.metadata.get_splits(handle).files
    found = sorted((f.tier.value, f.commit == later) for f in files)
    assert found == [("base", False), ("base", False), ("log", True)]
    assert code_of(second)[0] == "TRANSACTION_CONFLICT"  # another resolve of one log
    third = resolve(lake, handle, [{"id": 2, "v": "c"}], [1])
    lake.metadata.truncate(handle)
    assert code_of(third)[0] == "TRANSACTION_CONFLICT"
    assert lake.metadata.get_splits(handle).files == ()
