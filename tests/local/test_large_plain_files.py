"""Changes of a plain table whose files have several row groups, which are read and written in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.refusals import refused
from trinity import Column, Session, Table
from trinity.engine.reading.local.selection import ROWS_AT_ONCE
from trinity.storage import Location
from trinity.storage.merge_sinks import FILE_BYTES
from trinity.storage.parquet_sink import ROW_GROUP_ROWS

pytestmark = pytest.mark.inner

ROWS = pa.table({"k": pa.array(range(400), pa.int64()), "v": pa.array([n % 7 for n in range(400)], pa.int32())})
COLUMNS = [Column("k", "bigint"), Column("v", "int")]


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def table(request: pytest.FixtureRequest, local: Session) -> Iterator[Table]:
    """Make a table with one file of four row groups, which a rewrite splits into two files."""
    with ROW_GROUP_ROWS.set_to(100), ROWS_AT_ONCE.set_to(10):
        made = local.create_table(f"{request.param}.default.t", COLUMNS)
        made.append(ROWS)
        (file,) = made.splits().files
        with FILE_BYTES.set_to(file.size // 2 + 1):
            yield made


def read(table: Table) -> dict[int, int]:
    """Return key -> value, and check that each key is there once."""
    rows = table.to_arrow()
    found = dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))
    assert len(found) == rows.num_rows
    return found


WERE = dict(zip(ROWS["k"].to_pylist(), ROWS["v"].to_pylist(), strict=True))


def test_a_large_file_becomes_two_without_the_deleted_rows(table: Table) -> None:
    assert table.delete("v = 3").rows == 57
    assert read(table) == {k: v for k, v in WERE.items() if v != 3}
    assert sorted(f.rows for f in table.splits().files) == [171, 172]


def test_updated_rows_and_those_that_stay_are_all_there(table: Table) -> None:
    assert table.update("v = 3 OR k = 399", {"v": "k + 1000"}).updated == 58
    assert read(table) == {k: k + 1000 if v == 3 or k == 399 else v for k, v in WERE.items()}
    assert table.update("k < 5", {"v": "-1"}).updated == 5
    assert sorted(v for v in read(table).values() if v < 0) == [-1] * 5


def test_a_merge_reads_row_groups_side_by_side(table: Table) -> None:
    source = pa.table({"k": pa.array([5, 150, 399, 1000], pa.int64()), "v": pa.array([-5, -6, -7, -8], pa.int32())})
    merge = table.merge(source, "t.k = s.k").when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    assert read(table) == {**WERE, 5: -5, 150: -6, 399: -7, 1000: -8}


def test_a_damaged_row_group_leaves_no_file_behind(table: Table) -> None:
    (file,) = table.splits().files
    path = Path(Location.of(file.path).for_arrow)
    chunk = pq.read_metadata(path).row_group(3).column(0)
    with path.open("r+b") as data:
        data.seek(chunk.data_page_offset)
        data.write(np.full(chunk.total_compressed_size, 255, np.uint8).tobytes())
    before = sorted(path.parent.rglob("*.parquet"))
    with refused("BAD_DATA", file.path):
        table.delete("v = 3")
    assert sorted(path.parent.rglob("*.parquet")) == before
