"""Compaction of external tables: only on request; one row version of each key stays (K6, L3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support.foreign import (
    AFTER_FIRST,
    FIRST,
    KEYED,
    LIVE,
    SECOND,
    Write,
    cases,
    delta_rs,
    equality_delete,
    hadoop_catalog,
    pyarrow_dataset,
    pyarrow_files,
    rows_of,
    seen_by_others,
    spark_iceberg,
)
from tests.support.refusals import refusal
from trinity import Session, Table
from trinity.spi import CommitResult, RewriteTableHandle

LATE = pa.table({"id": [3, 2], "ts": [15, 20], "deleted": [False, False], "v": ["c late", "b tie"], "p": ["x", "y"]})
"""One row older than its key's tombstone, and one as new as the stored version of its key."""
AFTER_LATE = LIVE - {(2, "b2")} | {(2, "b tie")}


# a federated table is compacted under its name in its catalog
OTHERS = (("delta", delta_rs), ("iceberg", spark_iceberg))
LOCATED = [c for c in cases(pyarrow_dataset, spark_iceberg) if c.id != "pyiceberg"]


@pytest.mark.parametrize(("connector", "write"), LOCATED)
def test_one_version_of_each_key_stays(
    session: Session, tmp_path: Path, spark: SparkSession, connector: str, write: Write
) -> None:
    folder = tmp_path / "theirs"
    write(folder, FIRST)
    table = session.register("theirs", connector, folder, KEYED)
    before = table.splits().version
    write(folder, SECOND)
    assert table.compact().rows == 5
    assert rows_of(table) == LIVE
    assert {r.v for r in table.log().collect()} == {"a", "b2", "c2", "d again", "nobody"}
    everything = seen_by_others(folder, connector)
    assert (everything.num_rows, set(everything.column_names)) == (5, set(FIRST.column_names))
    write(folder, LATE)
    assert rows_of(table) == AFTER_LATE
    assert table.compact(full=True).rows == 5
    assert rows_of(table) == AFTER_LATE
    if connector != "parquet":
        assert rows_of(table, before) == AFTER_FIRST


def during_the_commit(
    table: Table, monkeypatch: pytest.MonkeyPatch, write: Write, folder: Path, rows: pa.Table = LATE
) -> None:
    """Commit by another engine between a compaction's read and its commit."""
    metadata = table.connector.metadata
    finish = metadata.finish_rewrite

    def later(rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool) -> CommitResult:
        write(folder, rows)
        return finish(rewrite, fragments, replace_sidecar=replace_sidecar)

    monkeypatch.setattr(metadata, "finish_rewrite", later)


@pytest.mark.parametrize(
    ("connector", "write"),
    [("parquet", pyarrow_files), *(pytest.param(*case, marks=pytest.mark.full) for case in OTHERS)],
    ids=lambda p: getattr(p, "__name__", p),
)
def test_rows_that_come_meanwhile_are_later(
    session: Session,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    connector: str,
    write: Write,
) -> None:
    folder = tmp_path / "theirs"
    write(folder, FIRST)
    write(folder, SECOND)
    table = session.register("theirs", connector, folder, KEYED)
    during_the_commit(table, monkeypatch, write, folder)
    table.compact()
    assert rows_of(table) == AFTER_LATE
    assert table.log().count() == 7


@pytest.mark.full
def test_delta_deletion_vectors_go_with_their_files(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, name = session.spark, f"delta.`{tmp_path}/theirs`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, ts BIGINT, old STRING, s STRUCT<x: INT>, p STRING) USING delta "
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = "
        "'true', 'trinity.primary-key' = 'id', 'trinity.watermark-key' = 'ts')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 1, 'a', struct(CAST(id AS INT)), 'p' FROM range(0, 6, 1, 1)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN old TO v")
    spark.sql(f"INSERT INTO {name} VALUES (2, 0, 'late', struct(0), 'p'), (3, 1, 'tie', struct(0), 'q')")
    spark.sql(f"DELETE FROM {name} WHERE id IN (1, 4)")
    table = session.register("delta.default.theirs", "delta", tmp_path / "theirs")
    live = {(0, "a", 0, "p"), (2, "a", 2, "p"), (3, "tie", 0, "q"), (5, "a", 5, "p")}

    def delete(_: Path, rows: pa.Table) -> None:
        spark.sql(f"DELETE FROM {name} WHERE id = 5")

    with monkeypatch.context() as patched:
        during_the_commit(table, patched, delete, tmp_path)
        refusal("TRANSACTION_CONFLICT", table.compact, "had rows deleted, or was removed meanwhile")
    live -= {(5, "a", 5, "p")}
    assert {(r.id, r.v, r.s.x, r.p) for r in table.to_df().collect()} == live
    assert table.compact().rows == 3
    assert {(r.id, r.v, r.s.x, r.p) for r in table.to_df().collect()} == live
    assert {(r.id, r.v, r.s.x, r.p) for r in spark.sql(f"SELECT * FROM {name}").collect()} == live
    assert spark.sql(f"SELECT * FROM {name} VERSION AS OF 1").count() == 6
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    refusal("NOT_SUPPORTED", table.compact, "appendOnly")


@pytest.mark.full
def test_iceberg_deletes_go_with_their_files(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark, name, folder = hadoop_catalog(tmp_path), "files.ns.theirs", tmp_path / "ns" / "theirs"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, ts BIGINT, old STRING) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'primary-key' = 'id', "
        "'watermark-key' = 'ts')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 1, 'a' FROM range(0, 20, 1, 1)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN old TO v")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id)")
    spark.sql(f"INSERT INTO {name} VALUES (2, 0, 'late'), (3, 1, 'tie'), (NULL, 1, 'nobody')")
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 4")
    equality_delete(spark, name, folder, 6)
    table = session.register("iceberg.default.theirs", "iceberg", folder)
    live = {(n, "tie" if n == 3 else "a") for n in range(20) if n not in (4, 14, 6)}

    def delete(_: Path, rows: pa.Table) -> None:
        hadoop_catalog(tmp_path).sql(f"DELETE FROM {name} WHERE id = 5")

    with monkeypatch.context() as patched:
        during_the_commit(table, patched, delete, tmp_path)
        refusal("TRANSACTION_CONFLICT", table.compact, "had rows deleted, or was removed meanwhile")
    live -= {(5, "a")}
    assert rows_of(table) == live
    before = table.splits().files
    assert table.compact().rows == len(live) + 1
    assert rows_of(table) == live
    spark = hadoop_catalog(tmp_path)
    assert {tuple(r) for r in spark.sql(f"SELECT id, v FROM {name}").collect()} == live | {(None, "nobody")}
    assert spark.sql(f"SELECT * FROM {name}.delete_files").count() == 0
    assert spark.sql(f"SELECT * FROM {name}.entries WHERE status = 2").count() == len(before)
    [summary] = [r.summary for r in spark.sql(f"SELECT * FROM {name}.snapshots").collect()][-1:]
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("0", "0")


def test_tables_of_which_every_row_version_stays(session: Session, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    pyarrow_files(folder, FIRST)
    plain = session.register("plain", "parquet", folder)
    refusal("NOT_SUPPORTED", plain.compact, "has no key")
    partial = session.register("partial", "parquet", folder, {"primary-key": "id", "merge-engine": "partial-update"})
    refusal("NOT_SUPPORTED", partial.compact, "partial-update")
    kept = session.register("kept", "parquet", folder, {"primary-key": "id", "keep-versions": "true"})
    refusal("NOT_SUPPORTED", kept.compact, "keeps all row versions")
    assert [p.name for p in folder.iterdir()] == ["0.parquet"]


@pytest.mark.parametrize("feed", ["true", pytest.param("false", marks=pytest.mark.full)])
def test_a_change_data_feed_shows_no_change_where_no_row_version_goes(
    session: Session, tmp_path: Path, feed: str
) -> None:
    folder = tmp_path / "theirs"
    rows = FIRST.slice(0, 3)
    settings = {"delta.enableChangeDataFeed": feed}
    for number in range(3):
        write_deltalake(
            str(folder), rows.slice(number, 1), mode="append", configuration=settings if number == 0 else None
        )
    table = session.register("theirs", "delta", folder, KEYED)
    done = table.compact()
    assert (done.rows, len(table.splits().files)) == (3, 1)
    assert not any(change["dataChange"] for change in file_actions(folder, done.version))
    if feed == "true":
        shown = pa.table(DeltaTable(folder).load_cdf(starting_version=1))
        assert sorted(zip(shown["id"].to_pylist(), shown["_change_type"].to_pylist(), strict=True)) == [
            (2, "insert"),
            (3, "insert"),
        ]
    delta_rs(folder, SECOND.slice(1, 1))
    before = {path.name for path in folder.rglob("*.parquet")}
    if feed == "true":
        refusal("NOT_SUPPORTED", table.compact, "delta.enableChangeDataFeed")
        assert {path.name for path in folder.rglob("*.parquet")} == before
    else:
        assert all(change["dataChange"] for change in file_actions(folder, table.compact().version))
    assert rows_of(table) == {(1, "a"), (2, "b2"), (3, "c")}


def file_actions(folder: Path, version: int) -> list[dict[str, Any]]:
    """Return the actions of a commit that add and remove files."""
    lines = (folder / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    found = [body for line in lines for kind, body in json.loads(line).items() if kind in ("add", "remove")]
    assert found
    return found
