"""Rewrites of Iceberg tables, sidecars, and the files that a vacuum deletes."""

from __future__ import annotations

import dataclasses
import os
import time
from functools import partial
from pathlib import Path

from tests.support.adapter import append, code_of, compact, stored, write
from tests.support.iceberg_lake import open_catalog, with_pyiceberg
from trinity.spi import Bucket, SinkId, TableHandle, Tier
from trinity_iceberg import IcebergConnector


def test_compaction_keeps_commit_numbers_and_later_appends(
    lake: IcebergConnector, handle: TableHandle, tmp_path: Path
) -> None:
    append(lake, handle, (1, "a"))
    folded = append(lake, handle, (2, "b")).version
    finish = compact(lake, handle, [{"id": 1, "v": "a"}], [{"id": 2, "v": "b"}])
    later = append(lake, handle, (3, "c")).version
    done = finish()
    for opened in (lake, open_catalog(tmp_path / "w")):
        splits = opened.metadata.get_splits(handle)
        assert [(f.tier, f.commit, f.bucket) for f in splits.files] == [
            (Tier.BASE, folded, Bucket(0, 1)),
            (Tier.LOG, later, None),
        ]
        assert [(f.tier, f.commit, f.rows) for f in splits.sidecar] == [(Tier.SIDECAR, folded, 1)]
        assert splits.version == done.version > later
    before = lake.metadata.get_splits(dataclasses.replace(handle, version=later))
    assert [f.tier for f in before.files] == [Tier.LOG] * 3
    assert before.sidecar == ()
    assert lake.metadata.history(handle)[-1].operation == "compact"
    entries = with_pyiceberg(lake, handle).inspect.entries().to_pylist()
    live = {e["data_file"]["file_path"].rsplit("/", 1)[-1]: e["sequence_number"] for e in entries if e["status"] != 2}
    assert live == {f.name: f.commit for f in lake.metadata.get_splits(handle).files}
    assert sorted(r["id"] for r in with_pyiceberg(lake, handle).scan().to_arrow().to_pylist()) == [1, 3]


def test_second_compaction_of_a_file_conflicts(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    one, two = (compact(lake, handle, [{"id": 1, "v": "a"}], []) for _ in range(2))
    one()
    code, message = code_of(two)
    assert code == "TRANSACTION_CONFLICT"
    assert ".parquet" in message
    assert len(stored(lake, handle)) == 1


def test_sidecar_stays_unless_replaced(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    compact(lake, handle, [], [{"id": 1, "v": "a"}])()
    kept = lake.metadata.get_splits(handle).sidecar
    for n in (2, 3):
        append(lake, handle, (n, "b"))
    splits = lake.metadata.get_splits(handle)
    assert splits.sidecar == kept
    log = [f for f in splits.files if f.tier is Tier.LOG]
    rewrite = lake.metadata.begin_rewrite(handle, log)
    fragments = write(lake, rewrite.target, [{"id": 2}, {"id": 3}], SinkId(0, Tier.LOG, None, log[-1].commit))
    lake.metadata.finish_rewrite(rewrite, fragments, replace_sidecar=False)
    splits = lake.metadata.get_splits(handle)
    assert splits.sidecar == kept
    assert [(f.tier, f.commit, f.rows) for f in splits.files] == [(Tier.LOG, log[-1].commit, 2)]
    compact(lake, handle, [{"id": 2}], [])()
    assert lake.metadata.get_splits(handle).sidecar == ()


def test_vacuum_forgets_and_deletes(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    append(lake, handle, (1, "a"))
    old = append(lake, handle, (2, "b")).version
    replaced = lake.metadata.get_splits(handle).files
    compact(lake, handle, [{"id": 1}], [{"id": 2}])()
    orphan = Path(handle.location, "data", "orphan.parquet")
    orphan.write_bytes(b"x")
    nothing = lake.metadata.vacuum(handle, 1000)
    assert (nothing.files, nothing.oldest_version) == (0, 1)
    assert all(Path(f.path).exists() for f in replaced)
    done = lake.metadata.vacuum(handle, int(time.time() * 1000) + 10_000)
    current = lake.metadata.get_splits(handle)
    assert (done.files, done.oldest_version) == (3, current.version)
    assert done.bytes == 1 + sum(f.size for f in replaced)
    assert not orphan.exists()
    assert not any(Path(f.path).exists() for f in replaced)
    assert all(Path(f.path).exists() for f in (*current.files, *current.sidecar))
    for version in (old, 99):
        metadata = open_catalog(tmp_path / "w").metadata
        code, message = code_of(partial(metadata.get_splits, dataclasses.replace(handle, version=version)))
        assert code == "INVALID_ARGUMENTS"
        assert str(current.version) in message
    assert [h.version for h in lake.metadata.history(handle)] == [current.version]


def test_vacuum_deletes_old_metadata_only(lake: IcebergConnector, handle: TableHandle) -> None:
    for n in range(3):
        append(lake, handle, (n, "x"))
    metadata = Path(handle.location, "metadata")
    for path in metadata.iterdir():
        os.utime(path, (1, 1))
    before = set(metadata.glob("snap-*"))
    lake.metadata.vacuum(handle, int(time.time() * 1000))
    assert len(before) == 4
    assert len(set(metadata.glob("snap-*"))) == 1
    assert len(stored(open_catalog(Path(handle.location).parents[1]), handle)) == 3
