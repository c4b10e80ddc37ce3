"""Compaction in this process: every strength keeps the merged rows, on every format, without Spark."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.refusals import refused
from trinity import Column, Session, Table
from trinity.engine.compacting.local.compactor import LOG_ROWS_AT_ONCE
from trinity.engine.compacting.local.parts import BYTES_IN_MEMORY
from trinity.spi import Tier

pytestmark = pytest.mark.inner

Row = dict[str, Any]

COLUMNS = [
    Column("name", "string", nullable=False),
    Column("number", "bigint", nullable=False),
    Column("day", "date", nullable=False),
    Column("ts", "bigint"),
    Column("gone", "boolean"),
    Column("v", "string"),
    Column("deep", "struct<a:int,b:array<string>>"),
]
KEYS = {"number": ["number"], "text": ["name"], "both": ["name", "number"]}
OPTIONS = {
    "late rows": {"watermark-key": "ts", "tombstone-key": "gone", "bucket": "3"},
    "arrival": {},
    "hidden tombstones": {"watermark-key": "ts", "bucket": "2"},
    "first rows": {"merge-engine": "first-row", "bucket": "2"},
}


def row(number: int, draw: random.Random, commit: int) -> Row:
    return {
        "name": f"n{number % 100:03d}é{number}",
        "number": number,
        "day": dt.date(2024, 1, 1 + number % 3),
        "ts": draw.choice([None, commit - 2, commit - 1, commit, commit + 1]),
        "gone": draw.random() < 0.2,
        "v": f"{commit}",
        "deep": {"a": number, "b": [str(commit), None]} if number % 3 else None,
    }


def upsert(table: Table, rows: list[Row]) -> None:
    table.upsert(pa.Table.from_pylist(rows, table.definition.to_arrow()))


def shown(table: Table) -> list[Row]:
    rows = table.to_arrow().sort_by([("number", "ascending"), ("name", "ascending")])
    return rows.to_pylist()  # type: ignore[no-any-return]


def model(options: dict[str, str], commits: list[list[Row]]) -> dict[int, Row]:
    """Return the winning row of each key by the rules K3, K4, U3 and E2."""
    won: dict[int, Row] = {}
    for r in (r for commit in commits for r in commit):
        old = won.get(r["number"])
        if old is not None and options.get("merge-engine") == "first-row":
            continue
        if old is not None and "watermark-key" in options and rank(r) < rank(old):
            continue
        won[r["number"]] = r
    return {n: r for n, r in won.items() if not ("tombstone-key" in options and r["gone"])}


def rank(r: Row) -> tuple[bool, int]:
    return r["ts"] is not None, r["ts"] or 0


@pytest.mark.parametrize(
    ("kind", "partition_by"),
    [
        *((kind, ()) for kind in OPTIONS),
        ("late rows", ("day",)),
        pytest.param("arrival", ("day",), marks=pytest.mark.full),
    ],
)
def test_no_compaction_changes_what_reads_show(
    local: Session, local_fmt: str, kind: str, partition_by: tuple[str, ...]
) -> None:
    draw = random.Random(f"{local_fmt}{kind}{partition_by}")
    key, options = [*KEYS[draw.choice(sorted(KEYS))], *partition_by], OPTIONS[kind]
    table = local.create_table(
        f"{local_fmt}.default.t", COLUMNS, primary_key=key, properties=options, partition_by=partition_by
    )
    commits: list[list[Row]] = []
    done = set[str]()
    for commit in range(8):
        numbers = draw.sample(range(60 + 20 * commit), 50)
        commits.append([row(n, draw, commit) for n in numbers])
        upsert(table, commits[-1])
        strength = draw.choice(["", "minor", "resolve", "resolve", "full"])
        if strength and not table.compact(strength).skipped:
            done.add(strength)
        found = shown(table)
        wanted = model(options, commits)
        assert [(r["number"], r["v"], r["deep"]) for r in found] == [
            (n, wanted[n]["v"], wanted[n]["deep"]) for n in sorted(wanted)
        ], (strength, commit)
    assert len(done) > 1
    table.compact("full")
    assert {f.tier for f in table.splits().files} == {Tier.BASE}
    assert len(shown(table)) == len(model(options, commits))
    for file in table.splits().files:
        keys = pq.read_table(file.path, columns=key)
        order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in key])
        assert order.to_pylist() == list(range(len(keys))), file.path


@BYTES_IN_MEMORY.set_to(1000)
def test_rows_that_memory_should_not_hold_wait_on_the_disk(local: Session, local_fmt: str) -> None:
    columns = [Column("k", "bigint"), Column("v", "string")]
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"], properties={"bucket": "5"})
    for commit in range(3):
        table.upsert(pa.table({"k": range(commit * 500, commit * 500 + 1000), "v": [str(commit)] * 1000}))
    assert table.compact("full").rows == 2000
    assert len(table.splits().files) == 5
    found = table.to_arrow().sort_by("k")
    assert found.column("v").to_pylist() == ["0"] * 500 + ["1"] * 500 + ["2"] * 1000


def test_a_full_disk_is_said_with_the_remedy_and_the_table_is_as_it_was(
    local: Session, local_fmt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = local.create_table(f"{local_fmt}.default.t", [Column("k", "bigint")], primary_key=["k"])
    for _ in range(2):
        table.upsert(pa.table({"k": range(1000)}))
    version = table.splits().version

    def full(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.ipc.new_file", full)
    with BYTES_IN_MEMORY.set_to(1), refused("FILESYSTEM_ERROR", "TMPDIR"):
        table.compact("full")
    assert table.splits().version == version
    assert table.to_arrow().num_rows == 1000


def test_keys_that_were_deleted_stay_away_without_a_watermark(local: Session, local_fmt: str) -> None:
    columns = [Column("k", "bigint"), Column("v", "string")]
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"], properties={"bucket": "2"})
    for strength in ("full", "full", "minor", "resolve", "full"):
        table.upsert(pa.table({"k": range(10), "v": ["a"] * 10}))
        table.compact("full")
        table.delete([3, 4, 5])
        table.upsert(pa.table({"k": [4], "v": ["b"]}))
        table.compact(strength)
        assert table.to_arrow().sort_by("k").column("k").to_pylist() == [0, 1, 2, 4, 6, 7, 8, 9], strength


def test_a_full_compaction_forgets_expired_tombstones_though_nothing_was_written_since(local_orders: Table) -> None:
    local_orders.upsert([{"order_id": "1", "ts": 1, "amount": 1.0}, {"order_id": "2", "ts": 1, "amount": 2.0}])
    local_orders.delete(["1"])
    local_orders.compact("full")
    assert local_orders.compact("full").skipped
    local_orders.set_properties({"tombstone.retention": "1 day"})
    assert local_orders.compact("full").skipped
    local_orders.set_properties({"tombstone.retention": "0 seconds"})
    local_orders.compact("full")
    assert [row["order_id"] for row in local_orders.log()] == ["2"]
    assert local_orders.compact("full").skipped


def test_tombstones_expire_where_no_row_is_left(local_orders: Table) -> None:
    """There is neither a base nor a log then, by whose commit numbers the compaction's is found."""
    local_orders.upsert([{"order_id": "1", "ts": 2, "amount": 1.0}, {"order_id": "2", "ts": 2, "amount": 2.0}])
    local_orders.delete()
    local_orders.compact("full")
    assert [row["_tier"] for row in local_orders.log()] == ["sidecar", "sidecar"]
    local_orders.set_properties({"tombstone.retention": "0 seconds"})
    local_orders.compact("full")
    assert local_orders.log().collect() == []
    assert local_orders.compact("full").skipped
    local_orders.upsert([{"order_id": "1", "ts": 1, "amount": 3.0}])
    assert local_orders.to_arrow(["amount"]).to_pylist() == [{"amount": 3.0}]


@LOG_ROWS_AT_ONCE.set_to(700)
def test_of_a_large_log_a_share_of_the_keys_is_folded_at_a_time(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.t", COLUMNS, primary_key=["name"], properties=OPTIONS["late rows"])
    draw, commits = random.Random(3), list[list[Row]]()
    for strength in ("minor", "full", "resolve", "full"):
        for _ in range(2):
            commits.append([row(n, draw, len(commits)) for n in draw.sample(range(1500), 1000)])
            upsert(table, commits[-1])
        table.compact(strength)
        wanted = model(OPTIONS["late rows"], commits)
        assert [(r["number"], r["v"]) for r in shown(table)] == [(n, wanted[n]["v"]) for n in sorted(wanted)], strength


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["", "partitioned"])
def test_a_plain_tables_files_become_few(local: Session, local_fmt: str, partition_by: tuple[str, ...]) -> None:
    columns = [Column("k", "bigint"), Column("p", "string")]
    table = local.create_table(f"{local_fmt}.default.t", columns, partition_by=partition_by)
    for commit in range(4):
        table.append(pa.table({"k": range(commit, commit + 3), "p": ["a", "b", None]}))
    before = sorted(table.to_arrow().to_pylist(), key=str)
    assert table.compact().rows == 12
    assert len(table.splits().files) == (3 if partition_by else 1)
    assert sorted(table.to_arrow().to_pylist(), key=str) == before
    assert table.compact().skipped


def test_a_scheduler_keeps_tables_up(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.t", [Column("k", "bigint")], primary_key=["k"])
    for commit in range(3):
        table.upsert(pa.table({"k": [commit]}))
    assert table.health().strength == "full"
    [done] = local.maintain(f"{local_fmt}.default", vacuum="0 seconds")
    assert (done.error, done.strength) == (None, "full")
    assert table.health().strength is None
    assert table.to_arrow().column("k").to_pylist() == [0, 1, 2]


def test_a_writer_compacts_when_its_trigger_says_so(local: Session, local_fmt: str) -> None:
    options = {"full-compaction.delta-commits": "3"}
    table = local.create_table(f"{local_fmt}.default.t", [Column("k", "bigint")], primary_key=["k"], properties=options)
    for commit in range(3):
        table.upsert(pa.table({"k": [commit]}))
    assert [f.tier for f in table.splits().files] == [Tier.BASE]
