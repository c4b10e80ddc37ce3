"""The change feed in this process on generated histories, on every format, without Spark (C1-C6)."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from tests.support.tables import keyed_table
from trinity import Column, Session, Table, TrinityError

Row = dict[str, Any]
KINDS = {"insert", "delete", "update_preimage", "update_postimage"}
COLUMNS = [
    Column("k", "bigint", nullable=False),
    Column("ts", "bigint"),
    Column("gone", "boolean"),
    Column("v", "double"),
    Column("deep", "struct<a:int,b:array<string>>"),
    Column("m", "map<string,int>"),
]
OPTIONS = {
    "late rows": {"watermark-key": "ts", "tombstone-key": "gone"},
    "arrival": {},
    "first rows": {"merge-engine": "first-row"},
    "on disk": {"watermark-key": "ts", "tombstone-key": "gone", "changelog-producer": "lookup"},
    "groups": {"merge-engine": "partial-update", "fields.ts.sequence-group": "v,deep"},
    "last values": {"merge-engine": "aggregation", "fields.gone.aggregate-function": "bool_or"},
    "rounds": {"watermark-key": "ts", "tombstone-key": "gone", "changelog-producer": "full-compaction"},
}


def row(k: int, draw: random.Random) -> Row:
    deep = {"a": k, "b": [str(draw.randrange(2)), None]} if k % 3 else None
    return {
        "k": k,
        "ts": draw.choice([None, 1, 2, 3]),
        "gone": draw.random() < 0.3,
        "v": draw.choice([None, 0.0, -0.0, float("nan"), 1.5]),
        "deep": deep,
        "m": draw.choice([None, [("a", 1), ("b", 2)], [("b", 2), ("a", 1)]]),
    }


def comparable(value: Any) -> Any:
    """Return a row's values in a hashable form that is equal where Spark's ``<=>`` is true."""
    if isinstance(value, dict):
        return tuple((name, comparable(v)) for name, v in value.items() if not name.startswith("_"))
    if isinstance(value, list):
        items = [comparable(v) for v in value]
        return tuple(sorted(items)) if items and isinstance(items[0], tuple) else tuple(items)
    if isinstance(value, tuple):
        return tuple(map(comparable, value))
    return repr(value + 0.0) if isinstance(value, float) else value


def merged(table: Table, version: int) -> dict[int, Any]:
    return {r["k"]: comparable(r) for r in table.to_arrow(version=version).to_pylist()}


def wanted(before: dict[int, Any], after: dict[int, Any]) -> Counter[tuple[str, Any]]:
    """Return the changes between two merged reads."""
    found: Counter[tuple[str, Any]] = Counter()
    for k in before.keys() | after.keys():
        old, new = before.get(k), after.get(k)
        if old is None:
            found["insert", new] += 1
        elif new is None:
            found["delete", old] += 1
        elif old != new:
            found["update_preimage", old] += 1
            found["update_postimage", new] += 1
    return found


def shown(changes: Any) -> Counter[tuple[str, Any]]:
    return Counter((r["_change_type"], comparable(r)) for r in changes.to_arrow().to_pylist())


@pytest.mark.parametrize("kind", OPTIONS)
def test_changes_lead_from_one_read_to_the_next(local: Session, local_fmt: str, kind: str) -> None:
    draw = random.Random(f"{local_fmt}{kind}")
    table = keyed_table(local, local_fmt, COLUMNS, bucket="2", **OPTIONS[kind])
    start = table.splits().version
    ends = [start]  # the versions with visible changes
    for _ in range(8):
        rows = [row(k, draw) for k in draw.sample(range(40), 12)]
        table.upsert(pa.Table.from_pylist(rows, table.definition.to_arrow()))
        if kind != "rounds":
            ends.append(table.splits().version)
        strength = draw.choice(["", "full"] if kind == "rounds" else ["", "minor", "resolve", "full"])
        if strength and not table.compact(strength).skipped and kind == "rounds":
            ends.append(table.splits().version)
    reads = {version: merged(table, version) for version in ends}
    assert shown(table.changes(ends[-1])) == Counter()
    for before, after in pairwise(ends):
        assert shown(table.changes(before, after)) == wanted(reads[before], reads[after]), (before, after)
    every = table.changes(start, ends[-1])
    assert every.engine == "local"
    assert every.to_arrow().schema.names == [
        *(c.name for c in COLUMNS), "_change_type", "_commit_version", "_commit_timestamp",
    ]  # fmt: skip
    assert shown(every) == sum((wanted(reads[a], reads[b]) for a, b in pairwise(ends)), Counter())
    net = table.changes(start, ends[-1], deduplication_mode="netChanges")
    assert shown(net) == wanted(reads[start], reads[ends[-1]])


def test_changes_on_disk_are_read_from_there(local: Session, local_fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed_table(local, local_fmt, COLUMNS, bucket="2", **OPTIONS["on disk"])
    start = table.splits().version
    for ts in (1, 2):
        table.upsert(pa.table({"k": range(ts, ts + 3), "ts": [ts] * 3, "v": [float(ts)] * 3}))
    monkeypatch.delattr("trinity.engine.feed.local.change_feed.whole_row_pairs")
    found = table.changes(start).to_arrow().select(["k", "v", "_change_type"]).to_pylist()
    assert Counter((r["k"], r["v"], r["_change_type"]) for r in found) == Counter(
        [
            *((k, 1.0, "insert") for k in (1, 2, 3)),
            *((k, 1.0, "update_preimage") for k in (2, 3)),
            *((k, 2.0, "update_postimage") for k in (2, 3)),
            (4, 2.0, "insert"),
        ]
    )


def test_the_log_tells_where_each_version_is(local: Session, local_fmt: str) -> None:
    table = keyed_table(local, local_fmt, COLUMNS, bucket="2", **OPTIONS["late rows"])
    table.upsert(pa.table({"k": [1, 2, 3], "ts": [1, 1, 1]}))
    table.compact("full")
    table.upsert(pa.table({"k": [2, 3], "ts": [2, 2], "gone": [False, True]}))
    table.compact("resolve")
    table.upsert(pa.table({"k": [4], "ts": [1]}))
    found = table.log().collect()
    assert sorted((r.k, r.ts, r._tier) for r in found) == [
        (1, 1, "base"), (2, 2, "base"), (3, 2, "sidecar"), (4, 1, "log"),
    ]  # fmt: skip
    files = {f.path: f for f in (*table.splits().files, *table.splits().sidecar)}
    assert {r._file for r in found} <= files.keys()
    assert all(r._commit_version == files[r._file].commit and r._pos >= 0 for r in found)


def test_forms_and_times(local: Session, local_fmt: str) -> None:
    columns = [Column("k", "bigint"), Column("v", "string")]
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"])
    start = table.splits().version
    table.upsert(pa.table({"k": [1, 2], "v": ["a", "b"]}))
    table.upsert(pa.table({"k": [1, 2], "v": ["a", "c"]}))
    table.add_column(Column("w", "int"))
    last = table.splits().version
    table.upsert(pa.table({"k": [2], "v": ["d"], "w": [5]}))
    kinds = [r["_change_type"] for r in table.changes(last).to_arrow().to_pylist()]
    assert sorted(kinds) == ["update_postimage", "update_preimage"]
    without = table.changes(start, preimages=False).to_arrow().to_pylist()
    assert sorted((r["k"], r["v"], r["w"], r["_change_type"]) for r in without) == [
        (1, "a", None, "insert"), (2, "b", None, "insert"), (2, "c", None, "update_postimage"),
        (2, "d", 5, "update_postimage"),
    ]  # fmt: skip
    plain = table.changes(last, compute_updates=False).to_arrow().to_pylist()
    assert sorted((r["v"], r["_change_type"]) for r in plain) == [("c", "delete"), ("d", "insert")]
    times = {r.version: r.timestamp for r in table.history().collect()}
    for r in table.changes(start).collect():
        assert r._commit_timestamp == times[r._commit_version]


def test_a_plain_tables_rows_are_counted(local: Session, local_fmt: str) -> None:
    columns = [Column("k", "bigint"), Column("v", "double"), Column("s", "struct<a:int>")]
    table = local.create_table(f"{local_fmt}.default.t", columns)
    start = table.splits().version
    rows = {"k": [1, 1, None], "v": [0.0, -0.0, float("nan")], "s": [{"a": None}, {"a": None}, None]}
    schema = table.definition.to_arrow()
    table.append(pa.table(rows, schema))
    first = table.splits().version
    table.append(pa.table(rows, schema))
    table.compact()
    assert shown(table.changes(first)) == shown(table.changes(start, first))
    assert table.changes(start).to_arrow().num_rows == 6
    assert {r["_commit_version"] for r in table.changes(first).to_arrow().to_pylist()} == {first + 1}
    net = table.changes(start, deduplication_mode="netChanges").to_arrow()
    assert (net.num_rows, set(net.column("_change_type").to_pylist())) == (6, {"insert"})


def test_rows_are_shown_as_they_came(local: Session, local_fmt: str) -> None:
    columns = [Column("k", "int"), Column("v", "bigint"), Column("op", "string")]
    options = {"changelog-producer": "input", "rowkind.field": "op"}
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"], properties=options)
    start = table.splits().version
    keys = pa.array([1, 2, 3], pa.int32())
    table.upsert(pa.table({"k": keys, "v": [1, 2, 3], "op": ["+I", "+U", "-U"]}))
    table.upsert(pa.table({"k": keys[:1], "v": [9], "op": ["-D"]}))
    table.compact("full")
    rows = table.changes(start).to_arrow().to_pylist()
    assert [(r["k"], r["v"], r["_change_type"]) for r in rows] == [
        (1, 1, "insert"), (2, 2, "update_postimage"), (3, 3, "update_preimage"), (1, 9, "delete"),
    ]  # fmt: skip
    assert len({r["_commit_version"] for r in rows}) == 2
    plain = table.changes(start, compute_updates=False).to_arrow().column("_change_type").to_pylist()
    assert plain == ["insert", "insert", "delete", "delete"]
    with pytest.raises(TrinityError, match="there are no net ones") as refused:
        table.changes(start, deduplication_mode="netChanges")
    assert refused.value.code == "INVALID_ARGUMENTS"


def test_rows_of_some_columns_are_shown_as_they_came(local: Session, local_fmt: str) -> None:
    columns = [Column("k", "int"), Column("v", "bigint"), Column("w", "bigint")]
    options = {"changelog-producer": "input", "merge-engine": "partial-update"}
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"], properties=options)
    start, key = table.splits().version, pa.array([1], pa.int32())
    table.upsert(pa.table({"k": key, "v": [1]}))
    table.upsert(pa.table({"k": key, "w": [9]}))
    table.update("k = 1", {"v": "v + 1"})
    rows = table.changes(start).to_arrow().to_pylist()
    assert [(r["v"], r["w"], r["_change_type"]) for r in rows] == [
        (1, None, "insert"), (None, 9, "insert"), (2, None, "update_postimage"),
    ]  # fmt: skip


def test_what_needs_spark_is_said_by_name(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.t", [Column("v", "array<int>")])
    table.append(pa.table({"v": pa.array([[1]], pa.list_(pa.int32()))}))
    with pytest.raises(TrinityError, match=r"changes\(\) of '.*' needs Spark: Arrow does not compare") as error:
        table.changes(table.splits().version - 1)
    assert error.value.code == "NOT_SUPPORTED"


@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
def test_a_delete_of_a_row_that_says_update_is_a_delete(local: Session, fmt: str) -> None:
    columns = [Column("k", "int"), Column("kind", "string"), Column("gone", "boolean")]
    properties = {"changelog-producer": "input", "rowkind.field": "kind", "tombstone-key": "gone"}
    table = local.create_table(f"{fmt}.default.t", columns, primary_key=["k"], properties=properties)
    row = {"k": pa.array([1], pa.int32()), "kind": ["+U"], "gone": pa.array([None], pa.bool_())}
    before = table.upsert(pa.table(row)).version
    table.delete([{"k": 1}])
    assert table.changes(before).to_arrow()["_change_type"].to_pylist() == ["delete"]
