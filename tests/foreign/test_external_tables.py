"""External tables, registered or found in a catalog, read and written as Trinity's own (U7)."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import trinity
from tests.support.foreign import (
    AFTER_FIRST,
    FIRST,
    KEYED,
    LIVE,
    SECOND,
    WRITERS,
    Write,
    cases,
    delta_rs,
    delta_rs_by_partition,
    equality_delete,
    hadoop_catalog,
    pyarrow_dataset,
    pyarrow_files,
    pyiceberg,
    rows_of,
    seen_by_others,
    spark_iceberg,
)
from tests.support.merge_views import check_view
from tests.support.refusals import refusal
from tests.support.threads import at_once
from trinity import Session, TrinityError


@pytest.mark.parametrize(("connector", "write"), cases(pyarrow_dataset, delta_rs, pyiceberg))
def test_the_merged_read_of_a_table_of_others(
    session: Session, tmp_path: Path, spark: SparkSession, connector: str, write: Write
) -> None:
    folder = tmp_path / "theirs"
    write(folder, FIRST)
    table = session.register("theirs", connector, folder, KEYED)
    assert rows_of(table) == AFTER_FIRST
    before = table.splits().version
    write(folder, SECOND)
    assert rows_of(table) == LIVE
    check_view(session, table)
    assert {tuple(r) for r in session.sql("SELECT id, v FROM theirs WHERE id > 1").collect()} == LIVE - {(1, "a")}
    log = table.log().collect()
    assert len(log) == 9
    assert {r.v for r in log if r.id is None} == {"nobody"}
    if connector == "parquet":
        assert {r._commit_version for r in log} == {table.splits().version}
        with pytest.raises(TrinityError, match="only readable one"):
            table.to_df(before)
    else:
        assert len({r._commit_version for r in log}) == 2
        assert rows_of(table, before) == AFTER_FIRST
        [made] = table.history().where(F.col("version") == before).select("timestamp").collect()
        past = session.sql(f"SELECT id, v FROM theirs TIMESTAMP AS OF '{made.timestamp}'").collect()
        assert {tuple(r) for r in past} == AFTER_FIRST


def test_another_session_of_sparks_may_be_the_active_one(session: Session, tmp_path: Path, spark: SparkSession) -> None:
    for number, (connector, write) in enumerate((("delta", delta_rs), ("iceberg", pyiceberg))):
        write(tmp_path / str(number), FIRST)
        session.register(f"theirs_{number}", connector, tmp_path / str(number), KEYED)
    jvm = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    jvm.setActiveSession(spark.newSession()._jsparkSession)
    try:
        assert [session.sql(f"SELECT * FROM theirs_{number}").count() for number in range(2)] == [3, 3]
    finally:
        jvm.setActiveSession(spark._jsparkSession)


# -- writes ---------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    ("connector", "write"),
    [
        pytest.param("parquet", pyarrow_files, marks=pytest.mark.full),
        pytest.param("parquet", pyarrow_dataset, marks=pytest.mark.full),
        pytest.param("delta", delta_rs_by_partition, marks=pytest.mark.full),
        ("iceberg", spark_iceberg),
    ],
    ids=lambda p: getattr(p, "__name__", p),
)
def test_row_versions_are_appended(
    session: Session, tmp_path: Path, spark: SparkSession, connector: str, write: Write
) -> None:
    folder = tmp_path / "theirs"
    write(folder, FIRST)
    table = session.register("theirs", connector, folder, KEYED)
    table.upsert(pa.table({"id": [5, 1], "ts": [1, 11], "v": ["e", "a2"], "p": ["z w/%", "x"]}))
    assert rows_of(table) == {(1, "a2"), (2, "b"), (3, "c"), (5, "e")}
    write(folder, SECOND)
    assert rows_of(table) == {(1, "a2"), (2, "b2"), (4, "d again"), (5, "e")}
    assert session.sql("DELETE FROM theirs WHERE id = 5").collect()[0].num_deleted_rows == 1
    table.delete([4])
    [done] = session.sql(
        "MERGE INTO theirs t USING (VALUES (1L, 'merged'), (6L, 'new')) s(id, v) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, ts, v, p) VALUES (s.id, 7, s.v, 'x')"
    ).collect()
    assert (done.num_updated_rows, done.num_inserted_rows, done.num_deleted_rows) == (1, 1, 0)
    session.sql("UPDATE theirs SET v = 'updated' WHERE id = 6")
    session.sql("INSERT INTO theirs (id, ts, v, p) VALUES (3, 21, 'back', 'y')")
    assert rows_of(table) == {(1, "merged"), (2, "b2"), (3, "back"), (6, "updated")}
    assert {r.p for r in session.sql("SELECT DISTINCT p FROM theirs").collect()} == {"x", "y"}
    everything = seen_by_others(folder, connector)
    assert set(everything.column_names) == set(FIRST.column_names)
    assert everything.num_rows == table.log().count() == 9 + 2 + 2 + 2 + 1 + 1
    assert "z w/%" in everything["p"].to_pylist()


# -- SQL ------------------------------------------------------------------------------------------------


def test_create_table_with_a_location(session: Session, warehouse: Path, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    pyarrow_files(folder, FIRST)
    pyarrow_files(folder, SECOND)
    options = "'watermark-key' = 'ts', 'tombstone-key' = 'deleted'"
    declared = "id BIGINT, ts BIGINT, deleted BOOLEAN, v STRING, p STRING, PRIMARY KEY (id) NOT ENFORCED"
    session.sql(f"CREATE TABLE a ({declared}) USING parquet LOCATION '{folder}' TBLPROPERTIES ({options})")
    session.sql(
        f"CREATE EXTERNAL TABLE b USING parquet LOCATION '{folder}' TBLPROPERTIES ('primary-key' = 'id', {options})"
    )
    session.sql(
        f"CREATE TABLE c WITH (external_location = '{folder}', primary_key = ARRAY['id'], watermark_key = 'ts', "
        "tombstone_key = 'deleted')",
        dialect="trino",
    )
    session.sql(f"CREATE TABLE bag USING parquet LOCATION '{folder}'")
    for name in "abc":
        assert rows_of(session.table(name)) == LIVE
    assert session.table("bag").to_df().count() == 9
    assert [r.tableName for r in session.sql("SHOW TABLES").collect()] == ["a", "b", "bag", "c"]
    [(text,)] = session.sql("SHOW CREATE TABLE a").collect()
    assert f"LOCATION '{folder}'" in text
    session.sql("DROP TABLE a")
    session.sql(text)
    with trinity.connect(warehouse) as later:
        assert rows_of(later.table("a")) == LIVE
        later.sql("DROP TABLE a")
        later.sql("DROP TABLE IF EXISTS a")
        shown = {r.col_name: r.data_type for r in later.sql("DESCRIBE EXTENDED b").collect()}
        assert (shown["Type"], shown["Provider"], shown["Location"]) == ("EXTERNAL", "parquet", str(folder))
    with pytest.raises(TrinityError) as missing:
        session.table("a")
    assert missing.value.code == "TABLE_NOT_FOUND"
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    ("code", "says", "statement"),
    [
        ("INVALID_ARGUMENTS", "is no folder", "CREATE TABLE t USING parquet LOCATION '{0}/nowhere'"),
        ("INVALID_ARGUMENTS", "no Delta table", "CREATE TABLE t USING delta LOCATION '{0}/files'"),
        ("INVALID_ARGUMENTS", "no Iceberg table", "CREATE TABLE t USING iceberg LOCATION '{0}/files'"),
        ("INVALID_ARGUMENTS", "format delta", "CREATE TABLE t USING parquet LOCATION '{0}/delta'"),
        ("INVALID_ARGUMENTS", "the files have", "CREATE TABLE t (id INT) USING parquet LOCATION '{0}/files'"),
        ("INVALID_ARGUMENTS", "no catalog of connector 'orc'", "CREATE TABLE t USING orc LOCATION '{0}/files'"),
        ("SYNTAX_ERROR", "LOCATION", "CREATE EXTERNAL TABLE t (id INT) USING parquet"),
        ("NOT_SUPPORTED", "AS SELECT", "CREATE TABLE t USING parquet LOCATION '{0}/files' AS SELECT 1 AS id"),
        ("TABLE_ALREADY_EXISTS", "taken", "CREATE TABLE taken USING parquet LOCATION '{0}/files'"),
    ],
)
def test_refused_locations(session: Session, tmp_path: Path, code: str, says: str, statement: str) -> None:
    pyarrow_files(tmp_path / "files", FIRST)
    delta_rs(tmp_path / "delta", FIRST)
    session.register("taken", "parquet", tmp_path / "files")
    with pytest.raises(TrinityError, match=says) as refused:
        session.sql(statement.format(tmp_path))
    assert refused.value.code == code
    assert session.list_tables("parquet", "default") == ["taken"]


@pytest.mark.parametrize(
    ("code", "properties"),
    [
        ("COLUMN_NOT_FOUND", {"primary-key": "nothing"}),
        ("COLUMN_NOT_FOUND", {"primary-key": "id", "watermark-key": "nothing"}),
        ("INVALID_TABLE_PROPERTY", {"primary-key": "tags"}),
        ("INVALID_TABLE_PROPERTY", {"watermark-key": "ts"}),
        ("INVALID_TABLE_PROPERTY", {"primary-key": "id", "watermark": "ts"}),
    ],
)
def test_refused_options(session: Session, tmp_path: Path, code: str, properties: dict[str, str]) -> None:
    pyarrow_files(tmp_path / "files", FIRST.append_column("tags", pa.array([["t"]] * 4)))
    with pytest.raises(TrinityError) as refused:
        session.register("t", "parquet", tmp_path / "files", properties)
    assert refused.value.code == code
    assert session.list_tables("parquet", "default") == []


# -- what Trinity leaves to others ----------------------------------------------------------------------


def test_what_external_tables_do_not_do(session: Session, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    pyarrow_files(folder, FIRST)
    table = session.register("keyed", "parquet", folder, {"primary-key": "id", "watermark-key": "ts"})
    refusal("NOT_SUPPORTED", lambda: table.delete("id = 1"), "tombstone-key")
    refusal("NOT_SUPPORTED", lambda: session.sql("UPDATE keyed SET id = 9 WHERE id = 1"), "tombstone-key")
    refusal("NOT_SUPPORTED", table.vacuum, "vacuum")
    refusal("NOT_SUPPORTED", lambda: session.sql("TRUNCATE TABLE keyed"), "TRUNCATE")
    refusal("NOT_SUPPORTED", lambda: session.sql("ALTER TABLE keyed ADD COLUMN w INT"), "columns")
    refusal("CONSTRAINT_VIOLATION", lambda: table.upsert(pa.table({"id": pa.array([None], pa.int64())})), "'id'")
    refusal("NOT_SUPPORTED", lambda: table.upsert(pa.table({"id": [1]}), txn=("app", 1)), "txn")
    refusal("INVALID_TABLE_PROPERTY", lambda: table.set_properties({"watermark-key": "v"}), "watermark-key")
    table.set_properties({"comment": "theirs"})
    assert session.table("keyed").properties == {"watermark-key": "ts", "comment": "theirs"}
    plain = session.register("plain", "parquet", folder)
    refusal("NOT_SUPPORTED", lambda: plain.delete("id = 1"), "primary-key")
    assert plain.append(pa.table({"id": [7], "v": ["g"]})).rows == 1
    assert plain.to_df().count() == 5
    refusal("SCHEMA_NOT_EMPTY", lambda: session.sql("DROP SCHEMA parquet.default"), "default")
    assert {p.name for p in folder.iterdir() if p.suffix == ".parquet"} >= {"0.parquet"}


def test_other_merge_engines_read_whole_rows(session: Session, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    rows = {"id": [1, 1, 1], "g": [1, 3, 2], "n": [10, 20, 30], "v": ["a", None, "c"]}
    pyarrow_files(folder, pa.table(rows))
    groups = {"fields.g.sequence-group": "n", "fields.n.aggregate-function": "sum", "merge-engine": "partial-update"}
    partial = session.register("partial", "parquet", folder, {"primary-key": "id", **groups})
    assert [tuple(r) for r in partial.to_df().collect()] == [(1, 3, 60, "c")]
    refusal("NOT_SUPPORTED", lambda: session.sql("UPDATE partial SET v = 'x'"), "partial-update")
    refusal("NOT_SUPPORTED", lambda: partial.upsert(pa.table({"id": [1], "g": [9]})), "sequence group")
    first = session.register("first", "parquet", folder, {"primary-key": "id", "merge-engine": "first-row"})
    assert [tuple(r) for r in first.to_df().collect()] == [(1, 1, 10, "a")]
    partial.upsert(pa.table({"id": [1], "g": [0], "n": [1], "v": ["d"]}))
    assert [tuple(r) for r in check_view(session, partial).to_pydict().values()] == [(1,), (3,), (61,), ("d",)]


def test_a_view_of_folders_with_partitions_and_names_in_another_case(session: Session, tmp_path: Path) -> None:
    rows = "id INT, n INT, day DATE, p INT, name STRING"
    written = [
        (1, 1, dt.date(2024, 1, 2), 7, "it's"),
        (1, 2, dt.date(2024, 1, 2), None, "a b"),
        (2, 3, None, 8, "\\%"),
    ]
    frame = session.spark.createDataFrame(written, rows).coalesce(1)
    frame.write.partitionBy("day", "p", "name").parquet(str(tmp_path / "theirs"))
    later = tmp_path / "theirs" / "day=2024-02-29" / "p=9" / "name=z"
    later.mkdir(parents=True)
    pq.write_table(pa.table({"ID": pa.array([2], pa.int32()), "n": pa.array([4], pa.int32())}), later / "x.parquet")
    table = session.register("theirs", "parquet", tmp_path / "theirs", {"primary-key": "id", "watermark-key": "n"})
    found = check_view(session, table).to_pylist()
    assert sorted((r["id"], r["n"], r["p"], r["name"], str(r["day"])) for r in found) == [
        (1, 2, None, "a b", "2024-01-02"),
        (2, 4, 9, "z", "2024-02-29"),
    ]


# -- features of the formats ----------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("mode", ["name", "id"])
def test_delta_deletion_vectors_and_column_mapping(session: Session, tmp_path: Path, mode: str) -> None:
    spark, name = session.spark, f"delta.`{tmp_path}/theirs`"
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, ts BIGINT, old STRING, gone INT, s STRUCT<x: INT>, p STRING) "
        f"USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}', "
        "'delta.enableDeletionVectors' = 'true', 'trinity.primary-key' = 'id', 'trinity.watermark-key' = 'ts')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 1, 'a', 0, struct(CAST(id AS INT)), 'p' FROM range(0, 6, 1, 1)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN old TO v")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    spark.sql(f"INSERT INTO {name} VALUES (2, 0, 'late', struct(0), 'p'), (3, 1, 'tie', struct(0), 'q')")
    spark.sql(f"DELETE FROM {name} WHERE id IN (1, 4) AND ts = 1")
    table = session.register("delta.default.theirs", "delta", tmp_path / "theirs")
    live = {(0, "a", 0), (2, "a", 2), (3, "tie", 0), (5, "a", 5)}
    assert {(r.id, r.v, r.s.x) for r in table.to_df().collect()} == live
    refusal("NOT_SUPPORTED", lambda: table.merge_view_sql("spark"), "deletes or column names")
    assert [(r.id, r._pos) for r in table.log().orderBy("_commit_version", "_pos").collect()][:2] == [(0, 0), (2, 2)]
    assert {(r.old, r.gone) for r in table.to_df(1).collect()} == {("a", 0)}
    table.upsert(
        pa.table({"id": [7, 0], "ts": [1, 2], "v": ["new", "a2"], "s": [{"x": 7}, {"x": 70}], "p": ["r", "p"]})
    )
    after = live - {(0, "a", 0)} | {(7, "new", 7), (0, "a2", 70)}
    assert {(r.id, r.v, r.s.x) for r in table.to_df().collect()} == after
    stored = spark.sql(f"SELECT id, v, s.x, p FROM {name} WHERE id IN (0, 7) AND ts + id > 1").collect()
    assert {tuple(r) for r in stored} == {(7, "new", 7, "r"), (0, "a2", 70, "p")}
    refusal("CONSTRAINT_VIOLATION", lambda: table.upsert(pa.table({"ts": [1]})), "'id'")


@pytest.mark.parametrize(("connector", "write"), WRITERS[:3])
def test_messages_have_the_name_that_was_asked_for(
    session: Session, tmp_path: Path, connector: str, write: Write
) -> None:
    """A folder may be registered under several names."""
    write(tmp_path / "theirs", FIRST)
    for name in ("one", "other"):
        table = session.register(name, connector, tmp_path / "theirs", {"primary-key": "id", "watermark-key": "ts"})
        assert table.definition.name == name
        refusal("NOT_SUPPORTED", partial(table.delete, [1]), rf"default\.{name}'")


def test_what_a_delta_table_computes(session: Session, tmp_path: Path) -> None:
    from delta.tables import DeltaTable as SparkDelta

    made = SparkDelta.create(session.spark).location(str(tmp_path / "theirs")).addColumn("id", "BIGINT")
    made.addColumn("double", "BIGINT", generatedAlwaysAs="id * 2").execute()
    session.spark.sql(f"INSERT INTO delta.`{tmp_path}/theirs` (id) VALUES (1)")
    table = session.register("theirs", "delta", tmp_path / "theirs", {"primary-key": "id"})
    assert table.to_df().count() == 1
    refusal("NOT_SUPPORTED", lambda: table.upsert(pa.table({"id": [2]})), "generated column")


def test_iceberg_deletes_and_renamed_columns(session: Session, tmp_path: Path) -> None:
    spark, name, folder = hadoop_catalog(tmp_path), "files.ns.theirs", tmp_path / "ns" / "theirs"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, ts BIGINT, old STRING, gone INT, day TIMESTAMP) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read', 'primary-key' = 'id', 'watermark-key' = 'ts')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 1, 'a', 0, TIMESTAMP '2024-01-01' FROM range(0, 40, 1, 1)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN old TO v")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD days(day)")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id)")
    spark.sql(f"INSERT INTO {name} VALUES (2, 0, 'late', NULL), (3, 1, 'tie', TIMESTAMP '2024-01-02')")
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 4 AND ts = 1")
    equality_delete(spark, name, folder, 6)
    table = session.register("iceberg.default.theirs", "iceberg", folder)
    assert table.definition.partition_by == ("days(day)", "bucket(4, id)")
    gone = {4, 14, 24, 34, 6}
    live = {(n, "tie" if n == 3 else "a") for n in range(40) if n not in gone}
    assert rows_of(table) == live
    refusal("NOT_SUPPORTED", lambda: table.merge_view_sql("duckdb"), "deletes or column names")
    assert {(r.old, r.gone) for r in table.to_df(1).collect()} == {("a", 0)}
    day = pa.array([None, 0], pa.timestamp("us", "UTC"))
    table.upsert(pa.table({"id": [6, 40], "ts": [1, 1], "v": ["again", "new"], "day": day}))
    assert rows_of(table) == live | {(6, "again"), (40, "new")}
    stored = hadoop_catalog(tmp_path).sql(f"SELECT id, v FROM {name} WHERE id IN (6, 40)").collect()
    assert {tuple(r) for r in stored} == {(6, "again"), (40, "new")}


# -- several writers, and what is left of a log ---------------------------------------------------------


def test_of_two_registrations_of_one_name_one_stands(session: Session, tmp_path: Path) -> None:
    folders = [tmp_path / f"theirs-{n}" for n in range(8)]
    for folder in folders:
        pyarrow_files(folder, FIRST)
    errors = at_once([partial(session.register, "one", "parquet", f) for f in folders])
    assert [getattr(e, "code", e) for e in errors] == ["TABLE_ALREADY_EXISTS"] * 7
    assert session.table("one").handle.location in map(str, folders)


def test_writers_of_one_folder_lose_nothing(session: Session, warehouse: Path, tmp_path: Path) -> None:
    pyarrow_files(tmp_path / "theirs", FIRST)
    session.register("theirs", "parquet", tmp_path / "theirs", KEYED)

    def write(writer: int) -> None:
        with trinity.connect(warehouse) as own:
            for n in range(3):
                own.table("theirs").upsert(pa.table({"id": [10 * writer + n], "ts": [n], "v": ["w"]}))

    assert at_once([partial(write, writer) for writer in range(1, 7)]) == []
    assert rows_of(session.table("theirs")) == AFTER_FIRST | {(10 * w + n, "w") for w in range(1, 7) for n in range(3)}


def test_a_delta_log_that_was_cleaned_up(session: Session, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    delta_rs(folder, FIRST)
    delta_rs(folder, SECOND)
    delta_rs(folder, pa.table({"id": [2], "ts": [20], "deleted": [False], "v": ["b tie"], "p": ["y"]}))
    DeltaTable(str(folder)).create_checkpoint()
    for version in range(2):
        (folder / "_delta_log" / f"{version:020d}.json").unlink()
    table = session.register("theirs", "delta", folder, KEYED)
    assert rows_of(table) == LIVE - {(2, "b2")} | {(2, "b tie")}
    table.upsert(pa.table({"id": [4], "ts": [1], "v": ["d tie"]}))
    assert (4, "d tie") in rows_of(table)
