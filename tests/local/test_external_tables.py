"""External tables, read and written by this process without Spark."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.typedef import Record

import trinity
from tests.support.delta_shapes import SHAPES
from tests.support.iceberg_deletes import delete_by_equality, delete_by_position
from tests.support.others import FIRST, KEYED, SECOND, delta_rs_by_partition, lake, pyarrow_dataset, pyiceberg
from tests.support.refusals import refused
from tests.support.tables import as_texts
from trinity import Session, Table

WRITERS: dict[str, Callable[[Path, pa.Table], None]] = {
    "parquet": pyarrow_dataset,
    "delta": delta_rs_by_partition,
    "iceberg": pyiceberg,
}


def rows_of(table: Table, version: int | None = None) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(["id", "v", "p"], version=version).to_pylist())


@pytest.mark.parametrize("fmt", WRITERS)
def test_tables_of_others_are_read(local: Session, tmp_path: Path, fmt: str) -> None:
    folder, write = tmp_path / "theirs", WRITERS[fmt]
    write(folder, FIRST)
    table = local.register("theirs", fmt, folder, KEYED)
    before = table.splits().version
    assert rows_of(table) == [(1, "a", "x"), (2, "b", "y"), (3, "c", "x")]
    write(folder, SECOND)
    assert rows_of(table) == [(1, "a", "x"), (2, "b2", "y"), (4, "d again", "x")]
    if fmt != "parquet":
        assert rows_of(table, before) == [(1, "a", "x"), (2, "b", "y"), (3, "c", "x")]
    found = local.sql("SELECT v, p FROM theirs WHERE p = 'x' AND id > 1")
    assert (found.engine, found.collect()) == ("local", [("d again", "x")])
    assert table.to_arrow(where="id IN (2, 3)").num_rows == 1
    assert local.sql("SELECT count(*) FROM theirs").first() == (3,)
    log = table.log().to_arrow()
    assert sorted(filter(None, log["id"].to_pylist())) == [1, 1, 2, 2, 3, 3, 4, 4]
    bag = local.register("bag", fmt, folder)
    assert bag.to_arrow(where="v = 'nobody'")["p"].to_pylist() == ["x"]
    assert sorted(bag.to_arrow()["v"].to_pylist()) == sorted([*FIRST["v"].to_pylist(), *SECOND["v"].to_pylist()])


@pytest.mark.parametrize("fmt", WRITERS)
def test_row_versions_are_added_to_tables_of_others(warehouse: Path, tmp_path: Path, fmt: str) -> None:
    folder = tmp_path / "theirs"
    WRITERS[fmt](folder, FIRST)
    database = f"sqlite:///{tmp_path}/others.db"
    lake = {"connector": "iceberg", "uri": database, "warehouse": str(tmp_path), "catalog-name": "others"}
    with trinity.connect(warehouse, catalogs={"lake": lake}, engine="local") as local:
        name = "lake.ns.t" if fmt == "iceberg" else f"{fmt}.default.t"
        table = local.register(name, fmt, None if fmt == "iceberg" else folder, KEYED)
        before = table.splits().version
        table.upsert(pa.table({"id": [5, 1], "ts": [1, 11], "v": ["e", "a2"], "p": ["z w/%", "x"]}))
        assert rows_of(table) == [(1, "a2", "x"), (2, "b", "y"), (3, "c", "x"), (5, "e", "z w/%")]
        local.sql(f"INSERT INTO {name} (id, ts, v, p) VALUES (6, 1, 'f', 'y')")
        assert local.sql(f"DELETE FROM {name} WHERE id = 5").first().num_deleted_rows == 1
        table.delete([3])
        assert local.sql(f"UPDATE {name} SET v = 'updated' WHERE id = 6").first().num_updated_rows == 1
        done = local.sql(
            f"MERGE INTO {name} t USING (VALUES (1, 'merged'), (7, 'new')) s(id, v) ON t.id = s.id WHEN MATCHED THEN "
            "UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, ts, v, p) VALUES (s.id, 7, s.v, 'x')"
        ).first()
        assert (done.num_updated_rows, done.num_inserted_rows, done.num_deleted_rows) == (1, 1, 0)
        live = [(1, "merged", "x"), (2, "b", "y"), (6, "updated", "y"), (7, "new", "x")]
        assert rows_of(table) == live
        if fmt != "parquet":  # which has one version
            feed = table.changes(before, deduplication_mode="netChanges")
            assert sorted((row.id, row._change_type, row.v) for row in feed) == [
                (1, "update_postimage", "merged"),
                (1, "update_preimage", "a"),
                (3, "delete", "c"),
                (6, "insert", "updated"),
                (7, "insert", "new"),
            ]
        assert len(table.history().collect()) == (1 if fmt == "parquet" else 7)
        assert table.health().log.rows == 12
        stored = table.log().count()
        assert table.compact().rows == 7
        assert rows_of(table) == live
        assert (stored, table.log().count()) == (12, 7)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_delta_tables(local: Session, tmp_path: Path, shape: str) -> None:
    wanted = SHAPES[shape].make(tmp_path / "theirs")
    table = local.register("theirs", "delta", tmp_path / "theirs")
    if shape.endswith("partitions"):  # '' may be NULL or a text, bytes may be escaped, times lack a zone
        with refused("NOT_SUPPORTED", "partition column"):
            table.to_arrow()
        return
    assert as_texts(table.to_arrow()) == as_texts(pa.Table.from_pylist(wanted, table.to_arrow().schema))
    if SHAPES[shape].appended:
        table.append(pa.table({"id": [77]}))
        assert len(table.to_arrow()) == len(wanted) + 1


def test_old_days_of_the_julian_calendar_are_left_to_spark(local: Session, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    days = pa.table({"id": [1, 2], "day": [dt.date(1500, 1, 1), dt.date(2024, 1, 1)]})
    marked = days.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(marked.slice(1), tmp_path / "theirs" / "new.parquet")
    table = local.register("theirs", "parquet", tmp_path / "theirs")
    assert table.to_arrow()["id"].to_pylist() == [2]
    pq.write_table(days, tmp_path / "theirs" / "unmarked.parquet")
    assert table.to_arrow().num_rows == 3
    pq.write_table(marked, tmp_path / "theirs" / "old.parquet")
    with refused("NOT_SUPPORTED", "old.parquet", "'day'", "1582-10-15"):
        table.to_arrow()


@pytest.mark.parametrize(
    ("about", "days", "int96"),
    [
        ({}, True, True),
        ({"version": "2.4.8"}, False, False),
        ({"version": "3.0.1"}, True, False),
        ({"version": "3.0.1", "legacyDateTime": ""}, False, False),
        ({"version": "3.1.0"}, True, True),
        ({"version": "4.1.0", "legacyDateTime": ""}, False, True),
        ({"version": "4.1.0", "legacyINT96": ""}, True, False),
    ],
    ids=str,
)
def test_a_file_s_calendar_is_what_spark_takes_it_for(
    local: Session, tmp_path: Path, about: dict[str, str], days: bool, int96: bool
) -> None:
    """Dates and INT96 each have a version from which Spark writes them by today's calendar, and a mark."""
    day, at = dt.date(1500, 1, 1), dt.datetime(1500, 1, 1, tzinfo=dt.UTC)
    rows = pa.table({"day": [day], "in": [{"day": day}], "at": pa.array([at], pa.timestamp("us", "UTC"))})
    marked = rows.replace_schema_metadata({f"org.apache.spark.{key}": value for key, value in about.items()})
    (tmp_path / "theirs").mkdir()
    pq.write_table(marked, tmp_path / "theirs" / "old.parquet", use_deprecated_int96_timestamps=True)
    table = local.register("theirs", "parquet", tmp_path / "theirs")
    for name, readable in {"day": days, "in": days, "at": int96}.items():
        with contextlib.nullcontext() if readable else refused("NOT_SUPPORTED", "old.parquet", f"'{name}'"):
            assert table.to_arrow([name]).equals(rows.select([name]))
    assert table.splits().files[0].bounds("day") == ((day, day) if days else None)


def test_delta_rs_reads_nulls_around_what_is_not_null(local: Session, tmp_path: Path) -> None:
    inner = pa.struct(
        [pa.field("a", pa.int32(), nullable=False), ("b", pa.list_(pa.field("element", pa.int64(), False)))]
    )
    theirs = pa.schema([("id", pa.int32()), ("s", inner), ("l", pa.list_(pa.field("element", inner, nullable=False)))])
    rows = [{"id": 1, "s": {"a": 1, "b": [2]}, "l": [{"a": 3, "b": None}]}, {"id": 2, "s": None, "l": None}]
    DeltaTable.create(str(tmp_path / "theirs"), theirs)
    table = local.register("theirs", "delta", tmp_path / "theirs")
    table.append(rows)
    assert table.to_arrow().to_pylist() == DeltaTable(tmp_path / "theirs").to_pyarrow_table().to_pylist() == rows


def test_delete_files_of_iceberg(local: Session, tmp_path: Path) -> None:
    folder, rows = tmp_path / "theirs", pa.table({"id": [1, 2, 3, 4], "w": [1, 1, None, 2], "v": ["a", "b", "c", None]})
    pyiceberg(folder, rows)
    theirs = lake(folder).load_table("ns.t")
    [first] = [task.file.file_path for task in theirs.scan().plan_files()]
    with theirs.update_schema() as update:
        update.rename_column("v", "text")
    table = local.register("theirs", "iceberg", folder)

    def shown() -> list[tuple[int, str | None]]:
        return [(row["id"], row["text"]) for row in table.to_arrow().sort_by("id").to_pylist()]

    delete_by_position(theirs, {first: [0]})
    assert shown() == [(2, "b"), (3, "c"), (4, None)]
    before = table.splits().version
    theirs.append(pa.table({"id": [2, 5], "w": [9, 1], "text": ["b2", "e"]}))
    delete_by_equality(theirs, pa.table({"id": [2, 3], "w": pa.array([1, None], pa.int64())}))
    assert shown() == [(2, "b2"), (4, None), (5, "e")]
    theirs.append(pa.table({"id": [3], "w": pa.array([None], pa.int64()), "text": ["later"]}))  # is not deleted
    assert shown() == [(2, "b2"), (3, "later"), (4, None), (5, "e")]
    delete_by_equality(theirs, pa.table({"text": pa.array([None], pa.string())}))
    assert shown() == [(2, "b2"), (3, "later"), (5, "e")]
    assert table.count() == 3
    assert table.to_arrow(version=before).num_rows == 3
    keyed = local.register("keyed", "iceberg", folder, {"primary-key": "id", "watermark-key": "w"})
    assert keyed.to_arrow(["text"], where="id IN (2, 4)")["text"].to_pylist() == ["b2"]
    kinds = {(row.id, row._change_type) for row in keyed.changes(before)}
    assert {(2, "update_postimage"), (4, "delete"), (5, "insert")} <= kinds


def test_equality_deletes_of_a_partition(local: Session, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    theirs = lake(folder).create_table("ns.t", schema, location=f"file://{folder}")
    with theirs.update_spec() as update:
        update.add_identity("p")
    theirs.append(pa.table({"id": [1, 1, 2], "p": ["x", "y", "x"]}))
    delete_by_equality(theirs, pa.table({"id": [1]}), Record("x"))
    table = local.register("theirs", "iceberg", folder)
    assert sorted((row["id"], row["p"]) for row in table.to_arrow().to_pylist()) == [(1, "y"), (2, "x")]
    delete_by_equality(theirs, pa.table({"id": [1]}))  # without a partition: everywhere
    assert table.to_arrow().to_pylist() == [{"id": 2, "p": "x"}]
