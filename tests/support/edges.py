"""Edge values of every type as Arrow data, their literals, and values of any reader in a comparable form."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from trinity import Column
from trinity.spi import arrow_type, parse_type

UTC: Final = dt.UTC
_EPOCH: Final = dt.datetime(1970, 1, 1)


def _days(year: int, month: int = 1, day: int = 1) -> int:
    return (dt.date(year, month, day) - _EPOCH.date()).days


def _micros(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - _EPOCH) // dt.timedelta(microseconds=1)


BEFORE_CHRIST: Final = -735_600
"""The last day of 46 BC, in days since the epoch."""
AFTER_9999: Final = 2_932_897
"""10000-01-01 in days since the epoch."""
_DATES: Final = [
    _days(2024, 2, 29), _days(1970), _days(1582, 10, 10), _days(1582, 10, 4), _days(1582, 10, 15), _days(1, 1, 1),
    _days(1000, 2, 28), _days(9999, 12, 31), AFTER_9999, BEFORE_CHRIST,
]  # fmt: skip
_DAY: Final = 86_400_000_000
_TIMES: Final = [
    *map(
        _micros,
        [
            "2024-03-10 02:30:00.000001",  # New York's gap, as wall clock
            "2024-03-10 07:30:00",
            "2024-11-03 01:30:00",  # New York's fold, as wall clock
            "2024-11-03 05:30:00",
            "2024-11-03 06:30:00",
            "1970-01-01 00:00:00",
            "1582-10-10 12:00:00",
            "1883-11-18 17:00:00",
            "0001-01-02 00:00:00.000001",
            "9999-12-30 23:59:59.999999",
        ],
    ),
    AFTER_9999 * _DAY,
    BEFORE_CHRIST * _DAY + 1,
]  # fmt: skip
_NAN: Final = float("nan")
_INF: Final = float("inf")

CASES: Final[dict[str, tuple[str, list[Any]]]] = {
    "c_boolean": ("boolean", [True, False]),
    "c_tinyint": ("tinyint", [-128, 127, 0]),
    "c_smallint": ("smallint", [-32768, 32767]),
    "c_int": ("int", [-(2**31), 2**31 - 1]),
    "c_bigint": ("bigint", [-(2**63), 2**63 - 1, 2**53 + 1]),
    "c_float": ("float", [1.5, -0.0, _NAN, _INF, -_INF]),
    "c_double": ("double", [1e300, -0.0, 0.0, _NAN, _INF, -_INF, 5e-324]),
    "c_dec": ("decimal(10,2)", [Decimal("12345678.90"), Decimal("-0.01")]),
    "c_dec38": ("decimal(38,0)", [Decimal(10**38 - 1), Decimal(1 - 10**38)]),
    "c_dec38s": ("decimal(38,18)", [Decimal("12345678901234567890.123456789012345678"), Decimal("0E-18")]),
    "c_string": ("string", ["", "žluťoučký 🐎", "a\0b", "it's \\ ${x}", " x "]),
    "c_char": ("char(4)", ["ab  ", "abcd", "    "]),
    "c_varchar": ("varchar(4)", ["ab", "ab ", ""]),
    "c_binary": ("binary", [b"", b"\x00\xff", b"\x80"]),
    "c_date": ("date", _DATES),
    "c_ts": ("timestamp", _TIMES),
    "c_ntz": ("timestamp_ntz", _TIMES),
    "c_time": ("time", [0, 86_399_999_999, 1]),
    "n_list": ("array<timestamp_ntz>", [[_TIMES[0], None], [], [_TIMES[8], _TIMES[6]]]),
    "n_map": ("map<string,date>", [[("a", _DATES[2]), ("b", None)], []]),
    "n_struct": (
        "struct<t:timestamp,n:timestamp_ntz,d:date>",
        [{"t": _TIMES[0], "n": _TIMES[0], "d": _DATES[3]}, {"t": None, "n": None, "d": None}],
    ),
    "n_deep": (
        "array<struct<m:map<string,array<double>>,n:timestamp_ntz>>",
        [[{"m": [("k", [-0.0])], "n": _TIMES[2]}], [None]],
    ),
}
PRIMITIVES: Final = tuple(name for name in CASES if name.startswith("c_"))
COLUMNS: Final = [Column("k", "int"), *[Column(name, kind) for name, (kind, _) in CASES.items()]]
ROWS: Final = max(len(values) for _, values in CASES.values()) + 1


def edges() -> pa.Table:
    """Return rows of edge values, with NULL in columns that have fewer than the others; the last row is all NULL."""
    arrays = [pa.array(range(ROWS), pa.int32())]
    for kind, values in CASES.values():
        arrays.append(pa.array([*values, *[None] * (ROWS - len(values))], arrow_type(kind)))
    return pa.table(arrays, names=[c.name for c in COLUMNS])


def within_python(rows: pa.Table) -> pa.Table:
    """Return the rows whose dates and times Python can represent in every time zone."""
    return rows.take([place for place in range(rows.num_rows) if _readable(rows.slice(place, 1))])


def _readable(row: pa.Table) -> bool:
    days = row.column("c_date").cast(pa.int32())[0].as_py()
    micros = row.column("c_ts").cast(pa.int64())[0].as_py()
    first, last = _days(1, 1, 2), _days(9999, 12, 31)
    return first <= (days or 0) <= last and first <= (micros or 0) // _DAY < last


def plain(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return values that compare exactly: times and dates as numbers, floats as text with the sign of zero."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    kind = values.type
    if pa.types.is_timestamp(kind):
        return list(values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist())
    if pa.types.is_time64(kind):
        return list(values.cast(pa.time64("us"), safe=True).cast(pa.int64()).to_pylist())
    if pa.types.is_date32(kind):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_floating(kind):
        return [None if v is None else repr(v) for v in values.to_pylist()]
    if pa.types.is_map(kind):
        items = [None if not v.is_valid else v.values for v in values]
        return [None if v is None else list(zip(*map(plain, v.flatten()), strict=True)) for v in items]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [plain(v.values) if v.is_valid else None for v in values]
    if pa.types.is_struct(kind):
        fields = [plain(child) for child in values.flatten()]
        names = [f.name for f in kind]
        found = [dict(zip(names, v, strict=True)) for v in zip(*fields, strict=True)]
        return [v if there else None for v, there in zip(found, values.is_valid().to_pylist(), strict=True)]
    return list(values.to_pylist())


def rows_of(table: pa.Table) -> dict[str, dict[int, Any]]:
    """Return column -> key -> comparable value."""
    keys = table.column("k").to_pylist()
    assert len(set(keys)) == len(keys)
    columns = {name: plain(table.column(name)) for name in table.column_names if name != "k"}
    return {name: dict(sorted(zip(keys, values, strict=True))) for name, values in columns.items()}


def literal(kind: str, value: Any) -> str:
    """Return an edge value as a literal of Spark SQL; a timestamp has its zone, to mean the same everywhere."""
    if value is None:
        return f"CAST(NULL AS {parse_type(kind)})"
    name = parse_type(kind).name
    if name == "date":
        return f"DATE '{_date_text(value)}'"
    if name in ("timestamp", "timestamp_ntz"):
        days, micros = divmod(value, _DAY)
        clock = (_EPOCH + dt.timedelta(microseconds=micros)).time().isoformat("microseconds")
        text = f"{_date_text(days)} {clock}"
        return f"TIMESTAMP_LTZ '{text}Z'" if name == "timestamp" else f"TIMESTAMP_NTZ '{text}'"
    if name == "time":
        return f"TIME '{(_EPOCH + dt.timedelta(microseconds=value)).time().isoformat('microseconds')}'"
    if name in ("float", "double", "decimal", "tinyint", "smallint", "bigint", "int"):
        return f"CAST('{value}' AS {parse_type(kind)})"
    if name == "boolean":
        return str(value).upper()
    if name == "binary":
        return f"X'{value.hex()}'"
    text = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
    return f"'{text}'"


def _date_text(days: int) -> str:
    if days == AFTER_9999:
        return "+10000-01-01"
    if days == BEFORE_CHRIST:
        return "-0045-12-31"
    return (_EPOCH.date() + dt.timedelta(days=days)).isoformat()
