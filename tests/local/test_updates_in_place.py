"""Updates of plain tables encode only the columns that they set; the bytes of the others are copied."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.refusals import refused
from trinity import Column, Session, Table
from trinity.storage import Location
from trinity.storage.parquet_sink import PAGE_ROWS, ROW_GROUP_BYTES, ROW_GROUP_ROWS

pytestmark = pytest.mark.inner

COLUMNS = [
    Column("k", "bigint"),
    Column("v", "int"),
    Column("s", "string"),
    Column("d", "decimal(12,2)"),
    Column("x", "double"),
    Column("l", "array<int>"),
    Column("r", "struct<a: int, b: string>"),
]
ROWS: list[dict[str, Any]] = [
    {
        "k": n,
        "v": n % 7,
        "s": None if n % 5 == 0 else f"text {n % 11}",
        "d": Decimal(n) / 4,
        "x": None if n % 3 == 0 else n / 8,
        "l": None if n % 4 == 0 else [n] * (n % 3),
        "r": None if n % 6 == 0 else {"a": n, "b": None if n % 2 else str(n)},
    }
    for n in range(400)
]


@pytest.fixture(params=["parquet", "delta", "iceberg"])
@ROW_GROUP_ROWS.set_to(100)
def table(request: pytest.FixtureRequest, local: Session) -> Table:
    """Make a table with one file of four row groups."""
    made = local.create_table(f"{request.param}.default.t", COLUMNS)
    made.append(ROWS)
    return made


def path_of(table: Table) -> Path:
    """Return the path of a table's only file."""
    (file,) = table.splits().files
    return Path(Location.of(file.path).for_arrow)


def chunks(path: Path) -> dict[tuple[int, str], bytes]:
    """Return (row group, column) -> the bytes of its pages."""
    data, footer = path.read_bytes(), pq.read_metadata(path)
    found = dict[tuple[int, str], bytes]()
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            chunk = footer.row_group(group).column(number)
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            name = chunk.path_in_schema.partition(".")[0]
            before = found.get((group, name), b"")
            found[group, name] = before + data[first : first + chunk.total_compressed_size]
    return found


def expected(change: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, **change.get(n, {})} for n, row in enumerate(ROWS)]


def check(table: Table, rows: list[dict[str, Any]]) -> None:
    """Check that Trinity and other readers of the file find these rows in this order."""
    assert table.to_arrow().to_pylist() == rows
    path = path_of(table)
    assert [list(row.values()) for row in pq.read_table(path).to_pylist()] == [list(row.values()) for row in rows]
    theirs = duckdb.execute(f"SELECT count(*), sum(k), count(s), sum(v) FROM read_parquet('{path}')").fetchall()
    counted = [row["s"] for row in rows if row["s"] is not None]
    assert theirs == [(len(rows), sum(row["k"] for row in rows), len(counted), sum(row["v"] for row in rows))]


def test_only_the_columns_that_are_set_are_encoded(table: Table) -> None:
    before = chunks(path_of(table))
    assert table.update("v = 3 OR k = 399", {"v": "k + 1000", "s": "NULL"}).updated == 58
    check(table, expected({n: {"v": n + 1000, "s": None} for n in range(400) if n % 7 == 3 or n == 399}))
    after = chunks(path_of(table))
    assert {name for (group, name), data in after.items() if data != before[group, name]} == {"v", "s"}


def test_bounds_and_counts_are_those_of_the_new_values(table: Table) -> None:
    table.update("k = 250", {"v": "77"})
    (file,) = table.splits().files
    assert (file.rows, file.size) == (400, path_of(table).stat().st_size)
    assert table.to_arrow(where="v = 77", columns=["k"]).to_pylist() == [{"k": 250}]
    assert table.to_arrow(where="v > 77").num_rows == 0
    footer = pq.read_metadata(path_of(table))
    assert [footer.row_group(n).column(1).statistics.max for n in range(4)] == [6, 6, 77, 6]


def test_nested_columns_are_replaced_whole(table: Table) -> None:
    table.update("k >= 395", {"l": "array(1, 2)", "r": "named_struct('a', 1, 'b', 'new')"})
    check(table, expected({n: {"l": [1, 2], "r": {"a": 1, "b": "new"}} for n in range(395, 400)}))


@PAGE_ROWS.set_to(10)
def test_pages_are_found_after_an_update_of_a_compacted_table(table: Table) -> None:
    table.append([{**row, "k": 400 + n} for n, row in enumerate(ROWS)])
    table.compact(full=True)
    table.update("k = 501", {"v": "-1"})
    assert table.to_arrow(where="k IN (3, 501)", columns=["k", "v", "s"]).to_pylist() == [
        {"k": 3, "v": 3, "s": "text 3"},
        {"k": 501, "v": -1, "s": "text 2"},
    ]
    found = duckdb.execute(f"SELECT v, s FROM read_parquet('{path_of(table)}') WHERE k = 501").fetchall()
    assert found == [(-1, "text 2")]


def test_rows_that_are_updated_beside_deleted_ones(table: Table) -> None:
    source = pa.table({"k": pa.array([5, 150, 399], pa.int64())})
    merge = table.merge(source, "t.k = s.k").when_matched_delete("t.k = 150").when_matched_update({"v": "-1"})
    assert merge.execute().updated == 2
    check_rows = {row["k"]: row for row in table.to_arrow().to_pylist()}
    assert check_rows == {n: {**row, **({"v": -1} if n in (5, 399) else {})} for n, row in enumerate(ROWS) if n != 150}


def test_a_table_that_has_other_columns_now(table: Table) -> None:
    table.add_column(Column("new", "string"))
    table.rename_column("s", "text")
    assert table.update("k < 2", {"new": "text"}).updated == 2
    found = table.to_arrow(where="k < 3", columns=["k", "text", "new"]).to_pylist()
    assert sorted(map(str, found)) == sorted(
        map(
            str,
            [
                {"k": 0, "text": None, "new": None},
                {"k": 1, "text": "text 1", "new": "text 1"},
                {"k": 2, "text": "text 2", "new": None},
            ],
        )
    )
    assert table.to_arrow().num_rows == 400


def test_a_column_that_is_not_set_may_be_required(local: Session) -> None:
    made = local.create_table("parquet.default.n", [Column("k", "int", nullable=False), Column("v", "int")])
    made.append([{"k": 1, "v": 1}, {"k": 2, "v": 2}])
    assert made.update("v = 2", {"v": "NULL"}).updated == 1
    assert made.to_arrow().to_pylist() == [{"k": 1, "v": 1}, {"k": 2, "v": None}]
    with refused("CONSTRAINT_VIOLATION", "'k'"):
        made.update("v = 1", {"k": "NULL"})


@pytest.mark.parametrize("held", [1 << 20, 1])
def test_updates_beside_inserts(table: Table, held: int) -> None:
    source = pa.table({"k": pa.array([3, 150, 1000], pa.int64())})
    merge = table.merge(source, "t.k = s.k").when_matched_update({"v": "-1"}).when_not_matched_insert({"k": "s.k"})
    with ROW_GROUP_BYTES.set_to(held):
        done = merge.execute()
    assert (done.updated, done.inserted) == (2, 1)
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"])
    assert rows == [*expected({3: {"v": -1}, 150: {"v": -1}}), {**dict.fromkeys(ROWS[0]), "k": 1000}]


def test_several_small_files_become_one(table: Table) -> None:
    table.append([{**row, "k": row["k"] + 400} for row in ROWS])
    assert table.update("k % 400 = 3", {"v": "-1"}).updated == 2
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"])
    again = [{**row, "k": row["k"] + 400} for row in ROWS]
    assert rows == [{**row, **({"v": -1} if row["k"] % 400 == 3 else {})} for row in [*ROWS, *again]]


def test_a_damaged_column_that_is_replaced_leaves_no_file_behind(table: Table) -> None:
    path = path_of(table)
    chunk = pq.read_metadata(path).row_group(3).column(0)
    with path.open("r+b") as data:
        data.seek(chunk.data_page_offset)
        data.write(b"\xff" * chunk.total_compressed_size)
    before = sorted(path.parent.rglob("*.parquet"))
    with refused("BAD_DATA", path.name):
        table.update("v = 3", {"k": "v + 1"})
    assert sorted(path.parent.rglob("*.parquet")) == before
