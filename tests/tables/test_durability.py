"""A commit that took effect is reported as done, whatever its storage answers; its files are synced before it (L6)."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from sqlalchemy.exc import OperationalError

from tests.support.turns import without_turns
from trinity import Column, Session, Table, TrinityError
from trinity.engine.compacting.rewrite_task import sidecar_target
from trinity.spi import SinkId, Tier, from_fragments, from_merge_fragments
from trinity.storage import ObjectStore, TableVersion
from trinity.storage.local_objects import make_folder
from trinity_delta.jvm import DeltaTransaction

pytestmark = pytest.mark.inner

COLUMNS = [Column("k", "int"), Column("v", "int")]


BY_CLASSES = {"delta.autoOptimize.autoCompact": "false"}
"""A property that Trinity does not support, so that Delta's own classes make all commits of the table."""


def of_two_rows(session: Session, catalog: str, name: str = "t", properties: Mapping[str, str] | None = None) -> Table:
    table = session.create_table(f"{catalog}.default.{name}", COLUMNS, properties=properties or {})
    table.append(some(1, 2))
    return table


def some(*values: int) -> pa.Table:
    kind = pa.int32()
    return pa.table({"k": pa.array(values, kind), "v": pa.array(values, kind)})


def values(table: Table) -> list[int]:
    return sorted(v for f in table.splits().files for v in pq.read_table(f.path, partitioning=None)["v"].to_pylist())


def and_then(call: Callable[..., Any], error: Exception | None, when: Callable[..., bool]) -> Callable[..., Any]:
    """Return the call with an error after it, as from a storage whose answer was lost."""

    def lying(*arguments: Any, **options: Any) -> Any:
        found = call(*arguments, **options)
        if error is not None and when(*arguments):
            raise error
        return found

    return lying


def always(*arguments: Any) -> bool:
    return True


def a_commit(source: Any, target: Any) -> bool:
    return "_trinity/log" in str(target) or "_delta_log" in str(target)


class _Lost(Exception):
    """An error of py4j when the connection to the JVM is lost: it has no Java class."""


def answers(table: Table, fmt: str, patch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let commits of the format succeed, and then raise an error."""
    if fmt == "iceberg":
        catalog = table.connector.metadata._iceberg  # type: ignore[attr-defined]
        patch.setattr(catalog, "commit_table", and_then(catalog.commit_table, error, always))
    else:
        patch.setattr(os, "link", and_then(os.link, error, a_commit))


def answers_of_classes(patch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let commits of Delta's own classes succeed, and then raise an error."""
    begin = DeltaTransaction.__init__

    def begun(self: Any, jvm: Any, name: str, location: str, transaction: Any) -> None:
        begin(self, jvm, name, location, transaction)
        self._transaction = _Lying(transaction, error)

    patch.setattr(DeltaTransaction, "__init__", begun)


class _Lying:
    """A transaction of Delta that fails after its commit, as in a hook."""

    def __init__(self, transaction: Any, error: Exception) -> None:
        self._transaction = transaction
        self._error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def commit(self, *given: Any) -> Any:
        self._transaction.commit(*given)
        raise self._error


# NFS repeats a LINK whose answer was lost; a broken network file system
LINKS: list[Exception] = [FileExistsError(errno.EEXIST, "File exists"), OSError(errno.EIO, "Input/output error")]
LOST: dict[str, list[Exception]] = {
    "parquet": LINKS,
    "delta": LINKS,
    "iceberg": [
        CommitFailedException("409"),
        CommitStateUnknownException("502"),
        ConnectionError("reset by peer"),
        OperationalError("COMMIT", {}, Exception("disk I/O error")),
    ],
}


def test_a_commit_whose_answer_is_lost_is_made_once(
    session: Session, fmt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = of_two_rows(session, fmt)
    before = table.splits().version
    for number, error in enumerate(LOST[fmt], start=1):
        with monkeypatch.context() as patch:
            answers(table, fmt, patch, error)
            assert table.append(some(9)).version == before + number
        assert values(table) == [1, 2, *[9] * number]


def test_commits_of_deltas_classes_whose_answer_is_lost_are_made_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = of_two_rows(session, "delta", properties=BY_CLASSES)
    before = table.splits().version
    answers_of_classes(monkeypatch, _Lost("Answer from Java side is empty"))
    assert table.append(some(9)).version == before + 1
    assert session.sql(f"UPDATE {table.name} SET v = v + 10").first()[0] == 3
    session.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('comment' = 'b')")
    assert values(table) == [11, 12, 19]
    assert table.splits().version == before + 3
    assert values(of_two_rows(session, "delta", "other", BY_CLASSES)) == [1, 2]


@pytest.mark.tiered
def test_an_update_whose_answer_is_lost_applies_once(
    session: Session, fmt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = of_two_rows(session, fmt)
    with monkeypatch.context() as patch:
        answers(table, fmt, patch, LOST[fmt][0])
        assert session.sql(f"UPDATE {table.name} SET v = v + 10").first()[0] == 2
    assert values(table) == [11, 12]


def test_a_table_whose_answer_is_lost_is_made(session: Session, fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = of_two_rows(session, fmt, "other")
    with monkeypatch.context() as patch:
        answers(other, fmt, patch, LOST[fmt][0])
        table = session.create_table(f"{fmt}.default.t", COLUMNS)
    table.append(some(3))
    assert values(table) == [3]
    with pytest.raises(TrinityError, match="TABLE_ALREADY_EXISTS"):
        session.create_table(f"{fmt}.default.t", COLUMNS)


def test_another_s_commit_is_not_taken_for_ones_own(
    session: Session, fmt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit fails, while another writer commits the same version: the error is reported."""
    table = of_two_rows(session, fmt)
    faults: dict[str, tuple[Any, str]] = {
        "parquet": (os, "link"),
        "delta": (os, "link"),
        "iceberg": (getattr(table.connector.metadata, "_iceberg", None), "commit_table"),
    }
    with monkeypatch.context() as patch:

        def fails(*arguments: Any, **options: Any) -> Any:
            patch.undo()
            table.append(some(7))
            raise OSError(errno.EIO, "Input/output error")

        without_turns(patch)
        patch.setattr(*faults[fmt], fails)
        with pytest.raises(TrinityError):
            table.append(some(9))
    assert values(table) == [1, 2, 7]


def test_what_fails_after_the_commit_is_logged(
    session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = of_two_rows(session, "parquet")
    sync, put = os.fsync, ObjectStore.put_if_absent

    def no_folders(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EIO, "Input/output error")
        sync(handle)

    def no_checkpoints(self: ObjectStore, name: str, data: bytes, **rest: Any) -> None:
        if "checkpoint" in name:
            raise TrinityError("FILESYSTEM_ERROR", "no space left")
        put(self, name, data, **rest)

    monkeypatch.setattr(ObjectStore, "put_if_absent", no_checkpoints)
    link = os.link

    def then_no_folders(source: Any, target: Any) -> None:
        link(source, target)
        monkeypatch.setattr(os, "fsync", no_folders)

    with caplog.at_level(logging.WARNING):
        for number in range(2, 12):
            monkeypatch.setattr(os, "fsync", sync)
            monkeypatch.setattr(os, "link", then_no_folders)
            assert table.append(some(number)).version == number
    assert values(table) == [1, 2, *range(2, 12)]
    assert any("not synced" in r.message for r in caplog.records)
    assert any("no checkpoint" in r.message for r in caplog.records)


def test_a_folder_that_cannot_be_synced_is_no_error(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """SMB and FUSE answer EINVAL."""
    sync = os.fsync

    def no_folders(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(handle)

    monkeypatch.setattr(os, "fsync", no_folders)
    assert values(of_two_rows(session, "parquet")) == [1, 2]


def test_a_file_system_without_hard_links_is_refused_by_name(
    session: Session, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(source: Any, target: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(TrinityError) as caught:
        session.create_table("parquet.default.t", COLUMNS)
    assert caught.value.code == "NOT_SUPPORTED"
    assert "hard links" in caught.value.message
    assert str(warehouse) in caught.value.message
    assert session.list_tables("parquet", "default") == []


def test_a_version_that_stands_is_told_as_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SPI's base of adapters whose commit is a list of files also looks for its own version."""
    from trinity.memory import MemoryConnector, MemoryMetadata

    connector = MemoryConnector("lake")
    session = TableVersionWriter(connector)
    write = MemoryMetadata.write_version

    def lost(self: MemoryMetadata, table: Any, version: TableVersion) -> None:
        write(self, table, version)
        raise TrinityError("FILESYSTEM_ERROR", "the connection broke")

    monkeypatch.setattr(MemoryMetadata, "write_version", lost)
    assert session.append() == 1
    assert session.append() == 2
    assert session.files() == 2
    connector.close()


class TableVersionWriter:
    """A writer that appends to a table of the in-memory adapter."""

    def __init__(self, connector: Any) -> None:
        from trinity.spi import TableDefinition

        self._connector = connector
        self._table = connector.metadata.create_table(TableDefinition("default", "t", tuple(COLUMNS)))

    def append(self) -> int:
        from trinity.spi import SinkId

        metadata = self._connector.metadata
        insert = metadata.begin_insert(self._table)
        sink = self._connector.sinks.create_page_sink(insert.target, SinkId())
        sink.append_page(some(1).to_batches()[0])
        return int(metadata.finish_insert(insert, sink.finish()).version)

    def files(self) -> int:
        return len(self._connector.metadata.get_splits(self._table).files)


# -- on disk before the commit --------------------------------------------------------------------------


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the paths that this process syncs, in order."""
    found: list[str] = []
    sync = os.fsync

    def recorded(handle: int) -> None:
        found.append(os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    monkeypatch.setattr(os, "fsync", recorded)
    return found


@pytest.mark.parametrize("partition_by", [(), ("k",)], ids=["plain", "partitioned"])
def test_files_and_folders_are_on_disk_before_their_commit(
    session: Session, fmt: str, partition_by: tuple[str, ...], synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = session.create_table(f"{fmt}.default.t", COLUMNS, partition_by=partition_by)
    root = table.location
    known = {str(p) for p in Path(root).rglob("*")}
    finish = table.connector.metadata.finish_insert
    needed: set[str] = set()

    def checked(insert: Any, fragments: Any, *arguments: Any) -> Any:
        for file in from_fragments(list(fragments)):
            needed.add(file.path)
            needed.update(str(p) for p in Path(file.path).parents if str(p).startswith(insert.target.folder))
        assert needed <= set(synced)
        return finish(insert, fragments, *arguments)

    monkeypatch.setattr(table.connector.metadata, "finish_insert", checked)
    synced.clear()
    table.append(some(1, 2, 1))
    assert len(needed) == (5 if partition_by else 2)
    if fmt == "iceberg":
        written = {str(p) for p in Path(root, "metadata").iterdir()} - known
        assert {p.rpartition(".")[2] for p in written} == {"avro", "json"}
        assert {root, *written} <= set(synced)  # the folder "data" is a new entry of the table's
    elif fmt == "delta":
        assert any(path.startswith(f"{root}/_delta_log/.{1:020d}.json.") for path in synced)
    files = [path for path in synced if not os.path.isdir(path)]
    assert len(files) == len(set(files))


def test_what_merge_and_compaction_sinks_write_is_on_disk(session: Session, synced: list[str]) -> None:
    """Spark's tasks would call these sinks; here this process does."""
    table = of_two_rows(session, "parquet")
    metadata, sinks, [old] = table.connector.metadata, table.connector.sinks, table.splits().files
    pinned = replace(table.handle, version=table.splits().version)
    synced.clear()
    merging = sinks.create_merge_sink(metadata.begin_merge(pinned, {}), SinkId())
    deleted = pa.array([{"file": old.path, "pos": 0}], pa.struct([("file", pa.string()), ("pos", pa.int64())]))
    columns = [pa.array([None], pa.int32())] * 2 + [pa.array([2], pa.int8()), pa.array([0], pa.int32()), deleted]
    merging.store_merged_rows(pa.record_batch(columns, names=["k", "v", "operation", "case_number", "row_id"]))
    [new] = from_merge_fragments(merging.finish())[0]
    assert {new.path, table.location} <= set(synced)
    hidden = sidecar_target(metadata.begin_rewrite(pinned, [old]).target, f"{table.location}/_trinity", some().schema)
    kept = sinks.create_page_sink(hidden, SinkId(tier=Tier.SIDECAR, commit=1))
    kept.append_page(some(1).to_batches()[0])
    [sidecar] = from_fragments(kept.finish())
    assert {sidecar.path, f"{table.location}/_trinity"} <= set(synced)


def test_an_option_leaves_data_files_to_the_operating_system(session: Session, fmt: str, synced: list[str]) -> None:
    table = session.create_table(f"{fmt}.default.t", COLUMNS, properties={"write.sync": "false"})
    table.append(some(1, 2))
    assert values(table) == [1, 2]
    assert not [path for path in synced if path.endswith(".parquet")]
    table.set_properties({"write.sync": "true"})
    table.append(some(3))
    assert [path for path in synced if path.endswith(".parquet")]


def test_new_folders_are_on_disk_as_entries_of_those_above(tmp_path: Path, synced: list[str]) -> None:
    make_folder(tmp_path / "a" / "b")
    assert set(synced) == {str(tmp_path), str(tmp_path / "a")}
    synced.clear()
    make_folder(tmp_path / "a" / "b")
    assert synced == []
