"""A column of a folder that is an integer in one Parquet file and a decimal in another one, read by Spark."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trinity import Session


@pytest.mark.parametrize("kind", [pa.int16(), pa.int64()], ids=str)
def test_spark_reads_both(session: Session, tmp_path: Path, kind: pa.DataType) -> None:
    (tmp_path / "theirs").mkdir()
    for number, values in enumerate((pa.array([-5], kind), pa.array([Decimal("1.25")]))):
        pq.write_table(pa.table({"n": values}), tmp_path / "theirs" / f"{number}.parquet")
    table = session.register("theirs", "parquet", tmp_path / "theirs")
    assert sorted(row.n for row in table.to_df().collect()) == [Decimal("-5.00"), Decimal("1.25")]
