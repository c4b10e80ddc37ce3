"""The files that a compaction replaces: those that it makes better, and no others; ``health()`` names the same ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import trinity
from tests.support.delta_by_hand import inline_vector
from tests.support.tables import arrow_rows
from trinity import Column, Session, Table
from trinity.engine.compacting.compactor import DeleteTask
from trinity.spi import DataFile, Tier
from trinity.storage.merge_sinks import FILE_BYTES

pytestmark = pytest.mark.inner

LARGE = pa.table({"k": range(20_000)})
SMALL = pa.table({"k": range(10)})
KEYED = [Column("p", "string", nullable=False), Column("k", "bigint", nullable=False), Column("v", "bigint")]


def plain(session: Session, fmt: str, *parts: pa.Table) -> Table:
    table = session.create_table(f"{fmt}.default.plain", [Column("k", "bigint")])
    for rows in parts:
        table.append(rows)
    return table


def paths(table: Table, tier: Tier = Tier.LOG) -> set[str]:
    return {f.path for f in table.splits().files if f.tier is tier}


def delete_by_position(table: Table, file: DataFile, *positions: int) -> None:
    """Delete rows of a file as an engine does that writes deletes by position."""
    splits, connector = table.splits(), table.connector
    if table.name.catalog == "delta":
        _add_vector(Path(file.path.removesuffix(file.name), "_delta_log"), splits.version, file, positions)
        return
    pinned = table.handle.pinned(splits.version, splits.definition.id)
    handle = connector.metadata.begin_resolve(pinned, (), splits.files)
    written = DeleteTask(connector.sinks, handle, {0: file}).write(0, {0: [pa.array(positions, pa.int64())]})
    connector.metadata.finish_resolve(handle, [], written)


def _add_vector(log: Path, version: int, file: DataFile, positions: Sequence[int]) -> None:
    lines = [json.loads(line) for path in log.glob("*.json") for line in path.read_text().splitlines()]
    [added] = [line["add"] for line in lines if line.get("add", {}).get("path") == file.name]
    *_, protocol = [line["protocol"] for line in lines if "protocol" in line]
    for features in ("readerFeatures", "writerFeatures"):
        protocol[features] = sorted({*protocol.get(features, ()), "deletionVectors"})
    protocol["minReaderVersion"] = 3
    removed = {"path": file.name, "deletionTimestamp": 1, "dataChange": True}
    changed = {**added, "deletionVector": inline_vector(positions)}
    actions = [{"protocol": protocol}, {"remove": removed}, {"add": changed}]
    (log / f"{version + 1:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def test_small_files_join_each_other_and_large_ones_stay(local: Session, local_fmt: str) -> None:
    table = plain(local, local_fmt, LARGE, SMALL, LARGE, SMALL, SMALL, LARGE)
    large = {f.path for f in table.splits().files if f.rows == LARGE.num_rows}
    before = arrow_rows(table)
    with FILE_BYTES.set_to(min(f.size for f in table.splits().files if f.path in large) + 1):
        assert (table.health().strength, table.health().advice) == ("minor", "compact(): 3 files are small.")
        assert table.compact().rows == 30
        assert len(paths(table)) == 4
        assert large < paths(table)
        assert (table.health().strength, table.compact("full").skipped) == (None, True)
    assert arrow_rows(table) == before


def test_files_of_a_good_size_stay_though_fewer_would_do(local: Session, local_fmt: str) -> None:
    table = plain(local, local_fmt, *[LARGE] * 10)
    with FILE_BYTES.set_to(max(f.size for f in table.splits().files) * 128 // 70):
        assert table.health().advice == "Its files have a good size."
        assert table.compact().skipped
        assert table.compact("full").skipped


@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
def test_a_row_deleted_by_position_rewrites_its_file_alone(local: Session, fmt: str) -> None:
    table = plain(local, fmt, LARGE, LARGE, LARGE)
    file, *others = table.splits().files
    delete_by_position(table, file, 5)
    before = arrow_rows(table)
    assert len(before) == 59_999
    with FILE_BYTES.set_to(max(f.size for f in table.splits().files) + 1):
        assert table.compact().skipped
        assert table.compact("full").rows == 19_999
    assert {f.path for f in others} < paths(table)
    assert len(paths(table)) == 3
    assert not any(f.deletes for f in table.splits().files)
    assert arrow_rows(table) == before


@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
def test_the_size_of_what_is_folded_chooses_the_executor(local: Session, fmt: str, warehouse: Path) -> None:
    table = local.create_table(f"{fmt}.default.t", KEYED, primary_key=["k"])
    table.upsert(pa.table({"p": ["a"] * 50_000, "k": range(50_000), "v": range(50_000)}))
    table.compact("full")
    for n in range(2):
        table.upsert(pa.table({"p": ["b"], "k": [n], "v": [n]}))
    log = sum(f.size for f in table.splits().files if f.tier is Tier.LOG)
    with trinity.connect(warehouse, catalog=fmt, local_bytes=log) as session:
        assert session.table("t").compact("minor").rows == 2
        assert session.running_spark is None
    assert len(paths(table)) == 1


def upsert(table: Table, p: str, first: int, count: int, v: int = 0) -> None:
    table.upsert(pa.table({"p": [p] * count, "k": range(first, first + count), "v": [v] * count}))


def runs(table: Table, p: str) -> list[int]:
    """Return how many live rows the files of a partition have."""
    return sorted(f.live_rows for f in table.splits().files if f.partition["p"] == p)


@pytest.fixture(params=["deduplicate", "aggregation"])
def partitioned(request: pytest.FixtureRequest, local: Session, local_fmt: str) -> Table:
    """Make a table whose base has 100 rows in each of the partitions a and b."""
    sums = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
    made = local.create_table(
        f"{local_fmt}.default.t",
        KEYED,
        primary_key=["p", "k"],
        partition_by=["p"],
        properties=sums if request.param == "aggregation" else {},
    )
    for p in ("a", "b"):
        upsert(made, p, 0, 100)
    made.compact("full")
    return made


def test_r1_runs_of_a_partition_are_folded_while_they_are_small(partitioned: Table) -> None:
    found = []
    for n in range(6):
        upsert(partitioned, "a", 100 + n, 1)
        before = arrow_rows(partitioned)
        partitioned.compact("resolve")
        assert arrow_rows(partitioned) == before
        found.append(runs(partitioned, "a"))
    assert found[:3] == [[1, 100], [2, 100], [3, 100]]
    assert max(map(len, found)) == 3
    upsert(partitioned, "b", 0, 50, v=7)  # a log of another partition leaves these runs alone
    partitioned.compact("resolve")
    assert (runs(partitioned, "a"), runs(partitioned, "b")) == (found[-1], [50, 50])


def test_a_full_compaction_joins_runs_of_a_partition_with_their_base(partitioned: Table) -> None:
    assert partitioned.compact("full").skipped
    upsert(partitioned, "c", 0, 5)
    partitioned.compact("resolve")
    assert partitioned.compact("full").skipped  # each partition has one file
    upsert(partitioned, "a", 100, 5)
    partitioned.compact("resolve")
    before = arrow_rows(partitioned)
    assert partitioned.compact("full").rows == 210
    assert (runs(partitioned, "a"), runs(partitioned, "b"), runs(partitioned, "c")) == ([105], [100], [5])
    assert arrow_rows(partitioned) == before
    assert partitioned.compact("full").skipped
