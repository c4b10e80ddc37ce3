"""Other engines see stored row versions before a compaction, and exactly the live rows after it, in all tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.reader_matrix import FOLDER_READERS, KINDS, READERS, cells, folder_cells, on_page
from trinity import Column, Session

SHORT = (("parquet", "partitioned"), ("iceberg", "tombstone"))
CASES = [
    pytest.param(fmt, kind, marks=() if (fmt, kind) in SHORT else pytest.mark.full) for fmt in READERS for kind in KINDS
]


@pytest.mark.parametrize(("fmt", "kind"), CASES)
def test_the_page_says_what_readers_see(session: Session, fmt: str, kind: str) -> None:
    found = cells(session, fmt, kind)
    assert not any("wrong" in seen for seen in found.values()), found
    assert found == on_page(fmt, kind), "run python -m tests.support.reader_matrix"


@pytest.mark.parametrize("kind", [k if k == "partitioned" else pytest.param(k, marks=pytest.mark.full) for k in KINDS])
def test_readers_of_a_folder(session: Session, kind: str) -> None:
    assert folder_cells(session, kind) == dict.fromkeys(FOLDER_READERS, "live")


def test_the_folder_of_a_parquet_table_once_vacuumed(session: Session) -> None:
    columns = [Column("k", "int"), Column("w", "int")]
    table = session.create_table(
        "parquet.default.t", columns, primary_key=["k"], partition_by=(), properties={"watermark-key": "w"}
    )
    for w in (1, 2):
        table.upsert(pa.table({"k": pa.array([1, 2], pa.int32()), "w": pa.array([w, w], pa.int32())}))
    table.compact(full=True)
    assert session.spark.read.parquet(table.location).count() == 6
    table.vacuum("0 seconds")
    found = session.spark.read.parquet(table.location).select("k", "w").collect()
    assert sorted(map(tuple, found)) == [(1, 2), (2, 2)]


@pytest.mark.parametrize("fmt", [f if f == "iceberg" else pytest.param(f, marks=pytest.mark.full) for f in READERS])
def test_a_replaced_table_is_the_new_one(session: Session, fmt: str) -> None:
    """Columns of the same names have other types, and the previous partition column is gone (L13)."""
    before = session.create_table(
        f"{fmt}.default.t",
        [Column("part", "string"), Column("id", "int"), Column("v", "string")],
        primary_key=["part", "id"],
        partition_by=["part"],
    )
    before.upsert([{"part": "a", "id": 1, "v": "x"}, {"part": "b", "id": 2, "v": "y"}])
    before.delete([{"part": "b", "id": 2}])
    rows = [{"v": 1.5, "id": "one"}, {"v": None, "id": "two"}]
    table = session.create_table(f"{fmt}.default.t", rows, partition_by=["id"], replace=True)
    for state in ("replaced", "appended"):
        for reader, read in READERS[fmt].items():
            found = sorted(read(session, table).select(["v", "id"]).to_pylist(), key=str)
            assert found == sorted(rows, key=str), (state, reader)
        table.append(rows[:1])
        rows = [*rows, rows[0]]
