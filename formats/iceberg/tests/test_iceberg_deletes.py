"""Resolves of Iceberg tables: position delete files, as manifests list them and PyIceberg reads them (R1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.manifest import ManifestContent

from tests.support.adapter import append, code_of, compact, resolve, with_base
from tests.support.counting import counted
from tests.support.iceberg_lake import open_catalog, with_pyiceberg
from trinity.spi import TableHandle, Tier
from trinity_iceberg import IcebergConnector, deletes
from trinity_iceberg.io import SyncedFileIO


def read(lake: IcebergConnector, handle: TableHandle, snapshot: int | None = None) -> list[tuple[int, str]]:
    """Return the rows as PyIceberg reads them."""
    rows = with_pyiceberg(lake, handle).scan(snapshot_id=snapshot).to_arrow().to_pylist()
    return sorted((r["id"], r["v"]) for r in rows)


def delete_files(lake: IcebergConnector, handle: TableHandle) -> list[str]:
    loaded = with_pyiceberg(lake, handle)
    snapshot = loaded.current_snapshot()
    assert snapshot is not None
    manifests = [m for m in snapshot.manifests(loaded.io) if m.content == ManifestContent.DELETES]
    return [e.data_file.file_path for m in manifests for e in m.fetch_manifest_entry(loaded.io)]


def test_r1_other_readers_see_the_merged_rows(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    with_base(lake, handle)
    before = with_pyiceberg(lake, handle).current_snapshot()
    done = resolve(lake, handle, [{"id": 2, "v": "b"}], [1])()
    assert read(lake, handle) == [(1, "a"), (2, "b"), (3, "a")]
    for opened in (lake, open_catalog(tmp_path / "w")):
        splits = opened.metadata.get_splits(handle)
        assert splits.version == done.version
        assert [(f.tier, f.rows, f.live_rows) for f in splits.files] == [(Tier.BASE, 3, 2), (Tier.BASE, 1, 1)]
    assert lake.metadata.history(handle)[-1].operation == "resolve"
    assert len(delete_files(lake, handle)) == 1
    assert before is not None
    assert read(lake, handle, before.snapshot_id) == [(1, "a"), (2, "a"), (2, "b"), (3, "a")]
    append(lake, handle, (4, "c"))
    assert read(lake, handle) == [(1, "a"), (2, "b"), (3, "a"), (4, "c")]


def test_r1_a_later_resolve_takes_the_delete_files_place(
    lake: IcebergConnector, handle: TableHandle, caplog: pytest.LogCaptureFixture
) -> None:
    with_base(lake, handle)
    with caplog.at_level("WARNING", "trinity.iceberg"):
        first = resolve(lake, handle, [{"id": 2, "v": "b"}], [1])()
        append(lake, handle, (3, "c"))
        resolve(lake, handle, [{"id": 3, "v": "c"}], [2])()
    messages = [record.getMessage() for record in caplog.records if "create_changelog_view" in record.getMessage()]
    assert [f"{handle.full_name}: version {first.version} has delete files" in text for text in messages] == [True]
    assert read(lake, handle) == [(1, "a"), (2, "b"), (3, "c")]
    assert len(delete_files(lake, handle)) == 1
    [base] = [f for f in lake.metadata.get_splits(handle).files if f.bucket]
    assert base.deletes is not None
    assert base.deletes.positions().to_pylist() == [1, 2]
    compact(lake, handle, [{"id": n, "v": "d"} for n in (1, 2, 3)], [])()
    assert read(lake, handle) == [(1, "d"), (2, "d"), (3, "d")]
    assert delete_files(lake, handle) == []


def test_a_manifest_of_delete_files_is_read_once(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    with_base(lake, handle)
    resolve(lake, handle, [{"id": 2, "v": "b"}], [1])()
    loaded = with_pyiceberg(lake, handle)
    [manifest] = [m for m in loaded.current_snapshot().manifests(loaded.io) if m.content == ManifestContent.DELETES]  # type: ignore[union-attr]
    deletes._listed.drop(lambda _: True)
    with counted(SyncedFileIO, "new_input", by=lambda io, location: location) as read:
        other = open_catalog(tmp_path / "w")
        assert sum(f.live_rows for f in other.metadata.get_splits(handle).files) == 3
        append(other, handle, (3, "c"))
        assert sum(f.live_rows for f in other.metadata.get_splits(handle).files) == 4
    assert read[manifest.manifest_path] == 1


def test_k6_rows_that_come_during_a_resolve_stay(lake: IcebergConnector, handle: TableHandle) -> None:
    with_base(lake, handle)
    finish = resolve(lake, handle, [{"id": 2, "v": "b"}], [1])
    later = append(lake, handle, (2, "c")).version
    finish()
    files = lake.metadata.get_splits(handle).files
    assert [(f.tier, f.commit == later) for f in files] == [(Tier.BASE, False), (Tier.BASE, False), (Tier.LOG, True)]


def test_two_resolves_of_one_log_conflict(lake: IcebergConnector, handle: TableHandle) -> None:
    with_base(lake, handle)
    first, second = (resolve(lake, handle, [{"id": 2, "v": "b"}], [1]) for _ in range(2))
    first()
    assert code_of(second)[0] == "TRANSACTION_CONFLICT"
    assert read(lake, handle) == [(1, "a"), (2, "b"), (3, "a")]


def test_vacuum_keeps_delete_files_that_a_version_needs(lake: IcebergConnector, handle: TableHandle) -> None:
    with_base(lake, handle)
    resolve(lake, handle, [{"id": 2, "v": "b"}], [1])()
    append(lake, handle, (3, "c"))
    resolve(lake, handle, [{"id": 3, "v": "c"}], [2])()
    folder = Path(handle.location, "_trinity", "deletes")
    assert len(list(folder.iterdir())) == 2
    lake.metadata.vacuum(handle, 2**62)
    assert len(list(folder.iterdir())) == 1
    assert read(lake, handle) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("work", ["truncate", "compact"])
def test_a_resolve_whose_base_went_conflicts(lake: IcebergConnector, handle: TableHandle, work: str) -> None:
    with_base(lake, handle)
    finish = resolve(lake, handle, [{"id": 2, "v": "b"}], [1])
    if work == "truncate":
        lake.metadata.truncate(handle)
    else:
        compact(lake, handle, [{"id": 1, "v": "z"}], [])()
    wanted = read(lake, handle)
    assert code_of(finish)[0] == "TRANSACTION_CONFLICT"
    assert read(lake, handle) == wanted
