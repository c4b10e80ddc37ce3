"""Partitioned tables: values of every type that can be a partition, and the functions that write and read them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from trinity import Column, Session, Table

UTC = dt.UTC
TEXTS = ["eu", "a/b", "k=v", "ü", "a b%", "{*}?[", "'\"\\", "tail ", None]
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "tinyint": [1, -128, None],
    "smallint": [5, -5, None],
    "int": [1, -(2**31), None],
    "bigint": [2**62, 0, None],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-99999999.99"), None],
    "date": [dt.date(2024, 1, 31), dt.date(1582, 10, 4), dt.date(9999, 12, 31), None],
    "timestamp": [dt.datetime(2024, 1, 31, 12, 0, 0, 123456, UTC), dt.datetime(1969, 12, 31, 23, tzinfo=UTC), None],
    "timestamp_ntz": [dt.datetime(2024, 1, 31, 12, 0, 0, 123456), dt.datetime(2024, 1, 1), None],
    "time": [dt.time(1, 2, 3, 4), dt.time(0), None],
    "string": TEXTS,
    "varchar(9)": TEXTS,
    "char(3)": ["ab", "abc", None],
    "binary": [b"\xff\x00", b"a/b", b"", None],
}


def put_regions(table: Table, regions: list[str], ids: range, ts: int, v: str, gone: bool = False) -> None:
    pairs = [(r, i) for i in ids for r in regions]
    table.upsert(
        pa.table(
            {
                "region": [r for r, _ in pairs],
                "id": pa.array([i for _, i in pairs], pa.int32()),
                "ts": [ts] * len(pairs),
                "gone": [gone] * len(pairs),
                "v": [v] * len(pairs),
            }
        )
    )


def by_partition(table: Table) -> dict[Any, int]:
    """Return partition value -> number of files."""
    found: dict[Any, int] = {}
    for file in table.splits().files:
        [value] = file.partition.values()
        found[value] = found.get(value, 0) + 1
    return found


def plain_table(session: Session, fmt: str, kind: str, values: list[Any]) -> Table:
    table = session.create_table(f"{fmt}.default.plain", [Column("id", "int"), Column("p", kind)], partition_by=["P"])
    column = pa.array(values * 2, Column("p", kind).to_arrow().type)
    table.append(pa.table({"id": pa.array(range(len(column)), pa.int32()), "p": column}))
    return table


def wide_table(session: Session, fmt: str, *without: str) -> tuple[Table, list[dict[str, Any]]]:
    """Make a table partitioned by a column of every type, and return it with its rows."""
    kinds = [k for k in VALUES if k not in without]
    columns = [Column("id", "int"), *[Column(f"p{n}", kind) for n, kind in enumerate(kinds)]]
    names = [c.name for c in columns[1:]]
    table = session.create_table(f"{fmt}.default.wide", columns, partition_by=names)
    lists = [VALUES[kind] for kind in kinds]
    rows = [
        {"id": n, **{c: v[n % 9] if n % 9 < len(v) else None for c, v in zip(names, lists, strict=True)}}
        for n in range(18)
    ]
    table.append(pa.Table.from_pylist(rows, table.definition.to_arrow()))
    char = names[kinds.index("char(3)")]
    return table, [{**r, char: r[char] and str(r[char]).ljust(3)} for r in rows]
