"""Branches, picked snapshots and staged commits of Spark, and a table that follows theirs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.foreign import Other
from trinity import Column, Session, Table, cdc

COLUMNS = [Column("k", "int", nullable=False), Column("w", "bigint"), Column("v", "string")]


def add(table: Table, *rows: tuple[int, int, str]) -> None:
    table.upsert(pa.Table.from_pylist([dict(zip(("k", "w", "v"), row, strict=True)) for row in rows]))


@pytest.mark.full
def test_what_comes_to_main_is_the_tables(session: Session) -> None:
    table = session.create_table("iceberg.default.t", COLUMNS, primary_key=["k"], properties={"watermark-key": "w"})
    session.sql(
        "CREATE TABLE parquet.default.f (k INT PRIMARY KEY, w BIGINT, v STRING, at BIGINT, kind STRING) "
        "TBLPROPERTIES ('watermark-key' = 'at', 'rowkind.field' = 'kind')"
    )
    follower, other, live = session.table("parquet.default.f"), Other(session, table), dict[int, str]()

    def agrees() -> None:
        cdc.follow(table, follower, watermark="at")
        for seen in (table, follower):
            assert {row.k: row.v for row in seen.to_df().collect()} == live
        assert {row["k"]: row["v"] for row in table.to_arrow().to_pylist()} == live

    def theirs(branch: str, key: int, word: str, at: int = 1) -> None:
        name = other.name + (f".branch_{branch}" if branch else "")
        other.spark.sql(f"INSERT INTO {name} (k, w, v) VALUES ({key}, {at}, '{word}')").collect()

    def head(branch: str) -> Any:
        return other(f"SELECT snapshot_id FROM {{t}}.refs WHERE name = '{branch}'")[0][0]

    add(table, (1, 1, "a"), (2, 1, "b"))
    live |= {1: "a", 2: "b"}
    agrees()
    other("ALTER TABLE {t} CREATE BRANCH aside")
    theirs("aside", 3, "aside")
    agrees()
    add(table, (4, 1, "d"))
    other(f"CALL iceberg.system.cherrypick_snapshot('default.t', {head('aside')})")
    live |= {3: "aside", 4: "d"}
    agrees()
    table.compact(full=True)
    other("ALTER TABLE {t} CREATE BRANCH ahead")
    theirs("ahead", 1, "newer", 5)
    theirs("ahead", 2, "older", 0)
    other("CALL iceberg.system.fast_forward('default.t', 'main', 'ahead')")
    live |= {1: "newer"}
    agrees()
    other("ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    other.spark.conf.set("spark.wap.id", "load-1")
    theirs("", 5, "staged")
    other.spark.conf.unset("spark.wap.id")
    add(table, (6, 1, "f"))
    live |= {6: "f"}
    agrees()
    other("CALL iceberg.system.publish_changes('default.t', 'load-1')")
    live |= {5: "staged"}
    agrees()
    for spark in (other.spark, session.spark):  # with it, Spark's own reads and writes use another branch
        spark.conf.set("spark.wap.branch", "audited")
    try:
        theirs("", 7, "audited")
        agrees()
        add(table, (8, 1, "h"))
        live |= {8: "h"}
        agrees()
    finally:
        for spark in (other.spark, session.spark):
            spark.conf.unset("spark.wap.branch")
    agrees()


@pytest.mark.full
def test_a_table_of_others_is_read_by_main(session: Session) -> None:
    """``spark.wap.branch`` is ignored by the reads of this process and of Spark."""
    add_branch = session.create_table("iceberg.default.made_first", COLUMNS)  # there is a catalog from now on
    other = Other(session, add_branch)
    other.spark.sql("CREATE TABLE iceberg.default.theirs (k INT, v STRING) USING iceberg").collect()
    theirs = session.table("iceberg.default.theirs")
    other = Other(session, theirs)
    other(
        "INSERT INTO {t} VALUES (1, 'a')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')",
        "ALTER TABLE {t} CREATE BRANCH audited",
        "INSERT INTO iceberg.default.theirs.branch_audited VALUES (2, 'b')",
    )
    session.spark.conf.set("spark.wap.branch", "audited")
    try:
        assert [tuple(row) for row in theirs.to_df().collect()] == [(1, "a")]
        assert theirs.to_arrow()["k"].to_pylist() == [1]
    finally:
        session.spark.conf.unset("spark.wap.branch")
