"""Names are data (N1): a column whose name begins with a dot is no path, and not the column behind the dot."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.refusals import refused
from trinity import Column, Session, Table
from trinity.cli.tail import follow, print_changes

pytestmark = pytest.mark.inner

KEY, TIME, NAMESAKE = ".k", ".ts", "k"
"""The rows' columns: a look at ``k`` or ``ts`` in place of the first two would find other values."""


def dotted_table(local: Session, fmt: str, **properties: str) -> Table:
    columns = [Column(KEY, "string"), Column(NAMESAKE, "string"), Column(TIME, "int"), Column("ts", "int")]
    return local.create_table(
        f"{fmt}.default.t", columns, primary_key=[KEY], properties={"watermark-key": TIME, **properties}
    )


def put(table: Table, *rows: tuple[str, str, int, int]) -> None:
    table.upsert(pa.table([*map(list, zip(*rows, strict=True))], names=[KEY, NAMESAKE, TIME, "ts"]))


def read(table: Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_rows_are_sorted_and_found_by_such_a_column(local: Session, local_fmt: str) -> None:
    table = dotted_table(local, local_fmt)
    put(table, ("a", "z", 5, 1), ("b", "y", 5, 1), ("c", "x", 5, 1))
    table.compact(full=True)
    put(table, ("a", "x", 4, 9), ("b", "y", 6, 0), ("b", "y", 5, 7))  # late; newer; late
    wanted = [("a", "z", 5, 1), ("b", "y", 6, 0), ("c", "x", 5, 1)]
    assert read(table) == wanted
    for strength in ("resolve", "full"):
        table.compact(strength)
        assert read(table) == wanted


def test_rows_are_changed_and_deleted_by_such_a_key(local: Session, local_fmt: str) -> None:
    table = dotted_table(local, local_fmt)
    put(table, ("a", "z", 5, 1), ("b", "z", 5, 1), ("c", "x", 5, 1))
    local.sql(f"UPDATE {table.name} SET ts = 2 WHERE `.k` IN ('a', 'b')")
    local.sql(
        f"MERGE INTO {table.name} t USING (VALUES ('b', 3), ('c', 4)) s(id, n) ON t.`.k` = s.id "
        "WHEN MATCHED THEN UPDATE SET ts = s.n"
    )
    assert read(table) == [("a", "z", 5, 2), ("b", "z", 5, 3), ("c", "x", 5, 4)]
    assert table.delete(pa.table([["a", "a", "c"]], names=[KEY])).rows == 2
    assert read(table) == [("b", "z", 5, 3)]
    with refused("MERGE_TARGET_ROW_MULTIPLE_MATCHES", "'b'"):
        local.sql(
            f"MERGE INTO {table.name} t USING (VALUES ('b', 3), ('b', 4)) s(id, n) ON t.`.k` = s.id "
            "WHEN MATCHED THEN UPDATE SET ts = s.n"
        )


@pytest.mark.parametrize("local_fmt", ["parquet", "delta"])
@pytest.mark.parametrize("dotted_first", [True, False])
def test_a_dotted_column_has_its_own_bounds_beside_a_struct(local: Session, local_fmt: str, dotted_first: bool) -> None:
    """Iceberg has no such tables: a field of the struct would have the column's name there."""
    within = pa.array([{"b": 1}, {"b": 2}], pa.struct([("b", pa.int32())]))
    columns = {"k": pa.array([1, 2], pa.int32()), "a.b": pa.array([10, 20], pa.int32()), "a": within}
    names = ["k", "a.b", "a"] if dotted_first else ["a", "a.b", "k"]
    table = local.create_table(f"{local_fmt}.default.t", pa.table({n: columns[n] for n in names}), primary_key=["k"])
    for _ in range(2):
        assert local.sql(f"SELECT k FROM {table.name} WHERE `a.b` = 20").to_pylist() == [{"k": 2}]
        assert local.sql(f"SELECT k FROM {table.name} WHERE a.b = 1").to_pylist() == [{"k": 1}]
        assert table.to_arrow(["k"], where="`a.b` > 15").to_pylist() == [{"k": 2}]
        table.compact(full=True)
    local.sql(f"DELETE FROM {table.name} WHERE `a.b` = 10")
    assert table.to_arrow(["k"]).to_pylist() == [{"k": 2}]


@pytest.mark.parametrize("local_fmt", ["parquet", "delta"])
def test_a_dotted_floating_column_has_no_bounds_beside_a_field_that_has(local: Session, local_fmt: str) -> None:
    """Arrow's bounds leave NaN out, which is above every number (K3)."""
    within = pa.array([{"b": 1}, {"b": 2}], pa.struct([("b", pa.int32())]))
    rows = pa.table({"k": pa.array([1, 2], pa.int32()), "a.b": [1.0, float("nan")], "a": within})
    table = local.create_table(f"{local_fmt}.default.t", rows, primary_key=["k"])
    table.compact(full=True)
    for file in Path(table.location.removeprefix("file://")).rglob("*.parquet"):
        footer = pq.read_metadata(file)
        assert not any(
            footer.row_group(0).column(i).statistics
            for i in range(footer.num_columns)
            if footer.schema.column(i).name == "a.b"
        )
    assert table.to_arrow(["k"], where="`a.b` > 100.0D").to_pylist() == [{"k": 2}]


@pytest.mark.parametrize("local_fmt", ["iceberg"])
def test_iceberg_has_no_column_with_the_path_of_a_field(local: Session, local_fmt: str) -> None:
    within = pa.array([{"b": 1}], pa.struct([("b", pa.int32())]))
    rows = pa.table({"k": [1], "a": within, "z": [1]})
    table = local.create_table("iceberg.default.t", rows, primary_key=["k"])
    both = pa.table({"k": [1], "a.b": [1], "a": within})
    before = table.version, read(table)
    for call in (
        lambda: table.add_column(Column("a.b", "int")),
        lambda: table.rename_column("z", "a.b"),
        lambda: table.upsert(pa.table({"k": [1], "a.b": [1]}), evolve=True),
        lambda: local.create_table("iceberg.default.t", both, primary_key=["k"], replace=True),
        lambda: local.create_table("iceberg.default.u", both, primary_key=["k"]),
    ):
        with refused("NOT_SUPPORTED", "'a.b'", "choose another name"):
            call()
    assert (table.version, read(table)) == before
    assert not local.table_exists("iceberg.default.u")


def test_tail_prints_in_the_order_of_such_a_key(local: Session, local_fmt: str) -> None:
    table, shown = dotted_table(local, local_fmt), io.StringIO()
    first = table.version
    put(table, ("b", "x", 1, 1), ("a", "z", 1, 1), ("c", "y", 1, 1))
    for rows in follow(table, first, lambda: False):
        print_changes(rows, shown, lines=True)
    assert [json.loads(line)[KEY] for line in shown.getvalue().splitlines()] == ["a", "b", "c"]
