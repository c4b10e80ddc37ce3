"""The shapes of tables in Delta's golden tables and Parquet's test files, each made anew, with its rows."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tests.support.delta_by_hand import CHECKPOINT, Log, inline_vector, struct_field, vector_file

PLAIN: Final = pa.schema([("id", pa.int64()), ("v", pa.string())])
PHYSICAL: Final = "delta.columnMapping.physicalName"
ID: Final = "delta.columnMapping.id"


@dataclass(frozen=True)
class Shape:
    """A table that is written without Trinity.

    Attributes:
        make: makes the table in a folder, and returns its rows.
        appended: whether Trinity appends rows to it.
        by_delta_rs: whether delta-rs opens it.
    """

    make: Callable[[Path], list[dict[str, Any]]]
    appended: bool = True
    by_delta_rs: bool = True


def batch(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"v{n}" for n in ids]}, PLAIN)


def add_actions(*ids: int) -> list[dict[str, Any]]:
    return batch(*ids).to_pylist()  # type: ignore[no-any-return]


# -- statistics and actions -----------------------------------------------------------------------------------


def statistics(folder: Path) -> list[dict[str, Any]]:
    """Make files whose statistics are missing, incomplete, damaged, or of other types than the columns."""
    log = Log.of(folder, PLAIN)
    texts = [
        None,
        '{"numRecords": 1}',
        '{"minValues": {"id": 2}, "maxValues": {"id": 2}, "nullCount": {"id": 0}}',
        "{",
        "null",
        '{"numRecords": "1", "minValues": {"id": "x", "v": 7}, "maxValues": {"id": null}, "nullCount": []}',
        '{"numRecords": 1, "minValues": {"id": 6, "someday": [1]}, "tightBounds": false}',
    ]
    for number, text in enumerate(texts):
        log.append(batch(number), f"{number}.parquet", stats=text)
    return add_actions(*range(len(texts)))


def strangers(folder: Path) -> list[dict[str, Any]]:
    """Make a log with unknown actions, fields and files, and with a ``commitInfo`` that may be any JSON."""
    log = Log.of(folder, PLAIN, writers=["appendOnly", "invariants"])
    log.append(batch(1), "1.parquet", someday={"x": [1]}, tags=None, deletionVector=None)
    log.commit({"txn": {"appId": "a", "version": 1}}, info={"operation": 7, "timestamp": "today", "tags": []})
    log.commit({"someday": {"x": 1}}, log.add(batch(2), "2.parquet"), info=["free"])
    again = [json.dumps(action) for action in log.rows() if action.keys() & {"add", "txn"}]
    log.name(f"{log.version:020d}.compacted.json", 1).write_text("\n".join(again))
    (log.place / "_last_checkpoint").write_text("{spoiled")
    (log.place / f".{0:020d}.json.crc").write_bytes(b"crc")
    return add_actions(1, 2)


def removed(folder: Path) -> list[dict[str, Any]]:
    """Make a log in which a file is removed, added again, and removed in the commit that adds another file."""
    log = Log.of(folder, PLAIN)
    first, second = log.add(batch(1), "1.parquet"), log.add(batch(2), "2.parquet")
    log.commit(first, second)
    log.commit(log.remove("1.parquet"))
    log.commit(first, log.remove("2.parquet"), log.add(batch(3), "3.parquet"))
    return add_actions(1, 3)


# -- names ----------------------------------------------------------------------------------------------------


def escaped_paths(folder: Path) -> list[dict[str, Any]]:
    log = Log.of(folder, PLAIN)
    names = [
        ("a b.parquet", "a%20b.parquet"),
        ("p=%25/x.parquet", "p=%2525/x.parquet"),
        ("ü'+.parquet", "%C3%BC'+.parquet"),
    ]
    for number, (name, path) in enumerate(names):
        log.append(batch(number), name, as_path=path)
    return add_actions(0, 1, 2)


def absolute_paths(folder: Path) -> list[dict[str, Any]]:
    log = Log.of(folder, PLAIN)
    place = folder.resolve()
    spelled = [f"{place}/0%20x.parquet", f"file:{place}/1.parquet", f"file://{place}/2.parquet", f"{place}/3.parquet"]
    log.commit(*(log.add(batch(n), p.rsplit("/", 1)[1].replace("%20", " "), as_path=p) for n, p in enumerate(spelled)))
    log.commit(log.remove(f"{place}/3.parquet"))
    return add_actions(0, 1, 2)


def partitions(folder: Path) -> list[dict[str, Any]]:
    """Make a table with partition columns of every type that Trinity writes, which its data files lack."""
    kinds = [
        ("s", pa.string()), ("i", pa.int32()), ("b", pa.bool_()), ("n", pa.decimal128(10, 2)), ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")), ("f", pa.float64()), ("z", pa.timestamp("us")),
    ]  # fmt: skip
    schema = pa.schema([*PLAIN, *kinds])
    log = Log.of(folder, schema, partition_by=[n for n, _ in kinds], readers=["timestampNtz"])
    day, utc = dt.date(1969, 12, 31), dt.UTC
    values: list[tuple[str | None, Any]] = [
        ("a=b/c %ü'\"", "a=b/c %ü'\""), ("-7", -7), ("TRUE", True), ("1.50", Decimal("1.50")), ("1969-12-31", day),
        ("2024-01-02T03:04:05.000006Z", dt.datetime(2024, 1, 2, 3, 4, 5, 6, utc)), ("1.5", 1.5),
        ("2024-01-02 03:04:05.000006", dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
    ]  # fmt: skip
    names = [n for n, _ in kinds]
    log.append(batch(1), "p/1.parquet", partitionValues=dict(zip(names, (t for t, _ in values), strict=True)))
    log.append(batch(2), "p/2.parquet", partitionValues=dict.fromkeys(names))
    log.append(batch(3), "p/3.parquet", partitionValues={**dict.fromkeys(names), "s": ""})
    nothing = dict.fromkeys(names)
    first = dict(zip(names, (v for _, v in values), strict=True))
    return [{**add_actions(1)[0], **first}, {**add_actions(2)[0], **nothing}, {**add_actions(3)[0], **nothing, "s": ""}]


def binary_partitions(folder: Path) -> list[dict[str, Any]]:
    """Make a table that is partitioned by bytes, which engines escape in different ways."""
    log = Log.of(folder, pa.schema([*PLAIN, ("x", pa.binary())]), partition_by=["x"])
    log.append(batch(1), "p/1.parquet", partitionValues={"x": "ab"})
    log.append(batch(2), "p/2.parquet", partitionValues={"x": None})
    return [{**add_actions(1)[0], "x": b"ab"}, {**add_actions(2)[0], "x": None}]


# -- types ----------------------------------------------------------------------------------------------------


def primitives(folder: Path) -> list[dict[str, Any]]:
    schema = pa.schema(
        {
            "id": pa.int64(),
            "byte": pa.int8(),
            "short": pa.int16(),
            "int": pa.int32(),
            "float": pa.float32(),
            "double": pa.float64(),
            "flag": pa.bool_(),
            "text": pa.string(),
            "bytes": pa.binary(),
            "day": pa.date32(),
            "d9": pa.decimal128(9, 2),
            "d18": pa.decimal128(18, 0),
            "d38": pa.decimal128(38, 18),
        }
    )
    log = Log.of(folder, schema)
    full = {
        "id": 1, "byte": -128, "short": 32767, "int": -1, "float": 1.5, "double": -0.1, "flag": True, "text": "ü\0",
        "bytes": b"\0\xff", "day": dt.date(1582, 10, 15), "d9": Decimal("-1.25"), "d18": Decimal(10**17),
        "d38": Decimal("12345678901234567890.123456789012345678"),
    }  # fmt: skip
    found = [full, {**dict.fromkeys(full), "id": 2}]
    table = pa.Table.from_pylist(found, schema)
    log.append(table, "1.parquet", parquet={"use_dictionary": False, "store_decimal_as_integer": True})
    log.append(table, "2.parquet", parquet={"compression": "gzip", "data_page_version": "2.0"})
    return [*found, *found]


def timestamps(folder: Path) -> list[dict[str, Any]]:
    """Make files with timestamps as Parquet has had them: in milliseconds, in microseconds, in 96 bits."""
    kind = pa.timestamp("us", "UTC")
    log = Log.of(folder, pa.schema([("id", pa.int64()), ("t", kind)]))
    at = dt.datetime(2024, 2, 29, 23, 59, 59, 123000, dt.UTC)
    for number, options in enumerate(({"coerce_timestamps": "ms"}, {}, {"use_deprecated_int96_timestamps": True})):
        table = pa.table({"id": [number], "t": pa.array([at], kind)})
        log.append(table, f"{number}.parquet", parquet=options)
    return [{"id": number, "t": at} for number in range(3)]


def nested(folder: Path) -> list[dict[str, Any]]:
    inner = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    kinds = [
        ("s", inner),
        ("l", pa.list_(inner)),
        ("m", pa.map_(pa.string(), inner)),
        ("ll", pa.list_(pa.list_(pa.int32()))),
    ]
    schema = pa.schema([("id", pa.int64()), *kinds])
    one = {"a": 1, "b": ["x", None]}
    found: list[dict[str, Any]] = [
        {"id": 1, "s": one, "l": [one, None], "m": [("k", one), ("n", None)], "ll": [[1], None, []]},
        {"id": 2, "s": {"a": None, "b": None}, "l": [], "m": [], "ll": []},
        {"id": 3, "s": None, "l": None, "m": None, "ll": None},
    ]
    Log.of(folder, schema).append(pa.Table.from_pylist(found, schema), "1.parquet")
    return found


def evolved(folder: Path) -> list[dict[str, Any]]:
    """Make older files that lack a column, have a dropped one, another order of columns, and a narrower type."""
    wider = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    fields = [struct_field("v", "string"), struct_field("id", "long", wider), struct_field("new", "double")]
    log = Log.of(folder, fields, readers=["typeWidening"])
    old = pa.table({"id": pa.array([1], pa.int32()), "gone": ["x"], "v": ["v1"]})
    log.append(old, "1.parquet")
    log.append(batch(2).append_column("new", pa.array([0.5])), "2.parquet")
    return [{"v": "v1", "id": 1, "new": None}, {"v": "v2", "id": 2, "new": 0.5}]


def mapped(folder: Path, mode: str) -> list[dict[str, Any]]:
    """Make files whose columns have other names than the table's, a field of a struct too."""
    inner = [struct_field("a", "integer", {PHYSICAL: "col-3", ID: 3})]
    fields = [
        struct_field("id", "long", {PHYSICAL: "col-1", ID: 1}),
        struct_field("s p", {"type": "struct", "fields": inner}, {PHYSICAL: "col-2", ID: 2}),
    ]
    settings = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "3"}
    log = Log.of(folder, fields, settings=settings, readers=["columnMapping"])

    def numbered(name: str, number: int, kind: pa.DataType) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    kind = pa.struct([numbered("col-3", 3, pa.int32())])
    schema = pa.schema([numbered("col-1", 1, pa.int64()), numbered("col-2", 2, kind)])
    log.append(pa.table([[1, 2], [{"col-3": 7}, None]], schema=schema), "1.parquet")
    return [{"id": 1, "s p": {"a": 7}}, {"id": 2, "s p": None}]


def no_variant(folder: Path) -> list[dict[str, Any]]:
    """Make a table with the features of VARIANT, but without a column of that type."""
    Log.of(folder, PLAIN, readers=["variantType-preview", "variantType"]).append(batch(1), "1.parquet")
    return add_actions(1)


# -- deletes --------------------------------------------------------------------------------------------------


def vectors(folder: Path) -> list[dict[str, Any]]:
    """Make files with deletion vectors in the log and in a file; one of the data files has no statistics."""
    settings = {"delta.enableDeletionVectors": "true"}
    log = Log.of(folder, PLAIN, settings=settings, readers=["deletionVectors"])
    before = log.add(batch(1, 2, 3), "1.parquet")
    log.commit(before)
    after = {**before["add"], "deletionVector": inline_vector([0, 2])}
    log.commit(log.remove("1.parquet"), {"add": after})
    log.append(batch(4, 5), "2.parquet", deletionVector=vector_file(folder, [1]), stats=None)
    return add_actions(2, 4)


# -- cleaned-up logs ------------------------------------------------------------------------------------------


def cleaned(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Make a log that has a checkpoint, and only the commits from the checkpoint's version on."""
    log = Log.of(folder, PLAIN, readers=["v2Checkpoint"] if kind in ("json", "parquet") else [])
    for number in range(4):
        log.append(batch(number), f"{number}.parquet")
    log.commit(log.remove("0.parquet"), {"txn": {"appId": "a", "version": 3}})
    if kind in ("json", "parquet"):
        log.second_version(kind)
    elif kind == "parts":
        log.in_parts()
    else:
        log.classic(*(as_values(log) if kind == "values" else ()))
    if kind == "beside half of the parts":
        log.in_parts(written=2)
    log.forget(log.version)
    log.append(batch(9), "9.parquet")
    return add_actions(1, 2, 3, 9)


def as_values(log: Log) -> tuple[pa.Schema, list[dict[str, Any]]]:
    """Return a checkpoint that has statistics as structs, and none as text."""
    bounds = pa.struct([("id", pa.int64())])
    parsed = pa.struct(
        [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", bounds)]
    )
    kind = CHECKPOINT.field("add").type
    file = pa.struct([*(f for f in kind if f.name != "stats"), pa.field("stats_parsed", parsed)])
    schema = CHECKPOINT.set(CHECKPOINT.get_field_index("add"), pa.field("add", file))
    found = []
    for row in log.rows():
        if "add" not in row:
            found.append(row)
            continue
        body = {key: value for key, value in row["add"].items() if key != "stats"}
        number = int(body["path"].removesuffix(".parquet"))
        stats = json.loads(row["add"]["stats"]) | {"minValues": {"id": number}, "maxValues": {"id": number}}
        found.append({"add": {**body, "stats_parsed": {**stats, "nullCount": {"id": 0}}}})
    return schema, found


CLEANED: Final = ("classic", "parts", "json", "parquet", "beside half of the parts", "values")
SHAPES: Final[dict[str, Shape]] = {
    "statistics": Shape(statistics, by_delta_rs=False),
    "strangers": Shape(strangers, by_delta_rs=False),
    "removed": Shape(removed),
    "escaped paths": Shape(escaped_paths),
    "absolute paths": Shape(absolute_paths, by_delta_rs=False),
    "partitions": Shape(partitions),
    "binary partitions": Shape(binary_partitions, appended=False),
    "primitives": Shape(primitives),
    "timestamps": Shape(timestamps),
    "nested": Shape(nested),
    "evolved": Shape(evolved, by_delta_rs=False),
    "mapped by name": Shape(partial(mapped, mode="name"), by_delta_rs=False),
    "mapped by id": Shape(partial(mapped, mode="id"), by_delta_rs=False),
    "no variant": Shape(no_variant, by_delta_rs=False),
    "vectors": Shape(vectors, by_delta_rs=False),
    **{f"cleaned up to {kind}": Shape(partial(cleaned, kind=kind)) for kind in CLEANED},
}
