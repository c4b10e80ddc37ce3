"""The folder of a table: files named .parquet hold rows of the table, for readers that know nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.tables import keyed_table, put
from trinity import Column, Session, Table
from trinity.storage import ObjectStore

COLUMNS = [Column("k", "int"), Column("w", "bigint"), Column("gone", "boolean")]
BY_TOMBSTONE = {"watermark-key": "w", "tombstone-key": "gone"}


@pytest.fixture
def opened(warehouse: Path) -> Iterator[Session]:
    """Yield a session that starts no Spark."""
    with trinity.connect(warehouse) as session:
        yield session


def found(table: Table) -> list[tuple[int, int]]:
    return sorted((r.k, r.w) for r in table.to_df().collect())


def in_folder(table: Table) -> set[str]:
    """Return the files that a reader of the folder takes for data, without the format's own."""
    of_format = {"_delta_log", "metadata", "deletes"} if table.name.catalog != "parquet" else set()
    folder = Path(table.location)
    return {str(p) for p in folder.rglob("*.parquet") if not of_format & {*p.relative_to(folder).parts}}


def kept(table: Table, folder: str) -> list[str]:
    """Return the suffixes of Trinity's files in a folder below the table's, without JSON."""
    endings = {p.suffix for p in Path(table.location, folder).iterdir() if p.is_file()}
    return sorted(endings - {".json"})


@pytest.mark.full
def test_nothing_else_ends_in_parquet(session: Session, tiered_fmt: str) -> None:
    table = keyed_table(session, tiered_fmt, COLUMNS, changelog_producer="lookup", **BY_TOMBSTONE)
    put(table, (1, 1, False), (2, 1, False), (3, 1, False))
    put(table, (2, 2, True))
    table.compact(full=True)
    assert kept(table, "_trinity") == [".trinity"]  # the tombstone
    assert session.spark.read.format("trinity").option("table", str(table.name)).load().count() == 2
    assert kept(table, "_trinity/changelog") == [".trinity"]
    put(table, (1, 2, False), (3, 2, True))
    assert found(table) == [(1, 2)]
    table.compact("resolve")
    table.vacuum("0 seconds")
    assert in_folder(table) == {file.path for file in table.splits().files}
    put(table, (2, 1, False))  # late: the tombstone beats it
    assert found(table) == [(1, 2)]
    table.compact(full=True)
    table.vacuum("0 seconds")
    assert in_folder(table) == {file.path for file in table.splits().files}
    assert found(table) == [(1, 2)]


@pytest.mark.full
def test_names_of_older_releases_are_read_and_renewed(session: Session, warehouse: Path) -> None:
    table = keyed_table(session, "parquet", COLUMNS, **BY_TOMBSTONE)
    put(table, (1, 1, False), (2, 2, True))
    table.compact(full=True)
    [sidecar] = Path(table.location, "_trinity").glob("*.trinity")
    sidecar.rename(sidecar.with_suffix(".parquet"))
    for manifest in Path(table.location, "_trinity/log").glob("*.json"):
        manifest.write_text(manifest.read_text().replace(sidecar.name, sidecar.with_suffix(".parquet").name))
    with trinity.connect(warehouse) as again:
        old = again.table(str(table.name))
        old.vacuum("0 seconds")
        assert Path(table.location, "_trinity", f"{sidecar.stem}.parquet").exists()
        assert not old.compact(full=True).skipped
        old.vacuum("0 seconds")
        assert old.compact(full=True).skipped
        assert kept(old, "_trinity") == [".trinity"]
        assert in_folder(old) == {file.path for file in old.splits().files}
        put(old, (2, 1, False))  # late: the tombstone beats it
        assert found(old) == [(1, 1)]


def test_orphans_of_any_ending_go(opened: Session) -> None:
    table = keyed_table(opened, "parquet", COLUMNS, **BY_TOMBSTONE)
    put(table, (1, 1, False))
    left = [f"_trinity/{'0' * 32}-000000-00000000{ending}" for ending in (".parquet", ".trinity")]
    for name in left:
        path = Path(table.location, name)
        path.write_bytes(b"left by a writer that was killed")
        os.utime(path, (0, 0))
    assert table.vacuum("0 seconds").files == 2
    assert not any(Path(table.location, name).exists() for name in left)


def test_what_is_staged_is_no_row_yet(opened: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trinity adds files to a folder of others; until they are committed, no reader of the folder finds them."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    pq.write_table(pa.table({"k": pa.array([1], pa.int32())}), folder / "1.parquet")
    table = opened.register("parquet.default.theirs", "parquet", folder, {})
    seen: list[int] = []
    put_if_absent = ObjectStore.put_if_absent

    def looked(store: ObjectStore, *given: Any, **options: Any) -> None:
        seen.append(len(duckdb.read_parquet(f"{folder}/**/*.parquet").fetchall()))
        put_if_absent(store, *given, **options)

    with monkeypatch.context() as watched:
        watched.setattr(ObjectStore, "put_if_absent", looked)
        table.append(pa.table({"k": pa.array([2], pa.int32())}))
    assert seen == [1]
    assert sorted(duckdb.read_parquet(f"{folder}/**/*.parquet").fetchall()) == [(1,), (2,)]
