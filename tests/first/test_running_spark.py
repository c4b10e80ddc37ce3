"""A Spark session that another thread is starting, or importing, does not exist yet: nothing uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HALF_IMPORTED = "half = types.ModuleType('pyspark')"
"""The state of pyspark while another thread is importing it."""
HALF_STARTED = f"""
{HALF_IMPORTED}
class SparkContext:
    pass
half.SparkContext = SparkContext
SparkContext._active_spark_context = SparkContext()  # before its JVM knows of it
"""
CALLS = """
import sys, types
import pyarrow as pa
from trinity import Column, connect
{before}
sys.modules["pyspark"] = half
rows = pa.table({{"k": [1, 2]}})
with connect({folder!r}) as session:
    for catalog in session.catalogs:
        table = session.create_table(f"{{catalog}}.default.t", [Column("k", "bigint")], primary_key=["k"])
        print(table.upsert(rows).skipped, session.timezone, end=" ")
        session.drop_table(table.name)
"""


@pytest.mark.parametrize("before", [HALF_IMPORTED, HALF_STARTED], ids=["half imported", "half started"])
def test_a_spark_that_is_only_coming_is_none(tmp_path: Path, before: str) -> None:
    code = CALLS.format(before=before, folder=str(tmp_path / "w"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["False", "UTC"] * 3, "")
