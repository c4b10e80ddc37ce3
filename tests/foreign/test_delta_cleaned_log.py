"""Rows that another engine appended to a Delta table, once the log has lost the commit that says so (L3)."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.delta_lake import actions_of, commit_by_others
from trinity import Column, Table
from trinity.clock import clock_ahead

pytestmark = pytest.mark.inner
COLUMNS = [Column("k", "int", nullable=False), Column("ts", "bigint"), Column("v", "string")]


def appended_by_others(table: Table, *rows: tuple[int, int, str]) -> None:
    """Append rows as another engine does, which leaves the hidden columns out."""
    file = Path(table.location, f"part-{table.version}.snappy.parquet")
    data = pa.Table.from_pylist([dict(zip(("k", "ts", "v"), row, strict=True)) for row in rows])
    pq.write_table(data.cast(pa.schema([("k", pa.int32()), ("ts", pa.int64()), ("v", pa.string())])), file)
    stat = file.stat()
    added = {"path": file.name, "partitionValues": {}, "size": stat.st_size, "dataChange": True}
    times = {"modificationTime": int(stat.st_mtime * 1000), "stats": json.dumps({"numRecords": len(rows)})}
    commit_by_others(table.handle, {"add": {**added, **times}}, operation="WRITE", mode="Append")


def shown(table: Table) -> list[tuple[Any, ...]]:
    return sorted((row["k"], row["ts"], row["v"]) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize("by", ["trinity", "others"])
def test_l3_rows_of_others_keep_their_place_when_the_log_is_cleaned(warehouse: Path, by: str) -> None:
    options = {"watermark-key": "ts", "delta.checkpointInterval": "5"}
    with trinity.connect(warehouse, engine="local") as session:
        table = session.create_table("delta.default.seats", COLUMNS, primary_key=["k"], properties=options)
        table.upsert([{"k": 9, "ts": 1, "v": "x"}])
        table.update("k = 9", {"v": "'y'"})
        appended_by_others(table, (1, 4, "theirs"), (2, 4, "theirs"))
        at = table.version
        table.delete("k = 1")
        ahead = dt.timedelta(days=40 if by == "trinity" else 0)
        with clock_ahead(ahead):  # Trinity cleans the log at a checkpoint
            for late in range(12):
                table.upsert([{"k": 100, "ts": late, "v": "z"}])
        if by == "others":
            for version in range(10):
                Path(table.location, "_delta_log", f"{version:020d}.json").unlink()
        with pytest.raises(FileNotFoundError):
            actions_of(table.handle, at)
        expected = [(2, 4, "theirs"), (9, 1, "y"), (100, 11, "z")]
        assert shown(table) == expected
    with trinity.connect(warehouse, engine="local") as other:  # it has nothing in memory
        again = other.table("delta.default.seats")
        assert shown(again) == expected
        again.upsert([{"k": 2, "ts": 3, "v": "late"}, {"k": 9, "ts": 5, "v": "newer"}])
        again.compact(full=True)
        assert shown(again) == [(2, 4, "theirs"), (9, 5, "newer"), (100, 11, "z")]
