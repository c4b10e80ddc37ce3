"""The number of product files that a call enters: readers must open each of them (architecture.md)."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

import pyarrow as pa
import pytest

import trinity
from tests.support.paths import ROOT
from trinity import Table

CALLS: Final[dict[str, Callable[[Table], object]]] = {
    "upsert": lambda table: table.upsert(row(3)),
    "to_arrow": lambda table: table.to_arrow(),
    "where": lambda table: table.to_arrow(where="id = 1"),
}
MOST: Final = {
    "parquet": {"upsert": 29, "to_arrow": 29, "where": 39},
    "delta": {"upsert": 30, "to_arrow": 29, "where": 39},
    "iceberg": {"upsert": 36, "to_arrow": 33, "where": 43},
}
LANDMARKS: Final = {
    "upsert": {"trinity/engine/writing/ingest.py", "trinity/storage/parquet_sink.py", "trinity/storage/commits.py"},
    "to_arrow": {"trinity/engine/reading/plan.py", "trinity/engine/reading/local/executor.py"},
    "where": {"trinity/engine/reading/plan.py", "trinity/engine/expressions/compile.py"},
}
"""Call -> files that it enters: a trace without them is broken."""


def row(number: int) -> pa.Table:
    at = pa.array([dt.datetime(2026, 1, number)], pa.timestamp("us", tz="UTC"))
    return pa.table({"id": pa.array([number], pa.int64()), "v": ["a"], "at": at})


def files_passed(call: Callable[[], object]) -> dict[str, str]:
    """Return file of the product -> its first function that a call enters in its thread, in order."""
    found: dict[str, str] = {}

    def seen(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(ROOT) and ".venv" not in file.parts and "tests" not in file.parts:
            found.setdefault(str(file.relative_to(ROOT)), frame.f_code.co_qualname)

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("call", CALLS)
def test_a_call_without_spark_passes_few_files(tmp_path: Path, fmt: str, call: str) -> None:
    """The second call of its kind is measured: the first one also imports, and opens the catalog."""
    with trinity.connect(tmp_path, engine="local", catalog=fmt) as session:
        columns = "id BIGINT NOT NULL, v STRING, at TIMESTAMP, PRIMARY KEY (id)"
        session.sql(f"CREATE TABLE t ({columns}) USING {fmt} TBLPROPERTIES ('watermark-key'='at')")
        table = session.table("t")
        for number in (1, 2):
            table.upsert(row(number))
        for other in CALLS.values():
            other(table)
        passed = files_passed(lambda: CALLS[call](table))
    assert passed.keys() >= LANDMARKS[call]
    ways = "".join(f"\n{file}: {function}" for file, function in passed.items())
    most = MOST[fmt][call]
    assert len(passed) <= most, f"{call} on {fmt} passes {len(passed)} files, and {most} are the most:{ways}"
