"""Files of a Hive folder that Spark adds to an Iceberg table of Trinity without rewriting them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.iceberg import iceberg_spark
from tests.support.refusals import refusal
from trinity import Column, Session


@pytest.mark.full
def test_add_files_of_spark(session: Session, tmp_path: Path) -> None:
    columns = [Column("k", "int", nullable=False), Column("p", "string")]
    table = session.create_table("iceberg.default.parts", columns, primary_key=["k", "p"], partition_by=["p"])
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "p": ["x"]}))
    (tmp_path / "hive" / "p=y").mkdir(parents=True)
    pq.write_table(pa.table({"k": pa.array([2], pa.int32())}), tmp_path / "hive" / "p=y" / "1.parquet")
    spark = iceberg_spark(session)
    spark.sql(f"CALL iceberg.system.add_files(table => 'default.parts', source_table => '`parquet`.`{tmp_path}/hive`')")
    for call in (table.to_arrow, table.to_df, lambda: table.compact(full=True)):
        refusal("NOT_SUPPORTED", call, r"1\.parquet.*column 'p'.*rewrite_data_files")
    spark.sql("CALL iceberg.system.rewrite_data_files(table => 'default.parts', options => map('rewrite-all', 'true'))")
    table.compact(full=True)
    assert sorted((r["k"], r["p"]) for r in table.to_arrow().to_pylist()) == [(1, "x"), (2, "y")]
