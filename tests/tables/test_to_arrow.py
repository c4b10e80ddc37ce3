"""Merged rows as Arrow data, in this process: the same as those of ``to_df``, and no JVM."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.counting import counted
from trinity import Column, Session, Table, TrinityError
from trinity.engine.reading.plan import FoldPlan, plan_read

pytestmark = pytest.mark.inner

OF_ALL_TYPES = {
    "k": "bigint",
    "tiny": "tinyint",
    "small": "smallint",
    "flag": "boolean",
    "real": "float",
    "wide": "double",
    "amount": "decimal(12,3)",
    "fixed": "char(5)",
    "short": "varchar(7)",
    "raw": "binary",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "clock": "time(6)",
    "items": "array<struct<a:int,b:string>>",
    "named": "map<string,decimal(5,2)>",
}
FULL: dict[str, Any] = {
    "k": 1,
    "tiny": -128,
    "small": 32767,
    "flag": True,
    "real": 1.5,
    "wide": float("nan"),
    "amount": Decimal("-123456789.125"),
    "fixed": "ab",
    "short": "äöü",
    "raw": b"\0\xff",
    "day": dt.date(1582, 10, 10),
    "at": dt.datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=dt.UTC),
    "local": dt.datetime(1900, 1, 1, 0, 0, 0, 1),
    "clock": dt.time(23, 59, 59, 999999),
    "items": [{"a": 1, "b": None}, None],
    "named": [("x", Decimal("1.25"))],
}


def columns(kinds: dict[str, str]) -> list[Column]:
    return [Column(name, kind) for name, kind in kinds.items()]


def of_spark(table: Table, **options: Any) -> list[Any]:
    return sorted(map(repr, table.to_df(**options).toArrow().to_pylist()))


def in_process(table: Table, **options: Any) -> list[Any]:
    return sorted(map(repr, table.to_arrow(**options).to_pylist()))


def test_values_of_every_type_are_those_of_to_df(session: Session, fmt: str) -> None:
    table = session.create_table(f"{fmt}.default.t", columns(OF_ALL_TYPES), primary_key=["k"])
    schema = pa.schema([c.to_arrow() for c in columns(OF_ALL_TYPES)])
    table.upsert(pa.Table.from_pylist([FULL, {"k": 2}, {**FULL, "k": 3}], schema))
    table.compact(full=True)
    table.upsert(pa.Table.from_pylist([{"k": 3}, {**FULL, "k": 4}], schema))
    found = table.to_arrow()
    assert found.schema.types == schema.types
    wanted = table.to_df().toArrow().cast(schema)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def test_versions_columns_predicates_and_limits(session: Session, fmt: str) -> None:
    kinds = {"id": "bigint", "ts": "bigint", "gone": "boolean", "V": "string"}
    options = {"watermark-key": "ts", "tombstone-key": "gone"}
    table = session.create_table(f"{fmt}.default.t", columns(kinds), primary_key=["id"], properties=options)
    table.upsert(pa.table({"id": range(100), "ts": [5] * 100, "gone": [False] * 100, "V": ["a"] * 100}))
    table.compact(full=True)
    first = table.splits().version
    table.upsert(pa.table({"id": range(50, 120), "ts": [4, 6] * 35, "gone": [False, True] * 35, "V": ["b"] * 70}))
    table.compact("resolve")
    table.upsert(pa.table({"id": range(10), "ts": [7] * 10, "gone": [False] * 10, "V": ["c"] * 10}))
    assert in_process(table) == of_spark(table)
    assert in_process(table, version=first) == of_spark(table, version=first)
    assert in_process(table, where="id < 7 AND v = 'c'") == of_spark(table, where="id < 7 AND V = 'c'")
    assert table.to_arrow(["v", "ID"]).column_names == ["V", "id"]
    assert table.to_arrow(limit=3).num_rows == 3
    assert table.to_arrow(limit=0).num_rows == 0
    assert table.to_arrow(where="id < 50", limit=4).num_rows == 4


@pytest.mark.parametrize(
    ("options", "code", "names"),
    [
        ({"columns": ["id", "nothing"]}, "COLUMN_NOT_FOUND", "'nothing'"),
        ({"columns": ["id", "ID"]}, "DUPLICATE_COLUMN_NAME", "twice"),
        ({"limit": -1}, "INVALID_ARGUMENTS", "limit=-1"),
        ({"version": 1, "timestamp": "2024-01-01"}, "INVALID_ARGUMENTS", "not both"),
        ({"version": 99}, "INVALID_ARGUMENTS", "99"),
        ({"where": "nothing = 1"}, "COLUMN_NOT_FOUND", "nothing"),
    ],
)
def test_what_is_refused(session: Session, options: dict[str, Any], code: str, names: str) -> None:
    table = session.create_table("parquet.default.t", columns({"id": "bigint"}), primary_key=["id"])
    with pytest.raises(TrinityError, match=names) as caught:
        table.to_arrow(**options)
    assert caught.value.code == code


FOLDED = {
    "groups": {  # compaction keeps its row versions for late rows
        "merge-engine": "partial-update",
        "rowkind.field": "kind",
        "fields.v.sequence-group": "n,text",
        "fields.n.aggregate-function": "sum",
        "fields.text.aggregate-function": "listagg",
        "fields.text.ignore-retract": "true",
        "partial-update.remove-record-on-sequence-group": "v",
    },
    "totals": {  # its base rows need no older row versions
        "merge-engine": "aggregation",
        "rowkind.field": "kind",
        "fields.n.aggregate-function": "sum",
        "fields.v.aggregate-function": "max",
        "fields.v.ignore-retract": "true",
    },
}


@pytest.mark.parametrize("options", FOLDED)
def test_base_sidecar_and_log_are_folded_by_column(session: Session, tiered_fmt: str, options: str) -> None:
    kinds = {"id": "bigint", "kind": "string", "v": "int", "n": "bigint", "text": "string"}
    table = session.create_table(
        f"{tiered_fmt}.default.t", columns(kinds), primary_key=["id"], properties=FOLDED[options] | {"bucket": "2"}
    )

    def put(ids: range, kind: str, v: int, n: int) -> None:
        some = len(ids)
        rows = [list(ids), [kind] * some, [v] * some, [n] * some, [f"v{v}"] * some]
        table.upsert(pa.table(dict(zip(kinds, rows, strict=True))))

    put(range(40), "+I", 5, 10)
    put(range(5, 10), "-D", 6, 1)
    table.delete([0, 1])
    table.compact(full=True)
    put(range(3, 30), "+I", 4, 100)
    put(range(8, 12), "-U", 9, 7)
    table.delete([20])
    put(range(19, 22), "+U", 7, 1000)
    assert plan_read(table.splits()).not_local is None
    assert in_process(table) == of_spark(table)
    assert in_process(table, columns=["n"]) == sorted(map(repr, table.to_df().select("n").toArrow().to_pylist()))
    table.compact("resolve")
    put(range(35, 45), "+I", 8, 3)
    assert in_process(table) == of_spark(table)


def test_what_this_process_leaves_to_spark_is_planned_once(session: Session) -> None:
    table = session.create_table("parquet.default.t", [Column("k", "int"), Column("v", "string")], primary_key=["k"])
    table.upsert(pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    where = "hash(k) = hash(2)"
    with counted(FoldPlan, "of") as planned:
        assert table.to_arrow(where=where).column("v").to_pylist() == ["b"]
    assert planned.total() == 1
    with counted(FoldPlan, "of") as planned:
        assert "only Spark evaluates 'HASH(k)'" in table.explain(where=where)
    assert planned.total() == 1


def test_no_jvm_is_started(tmp_path: Path) -> None:
    """Upserts, deletes by key and reads of tables that the same program makes."""
    code = f"""
import sys, pyarrow as pa, trinity
from trinity import Column
session = trinity.connect({str(tmp_path)!r})
for catalog in ("parquet", "delta", "iceberg"):
    table = session.create_table(catalog + ".default.t", [Column("k", "int"), Column("v", "string")], primary_key=["k"])
    table.upsert(pa.table({{"k": [1, 2], "v": ["a", "a"]}}))
    table.upsert(pa.table({{"k": [2, 3], "v": ["b", "b"]}}))
    print(sorted(table.to_arrow()["v"].to_pylist()))
print([name for name in ("pyspark", "py4j") if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split("\n") == [*["['a', 'b', 'b']"] * 3, "[]", ""]


def test_a_missing_file_is_named(session: Session, fmt: str) -> None:
    table = session.create_table(f"{fmt}.default.t", columns({"id": "bigint"}), primary_key=["id"])
    table.upsert(pa.table({"id": [1]}))
    [file] = table.splits().files
    Path(file.path).unlink()
    with pytest.raises(TrinityError, match=file.name) as caught:
        table.to_arrow()
    assert caught.value.code == "BAD_DATA"
