"""Reads without Spark: predicates, streams, and data for other libraries."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.others import FIRST, KEYED, pyarrow_dataset
from trinity import Column, Session, Table, TrinityError
from trinity.engine.reading import hidden_rows
from trinity.engine.reading.hidden_rows import forget
from trinity.engine.reading.plan import plan_read
from trinity.storage import Cache

pytestmark = pytest.mark.inner


@pytest.fixture
def ids(local: Session, local_fmt: str) -> Table:
    """Make a keyed table of 20,000 rows."""
    table = local.create_table(
        f"{local_fmt}.default.ids",
        [Column("id", "bigint"), Column("v", "int"), Column("t", "string"), Column("gone", "boolean")],
        primary_key=["id"],
        properties={"tombstone-key": "gone"},
    )
    table.upsert(_rows(range(20_000), 0))
    return table


def _rows(ids: Any, value: int, *, gone: bool = False) -> pa.Table:
    ids = list(ids)
    texts = [f"t{number % 7}" for number in ids]
    return pa.table({"id": ids, "v": [value + number % 1000 for number in ids], "t": texts, "gone": [gone] * len(ids)})


def _with_a_log(table: Table) -> dict[int, int]:
    """Write a log over the table, and return id -> v of its live rows."""
    draw = random.Random(5)
    changed, deleted = draw.sample(range(20_000), 500), draw.sample(range(20_000), 100)
    table.upsert(_rows(changed, 1_000_000))
    table.upsert(_rows(range(20_000, 20_100), 0))
    table.upsert(_rows(deleted, 0, gone=True))
    rows = {number: number % 1000 for number in range(20_100)}
    rows |= {number: 1_000_000 + number % 1000 for number in changed}
    return {number: v for number, v in rows.items() if number not in deleted}


CONDITIONS: list[tuple[str, Callable[[int, int], bool]]] = [
    ("id = 77", lambda key, _: key == 77),
    ("ID IN (3, 4, 20050, 99999)", lambda key, _: key in (3, 4, 20_050)),
    ("id BETWEEN 19990 AND 20010", lambda key, _: 19_990 <= key <= 20_010),
    ("v >= 1000000", lambda _, v: v >= 1_000_000),
    ("v < 5 AND id > 100", lambda key, v: v < 5 and key > 100),
    ("t = 't3' OR v = 9", lambda key, v: key % 7 == 3 or v == 9),
    ("NOT (id < 20000)", lambda key, _: key >= 20_000),
    ("gone", lambda *_: False),
    ("v IS NULL", lambda *_: False),
]


@pytest.mark.parametrize("compacted", [True, False])
def test_predicates_are_evaluated_after_the_fold(ids: Table, compacted: bool) -> None:
    if compacted:  # and so sorted, with an index of its pages
        ids.compact(full=True)
    live = _with_a_log(ids)
    for where, meets in CONDITIONS:
        expected = {key: v for key, v in live.items() if meets(key, v)}
        found = ids.to_arrow(["v", "id"], where=where)
        assert found.column_names == ["v", "id"]
        assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected, where


def test_the_log_is_looked_through_in_groups_of_files(ids: Table) -> None:
    """Small files of the log are searched together, large ones alone, from memory or from disk (K3)."""
    draw = random.Random(7)
    live = {number: number % 1000 for number in range(20_000)}
    ids.upsert(_rows(range(20_000, 130_000), 0))
    live |= {number: number % 1000 for number in range(20_000, 130_000)}
    ids.compact(full=True)
    for commit in range(24):
        many = commit in (9, 17)  # has more rows than one search reads
        changed = draw.sample(range(130_000), 70_000 if many else 3)
        gone = commit % 5 == 4
        ids.upsert(_rows(changed, commit * 1_000, gone=gone))
        for number in changed:
            live.pop(number, None)
            if not gone:
                live[number] = commit * 1_000 + number % 1000
        if commit % 11 == 10:
            forget()
        if commit % 6 == 5:
            found = ids.to_arrow(["id", "v"])
            assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == live, commit
        where = f"id IN ({changed[0]}, {changed[1]})"
        expected = {number: live[number] for number in changed[:2] if number in live}
        assert {row["id"]: row["v"] for row in ids.to_arrow(where=where).to_pylist()} == expected


def test_columns_of_the_predicate_alone_are_not_returned(ids: Table) -> None:
    assert ids.to_arrow(["t"], where="id = 1").to_pylist() == [{"t": "t1"}]
    assert ids.to_arrow(where="id = 1").column_names == ["id", "v", "t", "gone"]


def test_a_version_and_a_limit(ids: Table) -> None:
    _with_a_log(ids)
    assert ids.to_arrow(where="id >= 20000").num_rows == 100
    assert ids.to_arrow(where="id >= 20000", version=1).num_rows == 0
    assert ids.to_arrow(where="id < 50", limit=7).num_rows == 7
    assert ids.to_arrow(limit=0).num_rows == 0


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("nope = 1", "COLUMN_NOT_FOUND"),
        ("id", "TYPE_MISMATCH"),
        ("id = = 1", "SYNTAX_ERROR"),
        ("soundex(t) = 'x'", "NOT_SUPPORTED"),
    ],
)
def test_conditions_that_are_refused(ids: Table, where: str, code: str) -> None:
    with pytest.raises(TrinityError) as refused:
        ids.to_arrow(where=where)
    assert refused.value.code == code


def test_a_stream_is_pinned_and_reads_on_demand(ids: Table) -> None:
    reader = ids.to_reader(["id"])
    ids.upsert(_rows(range(30_000, 30_010), 0))
    assert sorted(reader.read_all()["id"].to_pylist()) == list(range(20_000))


def test_a_stream_is_left_early(ids: Table) -> None:
    with ids.to_reader(["id"]) as reader:
        assert reader.read_next_batch().num_rows > 0


def test_other_libraries_take_a_table(ids: Table) -> None:
    live = _with_a_log(ids)
    assert pa.table(ids).num_rows == len(live)
    assert pl.DataFrame(ids)["v"].sum() == sum(live.values())
    assert pa.schema(ids) == pa.table(ids).schema
    total = duckdb.sql("SELECT sum(v) FROM ids")
    assert total is not None
    assert total.fetchall() == [(sum(live.values()),)]


def test_frames_of_other_libraries(ids: Table) -> None:
    live = _with_a_log(ids)
    meant = sorted(key for key in live if key < 30)
    assert sorted(ids.to_pandas(["id"], where="id < 30")["id"]) == meant
    assert sorted(ids.to_polars(["id"], where="id < 30")["id"]) == meant
    with duckdb.connect() as connection:
        assert sorted(row for [row] in ids.to_duckdb(connection, columns=["id"], where="id < 30").fetchall()) == meant


def test_a_lazy_frame_reads_what_it_needs(ids: Table) -> None:
    frame = ids.to_polars(lazy=True)
    assert isinstance(frame, pl.LazyFrame)
    ids.upsert(_rows(range(30_000, 30_010), 0))
    found = frame.filter(pl.col("id") >= 19_990).select("v").head(5).collect()
    assert (found.columns, len(found)) == (["v"], 5)
    assert frame.select(pl.len()).collect().item() == 20_000


def test_a_plain_table(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.plain", [Column("a", "int"), Column("b", "double")])
    table.append(pa.table({"a": pa.array([1, 2, None], pa.int32()), "b": [1.0, float("nan"), None]}))
    table.append(pa.table({"a": pa.array([3], pa.int32()), "b": [-0.0]}))
    assert table.to_arrow(["a"], where="b > 1e308")["a"].to_pylist() == [2]
    assert table.to_arrow(["a"], where="b = 0 OR a = 1")["a"].to_pylist() == [1, 3]
    assert pc.sum(table.to_arrow(where="a IS NOT NULL")["a"]).as_py() == 6


def test_rows_that_fold_by_column_are_filtered_after_the_fold(local: Session, local_fmt: str) -> None:
    table = local.create_table(
        f"{local_fmt}.default.sums",
        [Column("k", "int"), Column("n", "bigint")],
        primary_key=["k"],
        properties={"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    )
    for _ in range(3):
        table.upsert(pa.table({"k": pa.array([1, 2, 3], pa.int32()), "n": [1, 10, 100]}))
    assert table.to_arrow(where="n > 5 AND k < 3").to_pylist() == [{"k": 2, "n": 30}]
    assert table.to_arrow(["k"], where="n = 3").to_pylist() == [{"k": 1}]
    assert table.count() == 3


def test_a_field_is_not_the_column_of_its_name(local: Session, local_fmt: str) -> None:
    columns = [Column("k", "int"), Column("n", "struct<k:int,v:int>"), Column("v", "int")]
    rows = pa.table({"k": [1, 2], "n": [{"k": 99, "v": 7}, {"k": 2, "v": None}], "v": [1, 2]}).cast(
        pa.schema([column.to_arrow() for column in columns])
    )
    keyed = local.create_table(f"{local_fmt}.default.keyed", columns, primary_key=["k"])
    keyed.upsert(rows)
    keyed.compact(full=True)
    parts = local.create_table(f"{local_fmt}.default.parts", columns, partition_by=["v"])
    parts.append(rows)
    for table in (keyed, parts):
        for where in ("n.k = 99", "n.k IN (99, 98)", "n.v = 7", "n.k > 50 AND k = 1"):
            assert table.to_arrow(columns=["k"], where=where).column("k").to_pylist() == [1], (table.name, where)
        assert table.delete("n.v = 7").rows == 1
        assert table.to_arrow().column("k").to_pylist() == [2]


@pytest.mark.full
def test_a_log_of_many_files_is_read_with_few_of_them_open(ids: Table) -> None:
    for number in range(300):
        ids.upsert(_rows([number * 7], 5_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 60, hard))
    try:
        forget()
        found = dict(zip(*ids.to_arrow(columns=["id", "v"]).to_pydict().values(), strict=True))
        assert ids.to_arrow(where="id = 2093").num_rows == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    changed = {number * 7 for number in range(300)}
    assert found == {number: number % 1000 + (5_000 if number in changed else 0) for number in range(20_000)}


def _is_known(table: Table, version: int | None = None) -> bool:
    """Return whether the hidden rows of a version with a log are cached."""
    state = plan_read(table.splits(version)).state
    assert state is not None
    return state.is_known


def test_a_read_that_no_later_one_uses_takes_no_place_in_the_cache(
    local: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden_rows, "_memory", Cache(1))
    own = local.create_table("own", [{"id": 1}], primary_key=["id"])
    own.upsert([{"id": 1}])
    own.to_arrow()
    assert _is_known(own)
    pyarrow_dataset(tmp_path / "theirs", FIRST)
    theirs = local.register("theirs", "parquet", tmp_path / "theirs", KEYED)
    theirs.to_arrow()
    assert not _is_known(theirs)
    assert _is_known(own)


def test_a_read_of_an_earlier_version_leaves_the_newest_in_the_cache(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.t", [Column("id", "int"), Column("v", "int")], primary_key=["id"])
    first = table.upsert([{"id": 1, "v": 1}]).version
    newest = table.upsert([{"id": 1, "v": 2}]).version
    table.to_arrow()
    assert table.to_arrow(version=first).to_pylist() == [{"id": 1, "v": 1}]
    assert (_is_known(table, first), _is_known(table, newest)) == (True, True)
    table.restore(first)
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": 1}]
    assert _is_known(table)
