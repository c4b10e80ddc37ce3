"""The Iceberg adapter, driven through the SPI alone, and what PyIceberg and Spark make of its tables."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
import multiprocessing
import os
import threading
import time
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import IntegerType

from tests.support.alter import add_column, set_properties
from trinity.errors import TrinityError
from trinity.spi import (
    Bucket,
    Column,
    ConnectorContext,
    DataFile,
    SinkId,
    TableDefinition,
    TableHandle,
    Tier,
    WriteTarget,
    type_text,
)
from trinity_iceberg import IcebergConnector, IcebergFormat, metadata
from trinity_iceberg.load import load

UTC = dt.UTC
KEYED = TableDefinition(
    "default",
    "t",
    (Column("id", "bigint", nullable=False), Column("v", "string"), Column("_trinity_row_kind", "int")),
    ("id",),
    properties={"watermark-key": "v"},
)
TYPES: dict[str, Any] = {
    "boolean": True,
    "tinyint": -128,
    "smallint": 32767,
    "int": -(2**31),
    "bigint": 2**62,
    "float": 1.5,
    "double": -2.5,
    "decimal(10,2)": Decimal("-12345678.90"),
    "decimal(38,10)": Decimal("1234567890123456789012345678.0123456789"),
    "string": "grüße",
    "char(4)": "ab  ",
    "varchar(9)": "abc",
    "binary": b"\x00\xff",
    "date": dt.date(1969, 7, 20),
    "timestamp": dt.datetime(2013, 1, 1, 5, 17, 0, 123456, UTC),
    "timestamp_ntz": dt.datetime(1900, 1, 1, 0, 0, 0, 1),
    "time": dt.time(23, 59, 59, 999999),
    "array<int>": [1, None, 3],
    "map<string,array<bigint>>": [("a", [1]), ("b", None)],
    "struct<x:int,y:struct<z:string>>": {"x": 1, "y": {"z": "q"}},
}


def open_catalog(warehouse: Path, name: str = "lake", **options: Any) -> IcebergConnector:
    def no_spark() -> Any:
        raise AssertionError("the adapter needs no Spark")

    return IcebergFormat().create(name, {"warehouse": str(warehouse), **options}, ConnectorContext(no_spark))


@pytest.fixture
def lake(tmp_path: Path) -> IcebergConnector:
    return open_catalog(tmp_path / "w")


@pytest.fixture
def table(lake: IcebergConnector) -> TableHandle:
    return lake.metadata.create_table(KEYED)


def write(lake: IcebergConnector, target: WriteTarget, rows: list[dict[str, Any]], sink: SinkId) -> list[bytes]:
    page_sink = lake.sinks.create_page_sink(target, sink)
    page_sink.append_page(pa.RecordBatch.from_pylist(rows, schema=target.storage))
    return page_sink.finish()


def append(lake: IcebergConnector, table: TableHandle, *rows: tuple[Any, ...], txn: Any = None) -> Any:
    insert = lake.metadata.begin_insert(table)
    names = insert.target.storage.names
    records = [dict(itertools.zip_longest(names, row)) for row in rows]
    fragments = write(lake, insert.target, records, SinkId()) if rows else []
    return lake.metadata.finish_insert(insert, fragments, txn)


def compact(lake: IcebergConnector, table: TableHandle, rows: list[dict[str, Any]], dead: list[dict[str, Any]]) -> Any:
    """What the engine does: rewrites all files into one base file and a sidecar."""
    splits = lake.metadata.get_splits(table)
    rewrite = lake.metadata.begin_rewrite(dataclasses.replace(table, version=splits.version), splits.files)
    folded = max(f.commit or 0 for f in splits.files)
    fragments = write(lake, rewrite.target, rows, SinkId(0, Tier.BASE, Bucket(0, 1), folded)) if rows else []
    aside = dataclasses.replace(rewrite.target, folder=f"{table.location}/_trinity")
    fragments += write(lake, aside, dead, SinkId(0, Tier.SIDECAR, None, folded)) if dead else []
    return lambda: lake.metadata.finish_rewrite(rewrite, fragments, replace_sidecar=True)


def stored(lake: IcebergConnector, table: TableHandle) -> list[dict[str, Any]]:
    splits = lake.metadata.get_splits(table)
    return [row for f in splits.files for row in pq.read_table(f.path, schema=splits.storage).to_pylist()]


def with_pyiceberg(lake: IcebergConnector, table: TableHandle) -> IcebergTable:
    return lake._iceberg.load_table((table.schema, table.table))


def code_of(call: Any) -> tuple[str, str]:
    with pytest.raises(TrinityError) as caught:
        call()
    return caught.value.code, caught.value.message


# -- schemas and tables ------------------------------------------------------------------------------------


def test_schemas(lake: IcebergConnector) -> None:
    lake.metadata.create_schema("sales")
    assert lake.metadata.list_schemas() == ["default", "sales"]
    assert code_of(lambda: lake.metadata.create_schema("sales"))[0] == "SCHEMA_ALREADY_EXISTS"
    made = lake.metadata.create_table(dataclasses.replace(KEYED, schema="sales"))
    assert lake.metadata.list_tables("sales") == ["t"]
    assert made.location == os.path.dirname(made.location) + "/t"
    assert code_of(lambda: lake.metadata.drop_schema("sales"))[0] == "SCHEMA_NOT_EMPTY"
    assert code_of(lambda: lake.metadata.create_table(dataclasses.replace(KEYED, schema="sales")))[0] == (
        "TABLE_ALREADY_EXISTS"
    )
    lake.metadata.drop_table(made)
    lake.metadata.drop_schema("sales")
    assert not os.path.exists(made.location)
    for call in (lambda: lake.metadata.drop_schema("sales"), lambda: lake.metadata.list_tables("sales")):
        assert code_of(call)[0] == "SCHEMA_NOT_FOUND"
    assert code_of(lambda: lake.metadata.create_table(dataclasses.replace(KEYED, schema="x")))[0] == "SCHEMA_NOT_FOUND"


def test_definition_survives(lake: IcebergConnector, tmp_path: Path) -> None:
    columns = [Column("k", "varchar(9)", False), *(Column(f"c{i}", t) for i, t in enumerate(TYPES))]
    columns.append(Column("d", "int", default="1 + 1", comment="says so"))
    definition = TableDefinition(
        "default", "all_types", tuple(columns), ("k",), ("c1",), {"watermark-key": "c4", "write.target-x": "7"}
    )
    handle = lake.metadata.create_table(definition)
    reopened = open_catalog(tmp_path / "w")
    assert reopened.metadata.get_table("default", "all_types") == handle
    assert reopened.metadata.get_splits(handle).definition == definition.numbered()
    iceberg = with_pyiceberg(lake, handle)
    assert iceberg.metadata.format_version == 2
    assert iceberg.properties["write.target-x"] == "7"
    assert iceberg.schema().identifier_field_names() == {"k"}
    assert iceberg.schema().find_field("d").doc == "says so"


def test_float_keys_are_no_identifiers(lake: IcebergConnector) -> None:
    definition = dataclasses.replace(KEYED, columns=(Column("id", "double", False), Column("v", "string")))
    iceberg = with_pyiceberg(lake, lake.metadata.create_table(definition))
    assert iceberg.schema().identifier_field_ids == []
    assert iceberg.schema().find_field("id").required


def test_all_types_are_written_and_read(lake: IcebergConnector) -> None:
    columns = tuple(Column(f"c{i}", t) for i, t in enumerate(TYPES))
    handle = lake.metadata.create_table(TableDefinition("default", "all_types", columns))
    append(lake, handle, tuple(TYPES.values()), (None,) * len(TYPES))
    splits = lake.metadata.get_splits(handle)
    expected = {f"c{i}": v for i, v in enumerate(TYPES.values())}
    assert stored(lake, handle) == [expected, dict.fromkeys(expected)]
    for column, value in zip(columns, TYPES.values(), strict=True):
        if isinstance(value, list | dict | float):  # floats have none: bounds would leave NaN out
            assert column.name not in splits.files[0].stats
        else:
            found = splits.files[0].stats[column.name]
            assert (found.min, found.max, found.nulls) == (value, value, 1)
    assert with_pyiceberg(lake, handle).scan().to_arrow().to_pylist() == [expected, dict.fromkeys(expected)]
    assert "string" in {type_text(f.type) for f in splits.storage}
    assert not any(pa.types.is_large_string(f.type) or pa.types.is_large_list(f.type) for f in splits.storage)


def test_every_level_has_its_field_id(lake: IcebergConnector) -> None:
    handle = lake.metadata.create_table(
        TableDefinition("default", "n", (Column("m", "map<string,array<struct<a:int>>>"), Column("z", "int")))
    )
    append(lake, handle, ([("k", [{"a": 1}])], 2))
    splits = lake.metadata.get_splits(handle)
    in_file = pq.read_schema(splits.files[0].path)

    def ids(field: pa.Field) -> list[int]:
        kind = field.type
        is_map = pa.types.is_map(kind)
        inner = [kind.key_field, kind.item_field] if is_map else [kind.field(n) for n in range(kind.num_fields)]
        return [int(field.metadata[b"PARQUET:field_id"]), *(i for f in inner for i in ids(f))]

    for schema in (in_file, splits.storage):
        found = [i for f in schema for i in ids(f)]
        assert sorted(found) == list(range(1, 7))
    assert set(splits.files[0].column_sizes) >= {"m.key_value.key", "z"}


def test_long_bounds_are_cut_and_stay_bounds(lake: IcebergConnector, table: TableHandle) -> None:
    low, high = "a" * 500, "z" * 500
    append(lake, table, (1, low), (2, high))
    found = lake.metadata.get_splits(table).files[0].stats["v"]
    assert len(found.min) < 100
    assert found.min <= low
    assert found.max >= high


# -- appends -----------------------------------------------------------------------------------------------


def test_commit_numbers_are_sequence_numbers(lake: IcebergConnector, table: TableHandle, tmp_path: Path) -> None:
    results = [append(lake, table, (n, "x")) for n in range(3)]
    splits = open_catalog(tmp_path / "w").metadata.get_splits(table)
    assert [f.commit for f in splits.files] == [r.version for r in results]
    assert splits.version == results[-1].version == with_pyiceberg(lake, table).last_sequence_number
    assert results[0].rows == results[0].files == 1
    assert results[0].bytes == splits.files[0].size
    assert {f.tier for f in splits.files} == {Tier.LOG}


def test_order_in_a_commit_is_the_order_of_names(lake: IcebergConnector, table: TableHandle) -> None:
    insert = lake.metadata.begin_insert(table)
    fragments = [f for n in (2, 0, 1) for f in write(lake, insert.target, [{"id": n}], SinkId(n))]
    lake.metadata.finish_insert(insert, fragments)
    assert [r["id"] for r in stored(lake, table)] == [0, 1, 2]


def test_txn_is_recorded_once(lake: IcebergConnector, table: TableHandle, tmp_path: Path) -> None:
    first = append(lake, table, (1, "a"), txn=("app", 5))
    again = append(lake, table, (1, "a"), txn=("app", 5))
    assert (again.skipped, again.version, again.rows) == (True, first.version, 0)
    assert not append(lake, table, (2, "b"), txn=("other", 0)).skipped
    assert append(lake, table, (1, "a"), txn=("app", 4)).skipped
    assert append(lake, table).version == first.version + 1  # nothing to do, nothing committed
    empty = append(lake, table, txn=("app", 6))
    assert (empty.skipped, empty.version, empty.files) == (False, first.version + 2, 0)
    compact(lake, table, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], [])()
    lake.metadata.vacuum(table, int(time.time() * 1000) + 10_000)
    reopened = open_catalog(tmp_path / "w")
    assert reopened.metadata.recorded_txn(table, "app") == 6
    assert reopened.metadata.recorded_txn(table, "nobody") is None
    assert append(reopened, table, (1, "a"), txn=("app", 6)).skipped
    assert len(stored(reopened, table)) == 2


def test_a_statement_that_read_refuses_later_rows(lake: IcebergConnector, table: TableHandle) -> None:
    append(lake, table, (1, "a"))
    merge = lake.metadata.begin_merge(table, {})
    fragments = write(lake, merge.insert.target, [{"id": 3}], SinkId())
    set_properties(lake, table, {"bucket": "4"})  # changes no row
    compact(lake, table, [{"id": 1, "v": "a"}], [])()
    lake.metadata.finish_merge(merge, [], fragments)
    merge = lake.metadata.begin_merge(table, {})
    fragments = write(lake, merge.insert.target, [{"id": 4}], SinkId())
    append(lake, table, (2, "b"))
    compact(lake, table, [{"id": 1}], [])()
    lake.metadata.vacuum(table, int(time.time() * 1000) + 10_000)  # hides the append, not the fact
    Path(DataFile.from_dict(json.loads(fragments[0])).path).touch()
    assert code_of(lambda: lake.metadata.finish_merge(merge, [], fragments))[0] == "TRANSACTION_CONFLICT"


def test_threads_all_land(lake: IcebergConnector, table: TableHandle) -> None:
    errors: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for i in range(5):
                append(lake, table, (n * 10 + i, "x"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert sorted(r["id"] for r in stored(lake, table)) == sorted(n * 10 + i for n in range(8) for i in range(5))
    history = lake.metadata.history(table)
    assert [h.version for h in history] == list(range(1, 42))


def _append_in_process(warehouse: str, table: TableHandle, start: int) -> None:
    lake = open_catalog(Path(warehouse))
    for i in range(5):
        append(lake, table, (start + i, "p"), txn=(f"p{start}", i))


def test_processes_all_land(lake: IcebergConnector, table: TableHandle, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        pool.starmap(_append_in_process, [(str(tmp_path / "w"), table, n * 100) for n in range(3)])
    assert sorted(r["id"] for r in stored(lake, table)) == [n * 100 + i for n in range(3) for i in range(5)]
    assert [lake.metadata.recorded_txn(table, f"p{n * 100}") for n in range(3)] == [4, 4, 4]
    times = [h.timestamp_ms for h in lake.metadata.history(table)]
    assert times == sorted(set(times))


def test_many_commits_keep_few_manifests(lake: IcebergConnector, table: TableHandle, tmp_path: Path) -> None:
    for n in range(100):
        append(lake, table, (n, "x"))
    iceberg = with_pyiceberg(lake, table)
    snapshot = iceberg.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(iceberg.io)) <= 32
    splits = open_catalog(tmp_path / "w").metadata.get_splits(table)
    assert [f.commit for f in splits.files] == list(range(2, 102))
    assert len(list(Path(table.location, "metadata").glob("*.metadata.json"))) <= 21


# -- versions ----------------------------------------------------------------------------------------------


def test_history_has_strictly_increasing_times(
    lake: IcebergConnector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(lake, table, (1, "a"))
    before = lake.metadata.history(table)[-1].timestamp_ms
    with monkeypatch.context() as clock:
        clock.setattr("trinity.storage.commits.time.time", lambda: 1.0)  # a clock that went back
        append(lake, table, (2, "b"))
    set_properties(lake, table, {"bucket": "4"})
    history = lake.metadata.history(table)
    assert [(h.version, h.operation) for h in history] == [(1, "create"), (2, "append"), (3, "append"), (4, "alter")]
    assert history[2].timestamp_ms == before + 1
    assert all(a.timestamp_ms < b.timestamp_ms for a, b in itertools.pairwise(history))


def test_time_travel_shows_the_columns_of_the_time(lake: IcebergConnector, table: TableHandle) -> None:
    old = append(lake, table, (1, "a")).version
    add_column(lake, table, Column("extra", "array<tinyint>", comment="more"))
    new = append(lake, table, (2, "b", [7], None)).version
    before = lake.metadata.get_splits(dataclasses.replace(table, version=old))
    now = lake.metadata.get_splits(table)
    assert [c.name for c in before.definition.columns] == ["id", "v", "_trinity_row_kind"]
    assert [c.name for c in now.definition.columns] == ["id", "v", "extra", "_trinity_row_kind"]
    assert now.definition.column("extra") == Column("extra", "array<tinyint>", comment="more", field_id=4)
    assert (before.version, now.version) == (old, new)
    assert before.storage.names == [c.name for c in before.definition.columns]
    assert [f.commit for f in before.files] == [old]
    assert [r["extra"] for r in stored(lake, table)] == [None, [7]]
    assert [r["v"] for r in with_pyiceberg(lake, table).scan().to_arrow().sort_by("id").to_pylist()] == ["a", "b"]
    assert code_of(lambda: add_column(lake, table, Column("EXTRA", "int")))[0] == "COLUMN_ALREADY_EXISTS"
    assert lake.metadata.get_splits(dataclasses.replace(table, version=1)).files == ()


def test_properties_are_added(lake: IcebergConnector, table: TableHandle) -> None:
    set_properties(lake, table, {"bucket": "8", "write.x": "y"})
    assert lake.metadata.get_splits(table).definition.properties == {
        "watermark-key": "v",
        "bucket": "8",
        "write.x": "y",
    }
    assert with_pyiceberg(lake, table).properties["write.x"] == "y"


def test_concurrent_alters_lose_nothing(lake: IcebergConnector, table: TableHandle, tmp_path: Path) -> None:
    others = [open_catalog(tmp_path / "w") for _ in range(4)]
    threads = []
    for n, other in enumerate(others):
        threads.append(threading.Thread(target=set_properties, args=(other, table, {f"p{n}": str(n)})))
        threads.append(threading.Thread(target=add_column, args=(other, table, Column(f"n{n}", "int"))))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    definition = lake.metadata.get_splits(table).definition
    assert {f"p{n}" for n in range(4)} <= set(definition.properties)
    assert {f"n{n}" for n in range(4)} <= {c.name for c in definition.visible}
    assert definition.columns[-1].hidden


# -- compaction and care -----------------------------------------------------------------------------------


def test_compaction_keeps_commit_numbers_and_later_appends(
    lake: IcebergConnector, table: TableHandle, tmp_path: Path
) -> None:
    append(lake, table, (1, "a"))
    folded = append(lake, table, (2, "b")).version
    finish = compact(lake, table, [{"id": 1, "v": "a"}], [{"id": 2, "v": "b"}])
    later = append(lake, table, (3, "c")).version
    done = finish()
    for opened in (lake, open_catalog(tmp_path / "w")):
        splits = opened.metadata.get_splits(table)
        assert [(f.tier, f.commit, f.bucket) for f in splits.files] == [
            (Tier.BASE, folded, Bucket(0, 1)),
            (Tier.LOG, later, None),
        ]
        assert [(f.tier, f.commit, f.rows) for f in splits.sidecar] == [(Tier.SIDECAR, folded, 1)]
        assert splits.version == done.version > later
    before = lake.metadata.get_splits(dataclasses.replace(table, version=later))
    assert [f.tier for f in before.files] == [Tier.LOG] * 3
    assert before.sidecar == ()
    assert lake.metadata.history(table)[-1].operation == "compact"
    entries = with_pyiceberg(lake, table).inspect.entries().to_pylist()
    live = {e["data_file"]["file_path"].rsplit("/", 1)[-1]: e["sequence_number"] for e in entries if e["status"] != 2}
    assert live == {f.name: f.commit for f in lake.metadata.get_splits(table).files}
    assert sorted(r["id"] for r in with_pyiceberg(lake, table).scan().to_arrow().to_pylist()) == [1, 3]


def test_second_compaction_of_a_file_conflicts(lake: IcebergConnector, table: TableHandle) -> None:
    append(lake, table, (1, "a"))
    one, two = (compact(lake, table, [{"id": 1, "v": "a"}], []) for _ in range(2))
    one()
    code, message = code_of(two)
    assert code == "TRANSACTION_CONFLICT"
    assert ".parquet" in message
    assert len(stored(lake, table)) == 1


def test_sidecar_stays_unless_replaced(lake: IcebergConnector, table: TableHandle) -> None:
    append(lake, table, (1, "a"))
    compact(lake, table, [], [{"id": 1, "v": "a"}])()
    kept = lake.metadata.get_splits(table).sidecar
    for n in (2, 3):
        append(lake, table, (n, "b"))
    splits = lake.metadata.get_splits(table)
    assert splits.sidecar == kept
    log = [f for f in splits.files if f.tier is Tier.LOG]
    rewrite = lake.metadata.begin_rewrite(table, log)
    fragments = write(lake, rewrite.target, [{"id": 2}, {"id": 3}], SinkId(0, Tier.LOG, None, log[-1].commit))
    lake.metadata.finish_rewrite(rewrite, fragments, replace_sidecar=False)
    splits = lake.metadata.get_splits(table)
    assert splits.sidecar == kept
    assert [(f.tier, f.commit, f.rows) for f in splits.files] == [(Tier.LOG, log[-1].commit, 2)]
    compact(lake, table, [{"id": 2}], [])()
    assert lake.metadata.get_splits(table).sidecar == ()


def test_vacuum_forgets_and_deletes(lake: IcebergConnector, table: TableHandle, tmp_path: Path) -> None:
    append(lake, table, (1, "a"))
    old = append(lake, table, (2, "b")).version
    replaced = lake.metadata.get_splits(table).files
    compact(lake, table, [{"id": 1}], [{"id": 2}])()
    orphan = Path(table.location, "data", "orphan.parquet")
    orphan.write_bytes(b"x")
    nothing = lake.metadata.vacuum(table, 1000)
    assert (nothing.files, nothing.oldest_version) == (0, 1)
    assert all(Path(f.path).exists() for f in replaced)
    done = lake.metadata.vacuum(table, int(time.time() * 1000) + 10_000)
    current = lake.metadata.get_splits(table)
    assert (done.files, done.oldest_version) == (3, current.version)
    assert done.bytes == 1 + sum(f.size for f in replaced)
    assert not orphan.exists()
    assert not any(Path(f.path).exists() for f in replaced)
    assert all(Path(f.path).exists() for f in (*current.files, *current.sidecar))
    for version in (old, 99):
        code, message = code_of(
            lambda v=version: open_catalog(tmp_path / "w").metadata.get_splits(dataclasses.replace(table, version=v))
        )
        assert code == "INVALID_ARGUMENTS"
        assert str(current.version) in message
    assert [h.version for h in lake.metadata.history(table)] == [current.version]


def test_vacuum_deletes_old_metadata_only(lake: IcebergConnector, table: TableHandle) -> None:
    for n in range(3):
        append(lake, table, (n, "x"))
    metadata = Path(table.location, "metadata")
    for path in metadata.iterdir():
        os.utime(path, (1, 1))
    before = set(metadata.glob("snap-*"))
    lake.metadata.vacuum(table, int(time.time() * 1000))
    assert len(before) == 4
    assert len(set(metadata.glob("snap-*"))) == 1
    assert len(stored(open_catalog(Path(table.location).parents[1]), table)) == 3


# -- other writers of the same table -----------------------------------------------------------------------


def test_commits_of_others_are_log_and_drop_nothing(lake: IcebergConnector, table: TableHandle) -> None:
    append(lake, table, (1, "a"), txn=("app", 1))
    compact(lake, table, [{"id": 1, "v": "a"}], [{"id": 9}])()
    iceberg = with_pyiceberg(lake, table)
    iceberg.append(pa.table({"id": [2], "v": ["b"]}, schema=iceberg.schema().select("id", "v").as_arrow()))
    splits = lake.metadata.get_splits(table)
    assert [f.tier for f in splits.files] == [Tier.BASE, Tier.LOG]
    assert len(splits.sidecar) == 1
    lake.metadata.vacuum(table, int(time.time() * 1000) + 10_000)
    assert [f.tier for f in lake.metadata.get_splits(table).files] == [Tier.BASE, Tier.LOG]
    assert len(lake.metadata.get_splits(table).sidecar) == 1
    assert append(lake, table, (1, "a"), txn=("app", 1)).skipped
    assert sorted(r["id"] for r in stored(lake, table)) == [1, 2]


def test_a_table_without_any_snapshot_is_version_0(lake: IcebergConnector) -> None:
    lake._iceberg.create_table(("default", "foreign"), pa.schema([("a", pa.int64()), ("b", pa.string())]))
    handle = lake.metadata.get_table("default", "foreign")
    assert handle is not None
    splits = lake.metadata.get_splits(handle)
    assert (splits.version, splits.files, splits.definition.primary_key) == (0, (), ())
    assert [c.type for c in splits.definition.columns] == ["bigint", "string"]
    assert [h.version for h in lake.metadata.history(handle)] == [0]
    append(lake, handle, (1, "x"))
    assert stored(lake, handle) == [{"a": 1, "b": "x"}]


# -- bad luck ----------------------------------------------------------------------------------------------


def test_dropped_tables_are_not_found(lake: IcebergConnector, table: TableHandle) -> None:
    insert = lake.metadata.begin_insert(table)
    fragments = write(lake, insert.target, [{"id": 1}], SinkId())
    lake.metadata.drop_table(table)
    assert not os.path.exists(table.location)
    assert lake.metadata.get_table("default", "t") is None
    calls = [
        lambda: lake.metadata.get_splits(table),
        lambda: lake.metadata.drop_table(table),
        lambda: lake.metadata.history(table),
        lambda: lake.metadata.begin_insert(table),
        lambda: lake.metadata.finish_insert(insert, fragments),
    ]
    assert [code_of(c)[0] for c in calls] == ["TABLE_NOT_FOUND"] * 5
    lake.metadata.create_table(KEYED)
    assert code_of(lambda: lake.metadata.finish_insert(insert, fragments))[0] == "TRANSACTION_CONFLICT"
    assert stored(lake, table) == []


@pytest.mark.parametrize("damage", ["delete", "garbage", "truncate"])
@pytest.mark.parametrize("pattern", ["metadata/m-*.avro", "metadata/snap-*.avro", "metadata/*.json", "_trinity/*.json"])
def test_damaged_metadata_is_named(
    lake: IcebergConnector, table: TableHandle, tmp_path: Path, damage: str, pattern: str
) -> None:
    append(lake, table, (1, "a"))
    compact(lake, table, [{"id": 1}], [{"id": 2}])()
    paths = list(Path(table.location).glob(pattern))
    for path in paths:
        if damage == "delete":
            path.unlink()
        else:
            path.write_bytes(b"\x00not this" if damage == "garbage" else path.read_bytes()[:-20])
    code, message = code_of(lambda: open_catalog(tmp_path / "w").metadata.get_splits(table))
    assert code == "BAD_DATA"
    assert any(str(p) in message for p in paths)


def test_a_lost_race_leaves_no_files(
    lake: IcebergConnector, table: TableHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_catalog(tmp_path / "w")
    real = lake._iceberg.commit_table
    raced: list[Any] = []

    def lose_once(*args: Any) -> Any:
        if not raced:
            raced.append(append(other, table, (7, "other")))
        return real(*args)

    insert = lake.metadata.begin_insert(table)
    fragments = write(lake, insert.target, [{"id": 1}], SinkId())
    monkeypatch.setattr(lake._iceberg, "commit_table", lose_once)
    monkeypatch.setattr("trinity.storage.commits._FifoLock.held", lambda self: _unlocked())
    assert lake.metadata.finish_insert(insert, fragments).version == raced[0].version + 1
    assert len(list(Path(table.location, "metadata").glob("snap-*.avro"))) == 3  # create, the other's, ours
    assert [r["id"] for r in stored(lake, table)] == [7, 1]


def test_commits_are_retried_for_as_long_as_the_table_says(
    lake: IcebergConnector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_properties(lake, table, {"commit.retry.timeout": "0 seconds"})
    before = stored(lake, table)

    def lost(*_: Any) -> Any:
        raise CommitFailedException("another writer was first")

    insert = lake.metadata.begin_insert(table)
    fragments = write(lake, insert.target, [{"id": 1}], SinkId())
    with monkeypatch.context() as patch:
        patch.setattr(lake._iceberg, "commit_table", lost)
        for commit in (
            lambda: lake.metadata.finish_insert(insert, fragments),
            lambda: set_properties(lake, table, {"bucket": "4"}),
        ):
            code, message = code_of(commit)
            assert (code, "for 0 s" in message) == ("TRANSACTION_CONFLICT", True)
    assert stored(lake, table) == before
    assert lake.metadata.finish_insert(insert, fragments).rows == 1


class _unlocked:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_configuration(tmp_path: Path) -> None:
    def create(**options: Any) -> IcebergConnector:
        return IcebergFormat().create("lake", options, ConnectorContext(lambda: None))  # type: ignore[arg-type, return-value]

    assert "warehouse" in code_of(create)[1]
    code, message = code_of(lambda: create(warehouse=str(tmp_path), type="nonsense"))
    assert code == "CONFIGURATION_INVALID"
    assert "nonsense" in message
    (tmp_path / "file").write_text("")
    assert code_of(lambda: create(warehouse=str(tmp_path / "file")))[0] == "FILESYSTEM_ERROR"
    named = create(warehouse=f"file://{tmp_path}/a b", **{"catalog-name": "other"})
    settings = named.spark_catalog_settings("other")
    assert settings["spark.sql.catalog.other.uri"] == f"jdbc:sqlite:{tmp_path}/a b/catalog.db"
    assert code_of(lambda: named.spark_catalog_settings("lake"))[0] == "INVALID_ARGUMENTS"
    append(named, named.metadata.create_table(KEYED), (1, "x"))
    named.close()


# -- Spark's own Iceberg runtime ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A Spark with Iceberg's runtime: the one that runs already, or our own."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    needs = IcebergFormat().spark
    cached = [
        Path.home() / ".ivy2.5.2" / "jars" / f"{g}_{a}-{v}.jar" for g, a, v in (p.split(":") for p in needs.packages)
    ]
    builder = SparkSession.builder.master("local[2]").config(
        map={
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            **needs.settings,
        }
    )
    if all(p.exists() for p in cached):
        builder = builder.config("spark.jars", ",".join(map(str, cached)))
    else:
        builder = builder.config("spark.jars.packages", ",".join(needs.packages))
    started = builder.getOrCreate()
    yield started
    if running is None:
        started.stop()


@pytest.fixture
def shared(spark: Any, tmp_path: Path) -> IcebergConnector:
    """A catalog that Spark has opened too, under a name of its own because Spark keeps catalogs for ever."""
    name = f"lake_{uuid.uuid4().hex[:8]}"
    lake = open_catalog(tmp_path / "w", name)
    for key, value in lake.spark_catalog_settings(name).items():
        spark.conf.set(key, value)
    return lake


def test_spark_reads_what_trinity_writes(spark: Any, shared: IcebergConnector) -> None:
    kinds = {t: v for t, v in TYPES.items() if t != "time"}  # Iceberg's Spark runtime has no TIME
    columns = tuple(Column(f"c{i}", t) for i, t in enumerate(kinds))
    handle = shared.metadata.create_table(TableDefinition("default", "all_types", columns, ("c4",)))
    append(shared, handle, tuple(kinds.values()))
    add_column(shared, handle, Column("more", "string"))
    append(shared, handle, (*(v if t == "bigint" else None for t, v in kinds.items()), "m"))
    name = f"{handle.catalog}.default.all_types"
    rows = spark.table(name).orderBy("more").toArrow().to_pylist()
    expected = {f"c{i}": dict(v) if t.startswith("map") else v for i, (t, v) in enumerate(kinds.items())}
    rows[0]["c17"] = dict(rows[0]["c17"])
    assert rows[0] == {**expected, "more": None}
    assert rows[1]["more"] == "m"
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE c4 = {2**62} AND c9 = 'grüße'").first()[0] == 1
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE c4 = 3").first()[0] == 0


def test_spark_sees_every_version_and_only_live_rows(spark: Any, shared: IcebergConnector) -> None:
    handle = shared.metadata.create_table(KEYED)
    name = f"{handle.catalog}.default.t"
    assert spark.table(name).count() == 0
    for n in range(40):  # enough for merged manifests
        append(shared, handle, (n, "x"))
    snapshot = shared.metadata.history(handle)[-1].details["snapshot_id"]
    folded = shared.metadata.get_splits(handle).version
    compact(shared, handle, [{"id": n, "v": "x"} for n in range(30)], [{"id": n} for n in range(30, 40)])()
    append(shared, handle, (100, "late"))
    assert sorted(r.id for r in spark.table(name).collect()) == [*range(30), 100]
    assert spark.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot}").count() == 40
    live = spark.table(f"{name}.entries").where("status < 2").select("sequence_number", "data_file.record_count")
    assert sorted(map(tuple, live.collect())) == [(folded, 30), (folded + 2, 1)]
    operations = [r.operation for r in spark.sql(f"SELECT operation FROM {name}.snapshots").collect()]
    assert operations == ["append"] * 41 + ["replace", "append"]


def test_trinity_reads_what_spark_changes(spark: Any, shared: IcebergConnector) -> None:
    handle = shared.metadata.create_table(KEYED)
    name = f"{handle.catalog}.default.t"
    append(shared, handle, (1, "a"), (2, "b"), txn=("app", 3))
    spark.sql(f"INSERT INTO {name} VALUES (3, 'spark', NULL)")
    spark.sql(f"MERGE INTO {name} t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged'")
    assert sorted((r["id"], r["v"]) for r in stored(shared, handle)) == [(1, "a"), (2, "merged"), (3, "spark")]
    spark.sql(f"ALTER TABLE {name} ADD COLUMN added int")
    definition = shared.metadata.get_splits(handle).definition
    assert [c.name for c in definition.columns] == ["id", "v", "added", "_trinity_row_kind"]
    append(shared, handle, (4, "d", 5, None))
    assert append(shared, handle, (9, "again"), txn=("app", 3)).skipped
    compact(shared, handle, [{"id": 1, "v": "a"}], [])()  # replaces files of both writers
    assert [(r["id"], r["v"]) for r in stored(shared, handle)] == [(1, "a")]
    assert [tuple(r) for r in spark.sql(f"SELECT id, v FROM {name}").collect()] == [(1, "a")]
    system = f"CALL {handle.catalog}.system"
    spark.sql(f"{system}.rewrite_data_files(table => 'default.t', options => map('rewrite-all', 'true'))")
    spark.sql(f"{system}.rewrite_manifests('default.t')")
    assert [(r["id"], r["v"]) for r in stored(shared, handle)] == [(1, "a")]


def test_spark_and_trinity_commit_at_once(spark: Any, shared: IcebergConnector) -> None:
    handle = shared.metadata.create_table(KEYED)
    name = f"{handle.catalog}.default.t"
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for n in range(15):
                append(shared, handle, (n, "trinity"))
                time.sleep(0.05)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    for n in range(100, 105):
        spark.sql(f"INSERT INTO {name} VALUES ({n}, 'spark', NULL)")
    thread.join()
    assert not errors
    assert sorted(r["id"] for r in stored(shared, handle)) == [*range(15), *range(100, 105)]
    assert spark.table(name).count() == 20


def test_delete_files_of_others_are_refused_by_name(spark: Any, shared: IcebergConnector) -> None:
    handle = shared.metadata.create_table(KEYED)
    name = f"{handle.catalog}.default.t"
    append(shared, handle, (7, "older file"))
    append(shared, handle, (1, "a"), (2, "b"))
    before = dataclasses.replace(handle, version=shared.metadata.get_splits(handle).version)
    begun = shared.metadata.begin_insert(handle)
    fragments = write(shared, begun.target, [{"id": 9}], SinkId())
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    assert sorted(r.id for r in spark.table(name).collect()) == [2, 7]
    metadata = shared.metadata
    for call in (
        lambda: metadata.get_splits(handle),
        lambda: metadata.begin_insert(handle),
        lambda: metadata.begin_merge(handle, {}),
        lambda: metadata.begin_rewrite(handle, ()),
        lambda: metadata.finish_insert(begun, fragments),
        lambda: metadata.truncate(handle),
        lambda: set_properties(shared, handle, {"bucket": "4"}),
    ):
        code, message = code_of(call)
        assert code == "NOT_SUPPORTED"
        assert handle.full_name in message
        assert "rewrite_data_files" in message
    assert metadata.get_splits(before).version == before.version
    spark.sql(
        f"CALL {handle.catalog}.system.rewrite_data_files(table => 'default.t', "
        "options => map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true'))"
    )
    assert sorted(r["id"] for r in stored(shared, handle)) == [2, 7]
    append(shared, handle, (3, "c"))
    assert sorted(r["id"] for r in stored(shared, handle)) == [2, 3, 7]
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    assert len(stored(shared, handle)) == 3
    code, message = code_of(lambda: append(shared, handle, (4, "d")))
    assert code == "NOT_SUPPORTED"
    assert "format version 3" in message


# -- what Trinity carries, and other engines' expiry --------------------------------------------------------


def append_by_others(lake: IcebergConnector, table: TableHandle, key: int) -> None:
    rows = [{"id": key, "v": "other", "_trinity_row_kind": None}]
    iceberg = with_pyiceberg(lake, table)
    iceberg.append(pa.Table.from_pylist(rows, schema=iceberg.schema().as_arrow()))


def expire_by_others(lake: IcebergConnector, table: TableHandle) -> None:
    """All snapshots but the present one."""
    iceberg = with_pyiceberg(lake, table)
    old = [s.snapshot_id for s in iceberg.snapshots() if s.snapshot_id != iceberg.metadata.current_snapshot_id]
    iceberg.maintenance.expire_snapshots().by_ids(old).commit()
    assert len(with_pyiceberg(lake, table).snapshots()) == 1


def carrying(lake: IcebergConnector, table: TableHandle) -> None:
    append(lake, table, (1, "a"), (2, "b"), txn=("app", 5))
    compact(lake, table, [{"id": 1, "v": "a"}], [{"id": 2, "v": "b"}])()


def test_expiry_by_others_forgets_nothing(lake: IcebergConnector, table: TableHandle) -> None:
    carrying(lake, table)
    append_by_others(lake, table, 3)
    expire_by_others(lake, table)
    splits = lake.metadata.get_splits(table)
    assert [f.tier for f in splits.files] == [Tier.BASE, Tier.LOG]
    assert [f.rows for f in splits.sidecar] == [1]
    assert append(lake, table, (1, "a"), txn=("app", 5)).skipped
    assert not append(lake, table, (1, "a"), txn=("app", 6)).skipped
    assert lake.metadata.recorded_txn(table, "app") == 6
    assert len(lake.metadata.get_splits(table).sidecar) == 1


def test_what_is_lost_is_not_guessed(lake: IcebergConnector, table: TableHandle, tmp_path: Path) -> None:
    carrying(lake, table)
    append_by_others(lake, table, 3)
    before = lake.metadata.get_splits(table).version
    append(lake, table, (4, "d"))
    append_by_others(lake, table, 5)
    iceberg = with_pyiceberg(lake, table)
    kept = {iceberg.metadata.current_snapshot_id}
    kept |= {s.snapshot_id for s in iceberg.snapshots() if (s.sequence_number or 0) >= before}
    iceberg.maintenance.expire_snapshots().by_ids(
        [s.snapshot_id for s in iceberg.snapshots() if s.snapshot_id not in kept]
    ).commit()
    lake = open_catalog(tmp_path / "w")  # which remembers nothing
    assert len(lake.metadata.get_splits(table).sidecar) == 1
    # the record is of a later commit than this version
    assert code_of(lambda: lake.metadata.get_splits(dataclasses.replace(table, version=before)))[0] == "BAD_DATA"
    with with_pyiceberg(lake, table).transaction() as changes:
        changes.remove_properties("trinity.state")
    expire_by_others(lake, table)
    lake = open_catalog(tmp_path / "w")
    for call in (
        lambda: lake.metadata.get_splits(table),
        lambda: lake.metadata.recorded_txn(table, "app"),
        lambda: append(lake, table, (6, "e"), txn=("app", 6)),
    ):
        code, message = code_of(call)
        assert code == "BAD_DATA"
        assert table.location in message


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


def test_properties_of_others_stay_beside_the_record(lake: IcebergConnector, table: TableHandle) -> None:
    insert = lake.metadata.begin_insert(table)
    fragments = write(lake, insert.target, [{"id": 1}], SinkId())
    with with_pyiceberg(lake, table).transaction() as changes:
        changes.set_properties({"owner": "somebody", "write.x": "theirs"})
    lake.metadata.finish_insert(insert, fragments, ("app", 1))
    for n in range(2, 12):
        append(lake, table, (n, "x"), txn=("app", n))
    set_properties(lake, table, {"bucket": "4"})
    found = with_pyiceberg(lake, table).properties
    assert (found["owner"], found["write.x"]) == ("somebody", "theirs")
    assert json.loads(found["trinity.state"]) == {"version": "13", "trinity.txn": '{"app": 11}'}
    set_properties(lake, table, {"write.y": "ours"})
    with with_pyiceberg(lake, table).transaction() as changes:
        changes.set_properties({"write.y": "theirs"})
    add_column(lake, table, Column("extra", "int"))
    assert with_pyiceberg(lake, table).properties["write.y"] == "theirs"
    assert lake.metadata.get_splits(table).definition.properties["write.y"] == "theirs"


def test_the_metadata_names_the_sidecar_of_every_version(lake: IcebergConnector, table: TableHandle) -> None:
    def named() -> set[str]:
        return {Path(s.statistics_path).name for s in with_pyiceberg(lake, table).metadata.statistics}

    def present() -> set[str]:
        return {p.name for p in Path(table.location, "_trinity").iterdir()}

    for n in range(3):
        append(lake, table, (n, "a"))
        compact(lake, table, [], [{"id": n, "v": "a"}])()
    assert len(named()) == 6  # an index and a file each
    assert named() == present()
    expire_by_others(lake, table)
    append(lake, table, (4, "a"))
    compact(lake, table, [], [{"id": 4, "v": "a"}])()
    assert len(named()) == 4  # what the versions that are left need
    lake.metadata.vacuum(table, int(time.time() * 1000) + 10_000)
    assert len(named()) == 2
    assert named() <= present()
    assert len(lake.metadata.get_splits(table).sidecar) == 1
    lake.metadata.truncate(table)
    assert len(named()) == 3  # the new index, which says that there is no sidecar
    assert named() <= present()


def test_commits_are_called_what_iceberg_calls_them(lake: IcebergConnector, table: TableHandle) -> None:
    append(lake, table, (1, "a"))
    compact(lake, table, [{"id": 1, "v": "a"}], [])()
    lake.metadata.truncate(table)
    iceberg = with_pyiceberg(lake, table)
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
    assert [c.field_id for c in found.ever] == [1, 2, 5]  # what a mark stands for does not change its place


@pytest.mark.parametrize(("again", "code"), [(False, "TABLE_NOT_FOUND"), (True, "TRANSACTION_CONFLICT")])
@pytest.mark.parametrize("call", ["get_splits", "begin_insert"])
def test_a_table_that_is_dropped_while_it_is_read_is_not_damaged(
    lake: IcebergConnector, table: TableHandle, monkeypatch: pytest.MonkeyPatch, call: str, again: bool, code: str
) -> None:
    append(lake, table, (1, "a"))
    fresh = open_catalog(Path(table.location).parents[1])  # which has read none of the manifests

    def load_and_drop(*arguments: Any) -> IcebergTable:
        loaded = load(*arguments)
        monkeypatch.setattr(metadata, "load", load)
        lake.metadata.drop_table(table)
        if again:
            lake.metadata.create_table(KEYED)
        return loaded

    monkeypatch.setattr(metadata, "load", load_and_drop)
    assert code_of(lambda: getattr(fresh.metadata, call)(table))[0] == code
