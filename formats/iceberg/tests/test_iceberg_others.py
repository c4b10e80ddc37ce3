"""Iceberg tables and PyIceberg: commits, expiry and properties of others, and what Trinity carries."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import time
from pathlib import Path

import pyarrow as pa
from pyiceberg.types import IntegerType

from tests.support.adapter import KEYED, append, code_of, compact, stored, write
from tests.support.alter import add_column, set_properties
from tests.support.iceberg_lake import open_catalog, with_pyiceberg
from trinity.spi import Column, SinkId, TableHandle, Tier
from trinity_iceberg import IcebergConnector


def test_commits_of_others_are_log_and_drop_nothing(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"), txn=("app", 1))
    compact(lake, handle, [{"id": 1, "v": "a"}], [{"id": 9}])()
    iceberg = with_pyiceberg(lake, handle)
    iceberg.append(pa.table({"id": [2], "v": ["b"]}, schema=iceberg.schema().select("id", "v").as_arrow()))
    splits = lake.metadata.get_splits(handle)
    assert [f.tier for f in splits.files] == [Tier.BASE, Tier.LOG]
    assert len(splits.sidecar) == 1
    lake.metadata.vacuum(handle, int(time.time() * 1000) + 10_000)
    assert [f.tier for f in lake.metadata.get_splits(handle).files] == [Tier.BASE, Tier.LOG]
    assert len(lake.metadata.get_splits(handle).sidecar) == 1
    assert append(lake, handle, (1, "a"), txn=("app", 1)).skipped
    assert sorted(r["id"] for r in stored(lake, handle)) == [1, 2]


def append_by_others(lake: IcebergConnector, handle: TableHandle, key: int) -> None:
    rows = [{"id": key, "v": "other", "_trinity_row_kind": None}]
    iceberg = with_pyiceberg(lake, handle)
    iceberg.append(pa.Table.from_pylist(rows, schema=iceberg.schema().as_arrow()))


def expire_by_others(lake: IcebergConnector, handle: TableHandle) -> None:
    """Expire all snapshots but the present one by PyIceberg."""
    iceberg = with_pyiceberg(lake, handle)
    old = [s.snapshot_id for s in iceberg.snapshots() if s.snapshot_id != iceberg.metadata.current_snapshot_id]
    iceberg.maintenance.expire_snapshots().by_ids(old).commit()
    assert len(with_pyiceberg(lake, handle).snapshots()) == 1


def carrying(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"), (2, "b"), txn=("app", 5))
    compact(lake, handle, [{"id": 1, "v": "a"}], [{"id": 2, "v": "b"}])()


def test_expiry_by_others_forgets_nothing(lake: IcebergConnector, handle: TableHandle) -> None:
    carrying(lake, handle)
    append_by_others(lake, handle, 3)
    expire_by_others(lake, handle)
    splits = lake.metadata.get_splits(handle)
    assert [f.tier for f in splits.files] == [Tier.BASE, Tier.LOG]
    assert [f.rows for f in splits.sidecar] == [1]
    assert append(lake, handle, (1, "a"), txn=("app", 5)).skipped
    assert not append(lake, handle, (1, "a"), txn=("app", 6)).skipped
    assert lake.metadata.recorded_txn(handle, "app") == 6
    assert len(lake.metadata.get_splits(handle).sidecar) == 1


def test_a_version_of_others_is_read_by_its_record_once_trinity_goes_on(
    lake: IcebergConnector, handle: TableHandle, tmp_path: Path
) -> None:
    """A follower has reached that version, and asks for the changes since."""
    carrying(lake, handle)
    append_by_others(lake, handle, 3)
    expire_by_others(lake, handle)
    reached = lake.metadata.get_splits(handle)
    for number in (4, 5):
        append(lake, handle, (number, "d"), txn=("app", number + 2))
        compact(lake, handle, [{"id": 1, "v": "a"}], [])()
        lake.metadata.delete_unneeded(handle, 10**13)
        lake = open_catalog(tmp_path / "w")  # a catalog without versions in memory
        again = lake.metadata.get_splits(dataclasses.replace(handle, version=reached.version))
        assert (again.files, again.sidecar) == (reached.files, reached.sidecar)
        assert all(Path(file.path).exists() for file in (*again.files, *again.sidecar))
    expire_by_others(lake, handle)
    append(lake, handle, (6, "e"))
    assert "before" not in json.loads(with_pyiceberg(lake, handle).properties["trinity.state"])


def test_what_is_lost_is_not_guessed(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    carrying(lake, handle)
    append_by_others(lake, handle, 3)
    before = lake.metadata.get_splits(handle).version
    append(lake, handle, (4, "d"))
    append_by_others(lake, handle, 5)
    iceberg = with_pyiceberg(lake, handle)
    kept = {iceberg.metadata.current_snapshot_id}
    kept |= {s.snapshot_id for s in iceberg.snapshots() if (s.sequence_number or 0) >= before}
    iceberg.maintenance.expire_snapshots().by_ids(
        [s.snapshot_id for s in iceberg.snapshots() if s.snapshot_id not in kept]
    ).commit()
    lake = open_catalog(tmp_path / "w")  # a catalog without versions in memory
    assert len(lake.metadata.get_splits(handle).sidecar) == 1
    # the record is of a later commit than this version
    code, message = code_of(lambda: lake.metadata.get_splits(dataclasses.replace(handle, version=before)))
    assert code == "BAD_DATA"
    assert "begin anew" in message
    with with_pyiceberg(lake, handle).transaction() as changes:
        changes.remove_properties("trinity.state")
    expire_by_others(lake, handle)
    lake = open_catalog(tmp_path / "w")
    for call in (
        lambda: lake.metadata.get_splits(handle),
        lambda: lake.metadata.recorded_txn(handle, "app"),
        lambda: append(lake, handle, (6, "e"), txn=("app", 6)),
    ):
        code, message = code_of(call)
        assert code == "BAD_DATA"
        assert handle.location in message


def test_changes_of_rows_that_are_folded_from_others_are_refused(lake: IcebergConnector) -> None:
    columns = (*KEYED.columns, Column("_trinity_carried", "string"))
    properties = {"merge-engine": "partial-update", "sequence.field": "v"}
    table = lake.metadata.create_table(dataclasses.replace(KEYED, columns=columns, properties=properties))
    append(lake, table, (1, "a"), (2, "b"))
    rows = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    compact(lake, table, rows, rows)()
    append_by_others(lake, table, 3)
    with_pyiceberg(lake, table).delete("id = 3")  # was not compacted
    kept = append(lake, table, (3, "c")).version
    with_pyiceberg(lake, table).delete("id = 2")
    iceberg = with_pyiceberg(lake, table)
    for call in (
        lambda: lake.metadata.get_splits(table),
        lambda: lake.metadata.begin_insert(table),
        lambda: lake.metadata.begin_merge(table, {}),
        lambda: lake.metadata.begin_rewrite(table, ()),
    ):
        code, message = code_of(call)
        assert code == "NOT_SUPPORTED"
        assert "rollback_to_snapshot" in message
    assert len(lake.metadata.get_splits(dataclasses.replace(table, version=kept)).files) == 2
    parent = iceberg.snapshots()[-1].parent_snapshot_id
    assert parent is not None
    iceberg.manage_snapshots().rollback_to_snapshot(parent).commit()
    append(lake, table, (4, "d"))
    assert [row["id"] for row in stored(lake, table)] == [1, 2, 3, 4]


def test_properties_of_others_stay_beside_the_record(lake: IcebergConnector, handle: TableHandle) -> None:
    insert = lake.metadata.begin_insert(handle)
    fragments = write(lake, insert.target, [{"id": 1}], SinkId())
    with with_pyiceberg(lake, handle).transaction() as changes:
        changes.set_properties({"owner": "somebody", "write.x": "theirs"})
    lake.metadata.finish_insert(insert, fragments, ("app", 1))
    for n in range(2, 12):
        append(lake, handle, (n, "x"), txn=("app", n))
    set_properties(lake, handle, {"bucket": "4"})
    found = with_pyiceberg(lake, handle).properties
    assert (found["owner"], found["write.x"]) == ("somebody", "theirs")
    mark = hashlib.sha256(found["trinity.definition"].encode()).hexdigest()[:16]
    assert json.loads(found["trinity.state"]) == {"version": "13", "definition": mark, "trinity.txn": '{"app": 11}'}
    set_properties(lake, handle, {"write.y": "ours"})
    with with_pyiceberg(lake, handle).transaction() as changes:
        changes.set_properties({"write.y": "theirs"})
    add_column(lake, handle, Column("extra", "int"))
    assert with_pyiceberg(lake, handle).properties["write.y"] == "theirs"
    assert lake.metadata.get_splits(handle).definition.properties["write.y"] == "theirs"


def test_the_metadata_names_the_sidecar_of_every_version(lake: IcebergConnector, handle: TableHandle) -> None:
    def named() -> set[str]:
        return {Path(s.statistics_path).name for s in with_pyiceberg(lake, handle).metadata.statistics}

    def present() -> set[str]:
        return {p.name for p in Path(handle.location, "_trinity").iterdir()}

    for n in range(3):
        append(lake, handle, (n, "a"))
        compact(lake, handle, [], [{"id": n, "v": "a"}])()
    assert len(named()) == 6  # an index and a file each
    assert named() == present()
    expire_by_others(lake, handle)
    append(lake, handle, (4, "a"))
    compact(lake, handle, [], [{"id": 4, "v": "a"}])()
    assert len(named()) == 4  # the files that the remaining versions need
    lake.metadata.vacuum(handle, int(time.time() * 1000) + 10_000)
    assert len(named()) == 2
    assert named() <= present()
    assert len(lake.metadata.get_splits(handle).sidecar) == 1
    lake.metadata.truncate(handle)
    assert len(named()) == 3  # the new index, according to which there is no sidecar
    assert named() <= present()


def test_commits_are_called_what_iceberg_calls_them(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    compact(lake, handle, [{"id": 1, "v": "a"}], [])()
    lake.metadata.truncate(handle)
    iceberg = with_pyiceberg(lake, handle)
    operations = [s.summary.operation.value for s in iceberg.snapshots() if s.summary]
    assert operations == ["append", "append", "replace", "delete"]
    totals = [s.summary.additional_properties["total-records"] for s in iceberg.snapshots() if s.summary]
    assert totals == ["0", "1", "1", "0"]
    for snapshot in iceberg.snapshots()[2:]:
        entries = [e for m in snapshot.manifests(iceberg.io) for e in m.fetch_manifest_entry(iceberg.io, False)]
        gone = [e.snapshot_id for e in entries if e.status == 2]
        assert gone == [snapshot.snapshot_id]


def test_columns_of_others_are_refused_where_rows_need_them(lake: IcebergConnector) -> None:
    for number, (column, role) in enumerate([("w", "the watermark"), ("_trinity_row_kind", "Trinity's own")]):
        columns = (*KEYED.columns[:2], Column("w", "int"), KEYED.columns[2])
        definition = dataclasses.replace(KEYED, name=f"n{number}", columns=columns, properties={"watermark-key": "w"})
        handle = lake.metadata.create_table(definition)
        written = append(lake, handle, (1, "a", 1)).version
        append(lake, handle, (2, "b", 1))
        with with_pyiceberg(lake, handle).update_schema() as schema:
            schema.delete_column(column)
        for call in (lambda h=handle: lake.metadata.get_splits(h), lambda h=handle: lake.metadata.begin_insert(h)):
            code, message = code_of(call)
            assert code == "NOT_SUPPORTED"
            assert column in message
            assert role in message
        assert lake.metadata.get_splits(dataclasses.replace(handle, version=written)).version == written


def test_columns_that_others_drop_take_their_options_along(lake: IcebergConnector) -> None:
    properties = {"merge-engine": "aggregation", "fields.v.aggregate-function": "listagg"}
    definition = dataclasses.replace(KEYED, columns=(*KEYED.columns, Column("_trinity_carried", "string")))
    handle = lake.metadata.create_table(dataclasses.replace(definition, properties=properties))
    append(lake, handle, (1, "a"))
    with with_pyiceberg(lake, handle).update_schema() as schema:
        schema.add_column("x", IntegerType())
    with with_pyiceberg(lake, handle).update_schema() as schema:
        schema.delete_column("v")
        schema.delete_column("x")
    found = lake.metadata.get_splits(handle).definition
    assert found.properties == {"merge-engine": "aggregation"}
    assert [c.field_id for c in found.all_columns] == [1, 2, 5]  # dropped ones keep the positions that marks refer to


def test_a_copied_folder_is_read_and_not_written(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    append(lake, handle, (1, "a"))
    copy = dataclasses.replace(handle, location=str(tmp_path / "copy"))
    shutil.copytree(handle.location, copy.location)
    metadata = lake.open_external(copy)
    assert len(metadata.get_splits(copy).files) == 1
    code, message = code_of(lambda: metadata.begin_insert(copy))
    assert (code, "belongs to a catalog" in message) == ("NOT_SUPPORTED", True)


def test_transactions_and_tombstones_are_those_of_the_snapshot(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"), txn=("app", 1))
    compact(lake, handle, [{"id": 1, "v": "a"}], [{"id": 9}])()
    append(lake, handle, (2, "b"), txn=("app", 2))
    newest = with_pyiceberg(lake, handle).metadata.current_snapshot_id
    first = with_pyiceberg(lake, handle).snapshots()[1].snapshot_id
    with_pyiceberg(lake, handle).manage_snapshots().rollback_to_snapshot(first).commit()
    assert lake.metadata.get_splits(handle).sidecar == ()
    assert lake.metadata.recorded_txn(handle, "app") == 1
    assert not append(lake, handle, (3, "c"), txn=("app", 2)).skipped
    with with_pyiceberg(lake, handle).manage_snapshots() as refs:
        refs.set_current_snapshot(snapshot_id=newest)
    assert len(lake.metadata.get_splits(handle).sidecar) == 1
    assert append(lake, handle, (4, "d"), txn=("app", 2)).skipped
