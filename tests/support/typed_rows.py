"""A column of every type, and rows with its edge values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from trinity.spi import arrow_type

CASES: dict[str, tuple[str, list[Any]]] = {
    "c_boolean": ("boolean", [True, False]),
    "c_tinyint": ("tinyint", [-128, 127]),
    "c_smallint": ("smallint", [-32768, 32767]),
    "c_int": ("int", [-(2**31), 2**31 - 1]),
    "c_bigint": ("bigint", [-(2**63), 2**63 - 1]),
    "c_float": ("float", [1.5, -0.25]),
    "c_double": ("double", [1e300, -2.5e-300]),
    "c_decimal": ("decimal(10,2)", [Decimal("12345678.90"), Decimal("-0.01")]),
    "c_decimal38": ("decimal(38,0)", [Decimal(10**38 - 1), Decimal(-(10**37))]),
    "c_decimal38s": ("decimal(38,18)", [Decimal("12345678901234567890.123456789012345678"), Decimal("0E-18")]),
    "c_string": ("string", ["", "žluťoučký 🐎"]),
    "c_char": ("char(4)", ["ab  ", "abcd"]),
    "c_varchar": ("varchar(4)", ["ab", "abcd"]),
    "c_binary": ("binary", [b"", b"\x00\xff"]),
    "c_date": ("date", [dt.date(1582, 10, 15), dt.date(9999, 12, 31)]),
    "c_timestamp": (
        "timestamp",
        [dt.datetime(2013, 3, 31, 2, 30, 0, 1, dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)],
    ),
    "c_ntz": ("timestamp_ntz", [dt.datetime(2013, 3, 31, 2, 30, 0, 1), dt.datetime(1900, 1, 1)]),
    "c_time": ("time", [dt.time(23, 59, 59, 999999), dt.time(0)]),
    "c_array": ("array<int>", [[1, None, 3], []]),
    "c_map": ("map<string,bigint>", [[("a", 1), ("b", None)], []]),
    "c_struct": ("struct<a:int,b:string>", [{"a": 1, "b": "x"}, {"a": None, "b": None}]),
    "c_deep": (
        "array<struct<m:map<string,array<double>>,t:timestamp>>",
        [[{"m": [("k", [1.5])], "t": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}], [None]],
    ),
}  # fmt: skip


def typed_rows() -> pa.Table:
    arrays: dict[str, pa.Array] = {"k": pa.array([1, 2, 3], pa.int32())}
    for name, (kind, values) in CASES.items():
        arrays[name] = pa.array([*values, None], arrow_type(kind))
    return pa.table(arrays)
