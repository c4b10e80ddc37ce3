"""A table that is put back to an earlier state: readers of its changes notice, whatever was committed since (C7)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from inspect import unwrap
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import trinity
from tests.support.bucket_lake import ROWS, BucketLake, objects
from tests.support.delta_lake import commit_by_others, restore_by_others
from tests.support.iceberg import pyiceberg
from tests.support.object_store import ObjectServer
from tests.support.put_back import Backup
from tests.support.refusals import refused
from tests.support.tables import put_ids, reopened, stored_ids
from trinity import Column, Session, Table, cdc
from trinity.cdc.following import number_of, position_of
from trinity.cli.tail import follow
from trinity.datasource import answers
from trinity.datasource.answers import answer
from trinity.engine.feed.reader_position import ReaderPosition
from trinity.engine.streaming.batches import Batches, StreamOptions
from trinity.spi import CommitResult, HistoryEntry

pytestmark = pytest.mark.inner

ANEW = ("put back to an earlier state", "new checkpoint")
PutBack = Callable[[Backup], None]


def _repair(backup: Backup) -> None:
    """Damage the newest metadata file, and repair the table."""
    table = backup.table
    pattern = {"parquet": "_trinity/log/*[0-9].json", "delta": "_delta_log/*[0-9].json"}
    found = Path(table.location).glob(pattern.get(str(table.name.catalog), "metadata/*.metadata.json"))
    max(found).write_bytes(b"")
    reopened(table).session.repair(str(table.name))


WAYS = [
    pytest.param(Backup.put_back, id="folder"),
    pytest.param(lambda backup: backup.put_back(in_place=True), id="in place"),
    pytest.param(_repair, id="repaired"),
]


@pytest.fixture
def opened(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Yield a session that starts no Spark, and uses none that runs in the process."""
    monkeypatch.setattr("trinity.session.spark_runs", lambda: False)
    monkeypatch.setattr(answers, "reads_all_now", lambda spark: False)
    monkeypatch.setattr(Session, "spark", None)
    with trinity.connect(warehouse) as session:
        yield session


@pytest.fixture
def table(opened: Session, fmt: str) -> Table:
    return opened.create_table(f"{fmt}.default.t", [Column("id", "int")], primary_key=["id"])


def offset(table: Table, start: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    start = start or {"begins": "rows", "table": ""}
    question = {"ask": "offset", "table": str(table.name), "start": start, "begun": True, "most": None, **more}
    return dict(answer(lambda: [table.session], question))


# -- commits ----------------------------------------------------------------------------------------------


def test_a_commit_has_one_id_however_it_is_read(table: Table) -> None:
    for n in range(12):  # with checkpoints
        put_ids(table, n)
    listed = {entry.version: entry for entry in table.connector.metadata.history(table.handle)}
    for seen in (table, reopened(table)):
        again = {entry.version: entry.commit for entry in seen.connector.metadata.history(seen.handle)}
        assert again == {version: entry.commit for version, entry in listed.items()}
        for version in sorted(listed, reverse=True):
            assert seen.splits(version).commit_id == listed[version].commit_id, version
    assert len({entry.commit for entry in listed.values()} - {""}) == len(listed)


def test_checkpoints_and_manifests_of_older_releases(opened: Session) -> None:
    """Older checkpoints name no commit; of still older releases manifests name none, either."""
    table = opened.create_table("parquet.default.t", [Column("id", "int")], primary_key=["id"])
    for n in range(10):
        put_ids(table, n)
    log = Path(table.location, "_trinity/log")
    [checkpoint] = log.glob("*.checkpoint.json")
    checkpoint.write_text(json.dumps({k: v for k, v in json.loads(checkpoint.read_text()).items() if k != "commit"}))
    seen = reopened(table)
    assert seen.splits().commit == table.splits().commit == seen.connector.metadata.history(seen.handle)[-1].commit
    for manifest in log.glob("*[0-9].json"):
        manifest.write_text(json.dumps({k: v for k, v in json.loads(manifest.read_text()).items() if k != "commit"}))
    seen = reopened(table)
    newest = seen.connector.metadata.history(seen.handle)[-1]
    assert (newest.commit, newest.commit_id) == ("", str(newest.timestamp_ms))
    assert seen.splits().commit_id == newest.commit_id


# -- sessions that have seen the table --------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_session_reads_what_was_written_since(table: Table, way: PutBack, tmp_path: Path) -> None:
    put_ids(table, 1)
    backup = Backup.of(table, tmp_path / "copy")
    put_ids(table, 2)
    assert stored_ids(table) == [1, 2]
    way(backup)
    put_ids(reopened(table), 3)
    assert stored_ids(table) == stored_ids(reopened(table)) == [1, 3]
    put_ids(table, 4)
    assert stored_ids(table) == stored_ids(reopened(table)) == [1, 3, 4]


def test_a_session_goes_on_in_a_warehouse_that_is_put_back_whole(table: Table, warehouse: Path, tmp_path: Path) -> None:
    """The catalog's database is restored, too, and is then another file."""
    put_ids(table, 1)
    shutil.copytree(warehouse, tmp_path / "copy")
    put_ids(table, 2)
    shutil.rmtree(warehouse)
    with refused("TABLE_NOT_FOUND", "t"):
        stored_ids(table)
    shutil.copytree(tmp_path / "copy", warehouse)
    assert stored_ids(table) == [1]
    put_ids(table, 3)
    put_ids(reopened(table), 4)
    assert stored_ids(table) == stored_ids(reopened(table)) == [1, 3, 4]


def test_a_table_is_put_back_twice_and_its_first_files_are_there_again(table: Table, tmp_path: Path) -> None:
    """Restored files may have the inodes and times of earlier ones; here the folder itself is moved back."""
    put_ids(table, 1)
    first, copy = Backup.of(table, tmp_path / "first"), Backup.of(table, tmp_path / "copy")
    put_ids(table, 2)
    assert stored_ids(table) == [1, 2]
    Path(table.location).rename(tmp_path / "aside")
    copy.folder.rename(table.location)
    first.put_back(in_place=True)
    assert stored_ids(table) == [1]
    shutil.rmtree(table.location)
    (tmp_path / "aside").rename(table.location)
    first.put_back(in_place=True)
    put_ids(reopened(table), 3)
    assert stored_ids(table) == stored_ids(reopened(table)) == [1, 3]


@pytest.mark.parametrize("cloud", ["parquet", "delta"], indirect=True)
def test_a_session_reads_what_was_written_since_in_a_bucket(
    s3: Session, plain: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    log = {"parquet": "/_trinity/log/", "delta": "/_delta_log/"}[cloud.fmt]
    plain.append(ROWS)
    before = set(objects(object_server, plain.location))
    plain.append(ROWS)
    assert len(plain.splits().files) == 2  # this session has it in memory
    reached = plain.connector.metadata.history(plain.handle)[-1]
    for name in set(objects(object_server, plain.location)) - before:
        if log in f"/{name}":
            object_server.files.delete_file(name)
    with cloud.connect() as other:
        other.table("plain").append(pa.table({"k": pa.array([7, 8, 9], pa.int32()), "v": ["x", "y", "z"]}))
        assert other.table("plain").splits().version == reached.version
        other.table("plain").append(ROWS)
        known = {file.path for file in other.table("plain").splits().files}
    assert {file.path for file in plain.splits().files} == known
    [again] = [e for e in plain.connector.metadata.history(plain.handle) if e.version == reached.version]
    with refused("INVALID_ARGUMENTS", "put back"):
        ReaderPosition.of(reached).check("plain", again, "the stream", "")


# -- streams ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("commits", [0, 1, 2])
def test_a_stream_notices(table: Table, way: PutBack, commits: int, tmp_path: Path) -> None:
    put_ids(table, 1)
    before = offset(table)
    backup = Backup.of(table, tmp_path / "copy")
    put_ids(table, 2)
    reached = offset(table, before)
    assert offset(table, reached) == reached
    way(backup)
    for n in range(commits):
        put_ids(table, 10 + n)
    for seen in (table, reopened(table)):
        with refused("INVALID_ARGUMENTS", f"{reached['version']}", f"'{table.name}'", *ANEW):
            offset(seen, reached)
        if way is not _repair:
            again = offset(seen, before)  # the versions that it had read still exist
            assert (again["version"] > before["version"]) == (commits > 0)


def test_a_batch_is_refused_whose_end_is_gone(table: Table, tmp_path: Path) -> None:
    """A query repeats such a batch after a crash."""
    start = offset(table)
    put_ids(table, 1)
    end = offset(table, start)
    question = {"ask": "batch", "table": str(table.name), "start": start, "end": end}
    backup = Backup.of(table, tmp_path / "copy")
    put_ids(table, 2)
    later = offset(table, end)
    backup.put_back()
    put_ids(table, 3)
    for wrong in ({"end": later}, {"start": later, "end": later | {"version": later["version"] + 1, "commit": ""}}):
        if "start" in wrong:
            put_ids(table, 4)
        with refused("INVALID_ARGUMENTS", *ANEW):
            answer(lambda: [table.session], {**question, **wrong})


def test_an_offset_of_an_older_release_is_bound_by_the_next(table: Table) -> None:
    put_ids(table, 1)
    old = {"version": offset(table)["version"], "table": table.definition.id}
    assert offset(table, old) == old  # Spark would take another text for a new offset
    put_ids(table, 2)
    assert offset(table, old)["commit"] == offset(table)["commit"] != ""


def test_iceberg_is_rolled_back(opened: Session) -> None:
    table = opened.create_table("iceberg.default.t", [Column("id", "int")], primary_key=["id"])
    one, two = put_ids(table, 1), put_ids(table, 2)
    reached = offset(table)
    ids = {entry.version: int(entry.commit) for entry in table.connector.metadata.history(table.handle)}
    pyiceberg(table).manage_snapshots().rollback_to_snapshot(ids[one]).commit()
    with refused("INVALID_ARGUMENTS", f"no version {two}", *ANEW):
        offset(table, reached)
    pyiceberg(table).manage_snapshots().set_current_snapshot(ids[two]).commit()
    assert offset(table, reached) == reached  # and forward again
    pyiceberg(table).manage_snapshots().rollback_to_snapshot(ids[one]).commit()
    put_ids(table, 3)
    with refused("INVALID_ARGUMENTS", f"no version {two} any more", "none of those that led to", *ANEW):
        offset(table, reached)
    assert offset(table, offset(table)) == offset(table)


def test_iceberg_is_rolled_back_over_another_table(opened: Session) -> None:
    """The rollback restores the rows, but neither columns nor options (L13)."""
    table = opened.create_table("iceberg.default.t", [Column("id", "int")], primary_key=["id"])
    one = put_ids(table, 1)
    opened.create_table(table.name, [{"k": "x", "id": 2}], primary_key=["k"], replace=True)
    two = table.version
    ids = {entry.version: int(entry.commit) for entry in table.connector.metadata.history(table.handle)}
    pyiceberg(table).manage_snapshots().rollback_to_snapshot(ids[one]).commit()
    for seen in (table, reopened(table)):
        for call in (seen.splits, seen.to_arrow, lambda seen=seen: seen.upsert([{"k": "y"}])):
            with refused("NOT_SUPPORTED", f"rows of version {one}", f"version {two}", "RESTORE TABLE"):
                call()
    pyiceberg(table).manage_snapshots().set_current_snapshot(ids[two]).commit()
    assert table.to_arrow().to_pylist() == [{"k": "x", "id": 2}]
    table.restore(one)
    put_ids(table, 3)
    assert stored_ids(table) == [1, 3]


def _lend_delta(table: Table) -> None:
    """Remove Trinity's domain from Delta's log, and restore it by a repair."""
    gone = {"domainMetadata": {"domain": "trinity.sidecar", "configuration": "[]", "removed": True}}
    commit_by_others(table.handle, gone, operation="DOMAIN METADATA CLEANUP")
    commit_by_others(table.handle, operation="OPTIMIZE")
    with refused("NOT_SUPPORTED", "repair"):
        table.splits()
    table.session.repair(str(table.name))


def _lend_iceberg(table: Table) -> None:
    """Allow NULL in the key, commit no rows, and forbid NULL again."""
    for required in (False, True):
        with pyiceberg(table).update_schema(allow_incompatible_changes=True) as update:
            update.set_identifier_fields(*["id"] * required)
            update.update_column("id", required=required)
        kind = pa.schema([pa.field("id", pa.int32(), nullable=not required)])
        pyiceberg(table).append(kind.empty_table())
        if not required:
            with refused("NOT_SUPPORTED", "id"):
                table.splits()


@pytest.mark.parametrize(("fmt", "lend"), [("delta", _lend_delta), ("iceberg", _lend_iceberg)])
def test_changes_across_a_version_that_nobody_can_read(
    table: Table, lend: Callable[[Table], None], warehouse: Path
) -> None:
    """A reader of the feed gets an error even after the repair; later changes are known."""
    put_ids(table, 1)
    reached = offset(table)
    lend(table)
    mended, last = table.version, put_ids(table, 9)
    with trinity.connect(warehouse, engine="local") as session:
        again = session.table(str(table.name))
        with refused("NOT_SUPPORTED", f"across version {reached['version'] + 1}", str(table.name), "new checkpoint"):
            again.changes(reached["version"]).collect()
        assert [(row.id, row["_commit_version"]) for row in again.changes(mended).collect()] == [(9, last)]
    question = {"ask": "batch", "table": str(table.name), "start": reached, "end": offset(table, reached)}
    with refused("NOT_SUPPORTED", "across version", "new checkpoint"):
        answer(lambda: [table.session], question)


def test_tables_of_others(opened: Session, tmp_path: Path) -> None:
    where = tmp_path / "theirs"
    for n in (1, 2, 3):
        write_deltalake(where, pa.table({"id": [n]}), mode="append")
    theirs = opened.register("delta.default.theirs", "delta", where, {})
    reached = offset(theirs)
    (where / f"_delta_log/{reached['version']:020d}.json").unlink()
    with refused("INVALID_ARGUMENTS", *ANEW):
        offset(theirs, reached)
    write_deltalake(where, pa.table({"id": [4]}), mode="append")
    assert DeltaTable(where).version() == reached["version"]
    with refused("INVALID_ARGUMENTS", *ANEW):
        offset(theirs, reached)


def test_a_folder_whose_newest_file_is_the_same(opened: Session, warehouse: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for n in (1, 2):
        pq.write_table(pa.table({"id": [n]}), folder / f"{n}.parquet")
    files = opened.register("parquet.default.files", "parquet", folder, {})
    reached = offset(files)
    assert offset(files, reached) == reached
    (folder / "1.parquet").unlink()
    with trinity.connect(warehouse) as again, refused("INVALID_ARGUMENTS", *ANEW):
        offset(again.table("parquet.default.files"), reached)


# -- streams into the table -------------------------------------------------------------------------------


def writing_stream(table: Table) -> Callable[[int], None]:
    """Return the function that commits the batch of a number to the table; batch 2 has no rows.

    Rows of Arrow replace the micro-batches that a query of Spark would pass.
    """
    rows = Mock()
    rows.sparkSession.sparkContext.getLocalProperty = lambda name: "q"

    def commit(_: Any, txn: tuple[str, int]) -> tuple[CommitResult, str] | None:
        number = pa.array([txn[1]], pa.int32())
        return None if txn[1] == 2 else (table.upsert(pa.table({"id": number}), txn=txn), "")

    batches = Batches(table, StreamOptions("checkpoints/q", apply=commit), -1)
    return partial(unwrap(Batches.write), batches, rows)  # without the check of argument types


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_stream_into_the_table_notices(table: Table, way: PutBack, tmp_path: Path) -> None:
    write = writing_stream(table)
    write(0)
    backup = Backup.of(table, tmp_path / "copy")
    for batch in (1, 2, 3):
        write(batch)
    way(backup)
    with refused("INVALID_ARGUMENTS", f"'{table.name}' had batch 3", "put back", "'checkpoints/q'"):
        write(4)
    assert stored_ids(table) == [0]


def test_a_stream_into_a_table_goes_on_behind_a_restore(opened: Session) -> None:
    """RESTORE keeps the numbers of batches: batches that it undid are not written again, later ones are."""
    table = opened.create_table("delta.default.t", [Column("id", "int")], primary_key=["id"])
    write = writing_stream(table)
    for batch in (0, 1):
        write(batch)
    restore_by_others(table.handle, 1)
    write(3)
    write(4)
    assert table.to_arrow()["id"].sort().to_pylist() == [0, 3, 4]
    again = writing_stream(reopened(table))
    with refused("INVALID_ARGUMENTS", "has batch 4"):
        again(1)
    again(5)
    assert table.to_arrow()["id"].sort().to_pylist() == [0, 3, 4, 5]


def test_a_stream_into_a_table_goes_on_into_the_one_in_its_place(table: Table) -> None:
    """The rows must fit the columns of the new table; no batch is written twice (L13)."""
    write = writing_stream(table)
    for batch in (0, 1):
        write(batch)
    columns = [Column("more", "string"), Column("id", "int")]
    table.session.create_table(table.name, columns, primary_key=["id"], replace=True)
    write(3)
    write(4)
    assert table.to_arrow()["id"].sort().to_pylist() == [3, 4]
    with refused("INVALID_ARGUMENTS", "has batch 4"):
        writing_stream(reopened(table))(1)
    table.session.create_table(table.name, [Column("k", "int")], primary_key=["k"], replace=True)
    with refused("COLUMN_NOT_FOUND", "id"):
        write(5)


# -- tables that follow -----------------------------------------------------------------------------------


def test_places_as_numbers() -> None:
    entry = HistoryEntry(7, 1_000, "append", commit="c")
    reached = ReaderPosition.of(entry)
    number = number_of(reached)
    assert 2**62 < number < 2**63
    assert position_of(number) == ReaderPosition(7, reached.commit[:5])
    position_of(number).check("t", entry, "r", "")
    with refused("INVALID_ARGUMENTS", "Version 7 of table 't'", reached.commit[:5]):
        position_of(number).check("t", HistoryEntry(7, 1_000, "append", commit="d"), "r", "")
    assert number_of(ReaderPosition(8, "0" * 16)) > number > number_of(ReaderPosition(6, "f" * 16))
    assert position_of(99) == ReaderPosition(99)  # of an older release
    assert number_of(ReaderPosition(2**42, "0" * 16)) == 2**42
    now = HistoryEntry(1_795_000_000_000, 1_795_000_000_000, "append")  # a folder's version
    assert position_of(number_of(ReaderPosition.of(now))).version == now.version


def copied(table: Table) -> set[int]:
    return {row.id for row in table.to_df().select("id").collect()}


@pytest.mark.full
def test_a_table_that_follows_notices(session: Session, tiered_fmt: str, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE {tiered_fmt}.default.t (id INT PRIMARY KEY)")
    session.sql("CREATE TABLE copy (id INT PRIMARY KEY, kind STRING) TBLPROPERTIES ('rowkind.field' = 'kind')")
    source, copy = session.table(f"{tiered_fmt}.default.t"), session.table("copy")
    application = f"follow {source.definition.id}"
    reached = put_ids(source, 1)
    copy.upsert(pa.table({"id": pa.array([1], pa.int32()), "kind": ["+I"]}), txn=(application, reached))  # long ago
    assert cdc.follow(source, copy).skipped
    backup = Backup.of(source, tmp_path / "copy")
    put_ids(source, 2)
    cdc.follow(source, copy)
    assert copied(copy) == {1, 2}
    backup.put_back()
    for n in (3, 4):  # with as many commits as were lost, and with more
        with refused("INVALID_ARGUMENTS", f"'{source.name}'", f"'{copy.name}'", "put back", "another name"):
            cdc.follow(source, copy)
        put_ids(source, n)
    with refused("INVALID_ARGUMENTS", f"'{source.name}'", f"'{copy.name}'", "put back", "another name"):
        cdc.follow(source, copy)
    copy.delete()
    cdc.follow(source, copy, name="anew")
    assert copied(copy) == {1, 3, 4}
    put_ids(source, 5)
    cdc.follow(source, copy, name="anew")
    assert copied(copy) == {1, 3, 4, 5}


def test_what_is_printed_as_it_comes_notices(session: Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    table = session.table("t")
    put_ids(table, 1)
    backup = Backup.of(table, tmp_path / "copy")
    put_ids(table, 2)
    seen = follow(table, 0, lambda: True)
    assert next(seen).count() == 2
    backup.put_back()
    put_ids(table, 3)
    with refused("INVALID_ARGUMENTS", "'parquet.default.t'", "put back", "--after"):
        next(seen)
