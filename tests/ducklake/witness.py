"""Check independently that DuckDB's own DuckLake extension reads the tables of the adapter.

Run by ``make test-ducklake``.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.ducklake import open_lake
from tests.support.paths import TESTS
from trinity import Session, Table

TYPES = (
    "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(10,2), h DECIMAL(38,10), "
    "c CHAR(3), v VARCHAR(5), x STRING, y BINARY, a DATE, z TIMESTAMP, u TIMESTAMP_NTZ, "
    "e ARRAY<STRING>, m MAP<STRING,INT>, q STRUCT<x: INT, y: ARRAY<STRUCT<z: DATE>>>"
)
AT = dt.datetime(2024, 3, 31, 1, 30, 0, 1)
ROWS: list[dict[str, object]] = [
    {
        "b": True, "t": -128, "s": 32767, "i": 1, "l": 2**53 + 1, "f": 1.5, "d": 0.1, "n": Decimal("1.50"),
        "h": Decimal("9007199254740993.0000000001"), "c": "ab ", "v": "äöüß", "x": "it's 日本", "y": b"\x80",
        "a": dt.date(1969, 12, 31), "z": AT.replace(tzinfo=dt.UTC), "u": AT, "e": ["a", None], "m": {"k": 1, "l": None},
        "q": {"x": 1, "y": [{"z": dt.date(2024, 2, 29)}]},
    },
    {"i": 2, "f": float("nan"), "d": float("inf"), "x": "", "y": b"", "a": dt.date(9999, 12, 31)},
    {"i": 3, "e": [], "m": {}, "q": {"x": None, "y": []}},
]  # fmt: skip


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    with open_lake(tmp_path, monkeypatch) as session:
        yield session


def by_duckdb(folder: Path, query: str) -> pa.Table:
    """Return the rows that DuckDB returns for a query of the catalog below a folder."""
    file = folder / "answer.parquet"
    words = [os.environ["DUCKLAKE_PYTHON"], str(TESTS / "ducklake/reader.py")]
    subprocess.run([*words, str(folder / "lake/ducklake.sqlite"), query, str(file)], check=True)
    return pq.read_table(file)


def rows_of(data: pa.Table) -> list[str]:
    """Return the rows as sorted texts, which are equal for equal rows, NaN too."""
    return sorted(repr(row) for row in data.to_pylist())


def reads_the_same(folder: Path, lake: Session, where: str = "") -> None:
    found = by_duckdb(folder, f'FROM lake."default".t {where}')
    wanted = lake.sql(f"SELECT * FROM t {where}").to_arrow()
    assert found.column_names == wanted.column_names
    assert rows_of(found.cast(wanted.schema)) == rows_of(wanted)
    assert where or rows_of(lake.table("t").to_arrow()) == rows_of(wanted)


def test_all_types_and_the_bounds_of_files(opened: Session, tmp_path: Path) -> None:
    opened.sql(f"CREATE TABLE t ({TYPES})")
    table = opened.table("t")
    schema = table.to_arrow().schema
    for row in ROWS:  # a file each, so that bounds leave some out
        table.append(pa.Table.from_pylist([row], schema))
    reads_the_same(tmp_path, opened)
    for where in ("i > 1", "l > 9007199254740992", "n = 1.5", "x >= 'it'", "a < DATE '1970-01-01'", "i IS NULL"):
        reads_the_same(tmp_path, opened, f"WHERE {where}")


def test_changed_columns_and_changed_rows(opened: Session, tmp_path: Path) -> None:
    opened.sql("CREATE TABLE t (a INT, b INT, c STRING)")
    opened.sql("INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y'), (3, 30, NULL)")
    for change in ("RENAME COLUMN b TO old", "RENAME COLUMN a TO b", "ALTER COLUMN b TYPE BIGINT", "DROP COLUMN c",
                   "ADD COLUMN c INT"):  # fmt: skip
        opened.sql(f"ALTER TABLE t {change}")
    opened.sql("INSERT INTO t (b, old, c) VALUES (5000000000, 40, 7)")
    opened.sql("UPDATE t SET old = 0 WHERE b = 2")
    opened.sql("DELETE FROM t WHERE b = 3")
    reads_the_same(tmp_path, opened)


def upserted(lake: Session, options: str) -> Table:
    lake.sql(f"CREATE TABLE t (k INT NOT NULL PRIMARY KEY, v INT, w BIGINT) {options}")
    table = lake.table("t")
    for n in range(3):
        keys = range(n, n + 40)
        table.upsert(pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array([n] * 40, pa.int32()),
                               "w": pa.array([k % 5 for k in keys], pa.int64())}))  # fmt: skip
    return table


def full(lake: Session, table: Table) -> None:
    table.compact("full")


def resolve(lake: Session, table: Table) -> None:
    table.compact("full")
    lake.sql("UPDATE t SET v = 99, w = 100 WHERE k % 7 = 0")
    lake.sql("DELETE FROM t WHERE k % 11 = 0")
    table.compact("resolve")


def resolve_twice(lake: Session, table: Table) -> None:
    resolve(lake, table)
    lake.sql("DELETE FROM t WHERE k % 5 = 0")
    table.compact("resolve")
    table.vacuum("0 seconds")


@pytest.mark.parametrize("options", ["", "TBLPROPERTIES ('watermark-key' = 'w')", "TBLPROPERTIES ('bucket' = '3')"])
@pytest.mark.parametrize("maintain", [full, resolve, resolve_twice])
def test_compacted_tables(
    maintain: Callable[[Session, Table], None], options: str, opened: Session, tmp_path: Path
) -> None:
    table = upserted(opened, options)
    maintain(opened, table)
    reads_the_same(tmp_path, opened)
    reads_the_same(tmp_path, opened, "WHERE k > 20")


def test_partitions_and_earlier_versions(opened: Session, tmp_path: Path) -> None:
    opened.sql("CREATE TABLE t (day DATE, n INT) PARTITIONED BY (day)")
    opened.sql("INSERT INTO t VALUES (DATE '2024-01-01', 1), (DATE '2024-01-02', 2), (NULL, 3)")
    before = opened.table("t").to_arrow()
    [snapshot] = by_duckdb(tmp_path, "SELECT max(snapshot_id) AS n FROM ducklake_snapshots('lake')").to_pylist()
    opened.sql("DELETE FROM t WHERE n = 2")
    reads_the_same(tmp_path, opened)
    found = by_duckdb(tmp_path, f'FROM lake."default".t AT (VERSION => {snapshot["n"]})')
    assert rows_of(found.cast(before.schema)) == rows_of(before)
