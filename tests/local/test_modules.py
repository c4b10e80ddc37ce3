"""The modules that a new process loads for a merged read, and Arrow data to and from numpy without pandas."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from trinity import Column, Session
from trinity.arrays import as_arrow, as_numpy, as_scalar

pytestmark = pytest.mark.inner

HEAVY = ["pyspark", "sqlglot", "duckdb", "deltalake", "obstore", "polars", "pandas", "requests", "pyiceberg"]
ROWS = [{"k": "a", "ts": 1, "gone": None, "n": 1}, {"k": "b", "ts": None, "gone": False, "n": 2}]
LATER = [{"k": "a", "ts": 2, "gone": True, "n": 3}, {"k": "c", "ts": 2, "gone": None, "n": 4}]


@pytest.mark.parametrize(("fmt", "needed"), [("parquet", []), ("delta", []), ("iceberg", ["pyiceberg"])])
@pytest.mark.parametrize("key", [["k"], ["n"], ["k", "n"]], ids=lambda key: "+".join(key))
def test_a_merged_read_loads_what_it_needs_alone(
    local: Session, warehouse: Path, fmt: str, needed: list[str], key: list[str]
) -> None:
    columns = [Column("k", "string"), Column("ts", "bigint"), Column("gone", "boolean"), Column("n", "int")]
    options = {"watermark-key": "ts", "tombstone-key": "gone"}
    table = local.create_table(f"{fmt}.default.t", columns, primary_key=key, properties=options)
    for rows in (ROWS, LATER):
        table.upsert(rows)
        table.compact(full=rows is ROWS)
    table.upsert([{"k": "a", "ts": 9, "gone": False, "n": 5}, {"k": "a", "ts": 9, "gone": False, "n": 3}])
    code = f"""
import json, sys, trinity
rows = trinity.connect({str(warehouse)!r}, engine="local").table({str(table.name)!r}).to_arrow()
print(json.dumps([[name for name in {HEAVY} if name in sys.modules], rows.num_rows]))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(found) == [needed, table.to_arrow().num_rows]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.int32()), pa.array([0.5, float("nan")], pa.float32()), pa.array([], pa.int64()),
        pa.array([True, False] * 9), pa.array([], pa.bool_()), pa.array(["a", "b"]), pa.array([1, None]),
        pa.chunked_array([[1, 2], [3]]), pa.chunked_array([[True], [], [False]]), pa.chunked_array([], pa.int8()),
    ],
    ids=str,
)  # fmt: skip
def test_numpy_has_the_values_that_arrow_has(values: pa.Array) -> None:
    for part in (values, values[1:], values[:1]):
        np.testing.assert_array_equal(as_numpy(part), part.to_numpy(zero_copy_only=False))
        assert len(as_numpy(part)) == len(part)


def test_arrow_has_the_values_that_numpy_has() -> None:
    numbers, flags = np.arange(20)[::2], np.arange(10) % 3 == 0
    assert as_arrow(numbers).to_pylist() == numbers.tolist()
    assert as_arrow(flags).to_pylist() == flags.tolist()
    assert as_arrow(numbers, pa.int8(), mask=flags).to_pylist() == pa.array(numbers, pa.int8(), mask=flags).to_pylist()
    assert as_arrow(flags[:0]).to_pylist() == as_arrow(numbers[:0]).to_pylist() == []
    assert (as_scalar(False), as_scalar(-1, pa.int32())) == (pa.scalar(False), pa.scalar(-1, pa.int32()))
    assert pc.fill_null(pa.array([None, True]), as_scalar(False)).to_pylist() == [False, True]
    with pytest.raises(pa.ArrowInvalid):
        as_arrow(np.array([300]), pa.int8())
