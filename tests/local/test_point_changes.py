"""Row changes of few keys read only the pages with these keys: damage elsewhere in the files goes unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trinity
from trinity import Column, Session, Table

ROWS = 40_000
KEY = pa.table({"k": [3], "n": [7]})
CHANGES: dict[str, Callable[[Session, Table], int | None]] = {
    "delete keys": lambda _, table: table.delete([3]).rows,
    "delete where": lambda _, table: table.delete("k = 3").rows,
    "update": lambda _, table: table.update("k = 3 AND n >= 0", {"n": "-n"}).updated,
    "merge": lambda _, table: table.merge(KEY, "t.k = s.k").when_matched_update_all().execute().updated,
    "sql": lambda session, table: session.sql(f"UPDATE {table.name} SET n = 1 WHERE k = 3").collect()[0][0],
}


def damaged(table: Table) -> None:
    """Make the second half of each column of the base unreadable."""
    [file] = table.splits().files
    path, found = Path(file.path), bytearray(Path(file.path).read_bytes())
    group = pq.read_metadata(path).row_group(0)
    for column in map(group.column, range(group.num_columns)):
        first, size = column.data_page_offset, column.total_compressed_size
        found[first + size // 2 : first + size * 9 // 10] = bytes(size * 9 // 10 - size // 2)
    path.write_bytes(found)


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
def test_a_change_of_keys_reads_their_pages_alone(local: Session, warehouse: Path, fmt: str, how: str) -> None:
    columns = [Column("k", "bigint"), Column("n", "bigint")]
    table = local.create_table(f"{fmt}.default.t", columns, primary_key=["k"])
    table.upsert(pa.table({"k": np.arange(ROWS), "n": np.random.default_rng(1).integers(0, 1 << 60, ROWS)}))
    table.compact(full=True)
    damaged(table)
    with pytest.raises(trinity.TrinityError, match="BAD_DATA"):
        table.to_arrow()
    with trinity.connect(warehouse, engine="local") as fresh:
        assert CHANGES[how](fresh, fresh.table(table.name)) == 1
