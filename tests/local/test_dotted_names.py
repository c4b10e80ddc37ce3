"""Names are data (N1): a column whose name begins with a dot is no path, and not the column behind the dot."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest

from tests.support.refusals import refused
from trinity import Column, Session, Table
from trinity.cli.tail import follow, print_changes

pytestmark = pytest.mark.inner

KEY, TIME, NAMESAKE = ".k", ".ts", "k"
"""The rows' columns: a look at ``k`` or ``ts`` in place of the first two would find other values."""


def made(local: Session, fmt: str, **properties: str) -> Table:
    columns = [Column(KEY, "string"), Column(NAMESAKE, "string"), Column(TIME, "int"), Column("ts", "int")]
    return local.create_table(
        f"{fmt}.default.t", columns, primary_key=[KEY], properties={"watermark-key": TIME, **properties}
    )


def put(table: Table, *rows: tuple[str, str, int, int]) -> None:
    table.upsert(pa.table([*map(list, zip(*rows, strict=True))], names=[KEY, NAMESAKE, TIME, "ts"]))


def read(table: Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_rows_are_sorted_and_found_by_such_a_column(local: Session, local_fmt: str) -> None:
    table = made(local, local_fmt)
    put(table, ("a", "z", 5, 1), ("b", "y", 5, 1), ("c", "x", 5, 1))
    table.compact(full=True)
    put(table, ("a", "x", 4, 9), ("b", "y", 6, 0), ("b", "y", 5, 7))  # late; newer; late
    wanted = [("a", "z", 5, 1), ("b", "y", 6, 0), ("c", "x", 5, 1)]
    assert read(table) == wanted
    for strength in ("resolve", "full"):
        table.compact(strength)
        assert read(table) == wanted


def test_rows_are_changed_and_deleted_by_such_a_key(local: Session, local_fmt: str) -> None:
    table = made(local, local_fmt)
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


def test_tail_prints_in_the_order_of_such_a_key(local: Session, local_fmt: str) -> None:
    table, shown = made(local, local_fmt), io.StringIO()
    first = table.version
    put(table, ("b", "x", 1, 1), ("a", "z", 1, 1), ("c", "y", 1, 1))
    for rows in follow(table, first, lambda: False):
        print_changes(rows, shown, lines=True)
    assert [json.loads(line)[KEY] for line in shown.getvalue().splitlines()] == ["a", "b", "c"]
