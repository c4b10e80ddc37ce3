"""40 million rows in a process of less than 1 GB: the merged read as a stream, and full compactions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

import trinity
from tests.support.without_spark import run_without_spark
from trinity import Column, Table

pytestmark = pytest.mark.full

ROWS: Final = int(os.environ.get("TRINITY_MEMORY_ROWS", "40_000_000"))
A_GB: Final = 10**9
BATCH: Final = 1_000_000
TEXTS: Final = pa.array([f"a text of {number}" for number in range(100_000)])

PEAK = """
import sys
from pathlib import Path
import trinity
with trinity.connect(sys.argv[1], engine="local") as session:
    table, rows = session.table("parquet.default.t"), 0
    if sys.argv[2] == "read":
        for page in table.to_reader():
            rows += page.num_rows
    else:
        table.compact(full=True)
lines = Path("/proc/self/status").read_text().splitlines()
print(rows, next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
"""


def put_every(table: Table, first: int, rows: int, ts: int, step: int = 1) -> None:
    """Upsert rows with every step-th key."""
    ids = np.arange(first, first + rows * step, step, dtype=np.int64)
    table.upsert(pa.table({"id": ids, "ts": np.full(rows, ts), "v": ids * 0.5, "name": TEXTS.take(ids % len(TEXTS))}))


def measured(warehouse: Path, what: str) -> tuple[int, int]:
    """Return the number of rows that a new process reads, and its peak memory."""
    rows, peak = run_without_spark(PEAK, str(warehouse), what).split()
    print(f"{what}: {ROWS:,} rows, {int(peak) / 2**20:,.0f} MiB at most")
    return int(rows), int(peak)


def test_a_read_and_a_compaction_of_many_rows_hold_less_than_a_gb(warehouse: Path) -> None:
    columns = [Column("id", "bigint"), Column("ts", "bigint"), Column("v", "double"), Column("name", "string")]
    with trinity.connect(warehouse, engine="local") as session:
        table = session.create_table(
            "parquet.default.t", columns, primary_key=["id"], properties={"watermark-key": "ts"}
        )
        for first in range(0, ROWS, BATCH):
            put_every(table, first, BATCH, 1)
        first_compaction = measured(warehouse, "compact")[1]
        for first in range(0, ROWS, ROWS // 4):
            put_every(table, first, ROWS // 40, 2, step=10)
    found = {what: measured(warehouse, what) for what in ("read", "compact", "read")}
    assert found["read"][0] == ROWS
    peaks = {"first compaction": first_compaction, **{what: peak for what, (_, peak) in found.items()}}
    assert {what: peak for what, peak in peaks.items() if peak >= A_GB} == {}
