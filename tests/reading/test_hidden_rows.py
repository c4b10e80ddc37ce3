"""The rows that a merged read hides, by drawn files of a version and without Spark (K3, K4, U1-U8, E2, D1).

The expected rows come from a fold of Python values, key by key, in arrival order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from trinity import Column
from trinity.engine.executes import NotLocal
from trinity.engine.reading.data_files import bitmap_of
from trinity.engine.reading.files import bucket_types
from trinity.engine.reading.hidden_rows import PositionReadState, hidden_rows
from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.plan import ReadStrategy, plan_read
from trinity.engine.reading.search import FEW_FILES
from trinity.engine.reading.spark import executor
from trinity.engine.reading.spark_hash import buckets_of
from trinity.merge.spec import merge_spec
from trinity.spark.settings import pinned
from trinity.spi import Bucket, DataFile, Deletes, SplitSource, TableDefinition, Tier, arrival_order

pytestmark = pytest.mark.inner

Row = Mapping[str, Any]
Place = tuple[str, int]

COLUMNS = {
    "k": Column("k", "bigint", nullable=False),
    "j": Column("j", "string", nullable=False),
    "ts": Column("ts", "timestamp"),
    "n": Column("n", "decimal(9, 2)"),
    "gone": Column("gone", "boolean"),
    "op": Column("op", "string"),
}
TABLES: dict[str, Mapping[str, str]] = {
    "arrival alone": {},
    "one watermark": {"watermark-key": "ts", "tombstone-key": "gone"},
    "two watermarks": {"sequence.field": "ts,n", "tombstone-key": "op", "tombstone-string-key-value": "-D"},
    "smallest first": {"sequence.field": "n", "sequence.field.sort-order": "descending", "tombstone-key": "gone"},
    "row kinds": {"watermark-key": "ts", "rowkind.field": "op"},
    "deletes ignored": {"watermark-key": "n", "rowkind.field": "op", "ignore-delete": "true"},
    "first row": {"merge-engine": "first-row"},
}


@dataclass(frozen=True)
class Gone(Deletes):
    """Deleted rows without a file."""

    places: tuple[int, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return ()

    def positions(self) -> pa.Int64Array:
        return pa.array(self.places, pa.int64())


@dataclass(frozen=True)
class Drawn:
    """A version for a search: its rows, the number of log commits at the first read, and the keys to look up.

    With ``buckets``, the base has a file for each bucket, in order of the key.
    """

    properties: Mapping[str, str]
    key: tuple[str, ...]
    sidecar: Sequence[Row]
    base: Sequence[Row]
    cut: int
    buckets: int | None
    deleted: frozenset[int]
    log: Sequence[Sequence[Row]]
    reads: Sequence[int]
    looked_up: Sequence[Row]


def rows_of(key: Sequence[str], unique: bool = False) -> st.SearchStrategy[list[Row]]:
    values: dict[str, st.SearchStrategy[Any]] = {
        "k": st.integers(0, 6),
        "j": st.sampled_from(["", "a", "ä"]) if "j" in key else st.just("a"),
        "ts": st.one_of(st.none(), st.integers(-2, 3)),
        "n": st.one_of(st.none(), st.integers(-2, 2)),
        "gone": st.sampled_from([False, True, None]),
        "op": st.sampled_from(["+I", "+U", "-U", "-D", None, "-D "]),
    }
    return st.lists(
        st.fixed_dictionaries(values), max_size=6, unique_by=(lambda r: tuple(r[k] for k in key)) if unique else None
    )


@st.composite
def versions(draw: st.DrawFn) -> Drawn:
    key = draw(st.sampled_from([("k",), ("k", "j")]))
    base = draw(rows_of(key, unique=True))
    cut = draw(st.integers(0, len(base)))
    deleted = draw(st.frozensets(st.integers(0, len(base)), max_size=3))
    log = draw(st.lists(rows_of(key), min_size=1, max_size=5))
    live = {tuple(row[k] for k in key) for number, row in enumerate(base) if number not in deleted}
    in_sidecar = [row for row in draw(rows_of(key, unique=True)) if tuple(row[k] for k in key) not in live]
    reads = sorted({*draw(st.lists(st.integers(1, len(log)), max_size=2)), len(log)})
    return Drawn(
        TABLES[draw(st.sampled_from(sorted(TABLES)))],
        key,
        in_sidecar,
        base,
        cut,
        draw(st.sampled_from([None, 2, 3])),
        deleted,
        log,
        reads,
        draw(rows_of(key)),
    )


@settings(max_examples=12)
@given(versions(), st.sampled_from(["local[2]", "spark://there:7077"]))
def test_rows_are_passed_over_that_win_no_key(drawn: Drawn, master: str) -> None:
    check_hidden_rows(drawn, master)


@pytest.mark.full
@settings(max_examples=1000)
@given(versions(), st.sampled_from(["local[2]", "spark://there:7077"]))
def test_rows_of_many_versions_are_passed_over(drawn: Drawn, master: str) -> None:
    check_hidden_rows(drawn, master)


def check_hidden_rows(drawn: Drawn, master: str) -> None:
    with tempfile.TemporaryDirectory() as folder, FEW_FILES.set_to(0), pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "run_on_spark", _in_process)
        whole = _splits(Path(folder), drawn)
        spark = executor.SparkExecutor(cast(SparkSession, FakeSession(master)))
        log = [f for f in whole.files if f.tier is Tier.LOG]
        for commits in drawn.reads:  # each search continues from the previous result
            version = _until(whole, log[:commits])
            state = PositionReadState.of(version, merge_spec(whole.definition))
            keys, places = _looked_up(drawn, version)
            some = state.of_keys(keys, [f for f in version.files if any(f.path == path for path, _ in places)])
            found = hidden_rows(some, spark.search)
            assert found is not None
            assert _shown(version, found) & places == _live(drawn, version) & places
            found = hidden_rows(state, spark.search)
            assert found is not None
            assert _shown(version, found) == _live(drawn, version)


@pytest.mark.full
@settings(max_examples=15)
@given(versions(), st.booleans())
def test_both_executors_read_the_rows_of_one_plan(spark: SparkSession, drawn: Drawn, by_position: bool) -> None:
    """The executors read by positions, and by a join, with buckets or without."""
    with tempfile.TemporaryDirectory() as folder:
        marks = {"tombstone-key", "rowkind.field"} & drawn.properties.keys()  # without one there is no sidecar
        plan = plan_read(_splits(Path(folder), drawn if marks else replace(drawn, sidecar=[])))
        if by_position and plan.state is not None:  # the plan of larger bases
            plan = replace(plan, strategy=ReadStrategy.SEARCH)
        pages = LocalExecutor(tuple(COLUMNS.values())).rows(plan)
        assert not isinstance(pages, NotLocal)
        found = pa.Table.from_batches(pages, pa.schema([c.to_arrow() for c in COLUMNS.values()])).to_pylist()
        with pinned(spark):
            wanted = executor.SparkExecutor(spark).rows(plan).toArrow().cast(STORAGE).to_pylist()
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))


class FakeSession:
    """What a search needs of a Spark session."""

    def __init__(self, master: str) -> None:
        self.sparkContext = SimpleNamespace(defaultParallelism=2, master=master)

    def range(self, start: int, end: int, step: int, tasks: int) -> list[list[int]]:
        edges = np.linspace(start, end, tasks + 1).astype(int)
        return [list(range(low, high, step)) for low, high in pairwise(edges.tolist())]


def _in_process(search: Any, tasks: Iterable[list[int]]) -> list[bytes]:
    numbers = ([pa.record_batch({"id": pa.array(task, pa.int64())})] for task in tasks)
    return [fragment for order, pages in enumerate(numbers) for fragment in search(order, pages)]


STORAGE = pa.schema(
    [
        ("k", pa.int64()),
        ("j", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("n", pa.decimal128(9, 2)),
        ("gone", pa.bool_()),
        ("op", pa.string()),
    ]
)


def _splits(folder: Path, drawn: Drawn) -> SplitSource:
    definition = TableDefinition("s", "t", tuple(COLUMNS.values()), drawn.key, properties=dict(drawn.properties))
    numbers = count()

    def file(rows: Sequence[Row], tier: Tier, commit: int, bucket: int = 0) -> DataFile:
        path = folder / f"{next(numbers):03}_{bucket:05}.parquet"  # Spark takes the bucket from the name
        pq.write_table(_table(rows), path)
        return DataFile(str(path), path.stat().st_size, len(rows), tier, commit)

    base = []
    for number, part in enumerate(_parts(drawn)):
        gone = tuple(place for place, row in enumerate(part) if row in drawn.deleted)
        base.append(
            replace(
                file([drawn.base[row] for row in part], Tier.BASE, 1, number),
                deletes=Gone(len(gone), gone) if gone else None,
                bucket=Bucket(number, drawn.buckets, bucket_types(definition)) if drawn.buckets else None,
            )
        )
    log = [file(rows, Tier.LOG, 2 + number) for number, rows in enumerate(drawn.log)]
    in_sidecar = [_tombstone(r) for r in drawn.sidecar]
    sidecar = (file(in_sidecar, Tier.SIDECAR, 1),) if in_sidecar else ()
    return SplitSource(9, 0, definition, STORAGE, (*base, *log), sidecar)


def _parts(drawn: Drawn) -> list[list[int]]:
    """Return the row numbers of each file of the base."""
    numbers = list(range(len(drawn.base)))
    if drawn.buckets is None:
        return [numbers[: drawn.cut], numbers[drawn.cut :]]
    buckets = buckets_of(_table(drawn.base), drawn.key, drawn.buckets).tolist()
    in_order = sorted(numbers, key=lambda n: [drawn.base[n][k] for k in drawn.key])
    return [[n for n in in_order if buckets[n] == bucket] for bucket in range(drawn.buckets)]


def _table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([_stored(r) for r in rows], schema=STORAGE)


def _stored(row: Row) -> Row:
    instant = None if row["ts"] is None else row["ts"] * 1_000_000
    return {**row, "ts": instant, "n": None if row["n"] is None else Decimal(row["n"])}


def _tombstone(row: Row) -> Row:
    return {**row, "gone": True, "op": "-D"}


def _until(whole: SplitSource, log: Sequence[DataFile]) -> SplitSource:
    """Return the version with only these files of the log."""
    base = [f for f in whole.files if f.tier is Tier.BASE]
    return replace(whole, files=(*reversed(log), *base))


def _shown(version: SplitSource, hidden: Mapping[str, np.ndarray]) -> set[Place]:
    """Return the positions of the rows that remain without those hidden by the bits, and without deleted rows."""
    found = set()
    for file in version.files:
        words = hidden.get(file.path, bitmap_of(np.array([], int), file.rows))
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")[: file.rows]
        gone = set() if file.deletes is None else set(file.deletes.positions().to_pylist())
        found |= {(file.path, place) for place in np.flatnonzero(bits == 0).tolist() if place not in gone}
    return found


def _looked_up(drawn: Drawn, version: SplitSource) -> tuple[pa.Table, set[Place]]:
    """Return the keys to look up, and the positions of all their rows."""
    keys = [tuple(row[k] for k in drawn.key) for row in drawn.looked_up]
    rows = {f.path: pq.read_table(f.path).to_pylist() for f in version.files}
    places = {
        (path, place)
        for path, stored in rows.items()
        for place, row in enumerate(stored)
        if tuple(row[k] for k in drawn.key) in keys
    }
    return _table(drawn.looked_up).select(drawn.key), places


def _live(drawn: Drawn, version: SplitSource) -> set[Place]:
    """Return the positions of the rows that a fold shows."""
    options = drawn.properties
    rows = {f.path: pq.read_table(f.path).to_pylist() for f in (*version.files, *version.sidecar)}

    def stored(files: Iterable[DataFile]) -> Iterator[tuple[tuple[Any, ...], Row, Place | None]]:
        for file in files:
            gone = set() if file.deletes is None else set(file.deletes.positions().to_pylist())
            for place, row in enumerate(rows[file.path]):
                if place not in gone:
                    shown = None if file.tier is Tier.SIDECAR else (file.path, place)
                    yield tuple(row[k] for k in drawn.key), row, shown

    base = {key: (row, place) for key, row, place in stored(f for f in version.files if f.tier is Tier.BASE)}
    log = sorted((f for f in version.files if f.tier is Tier.LOG), key=arrival_order)
    winners: dict[tuple[Any, ...], tuple[Row, Place | None]] = {}
    for key, row, place in stored((*version.sidecar, *log)):
        if "ignore-delete" in options and _retracts(row["op"]):
            continue
        if key not in winners or not _beats(options, winners[key][0], row):
            winners[key] = row, place
    found = {place for key, (_, place) in base.items() if key not in winners}
    for key, (row, place) in winners.items():
        if key in base and _beats(options, base[key][0], row):
            found.add(base[key][1])
        elif not _deletes(options, row):
            found.add(place)
    return found - {None}  # type: ignore[return-value]


def _beats(options: Mapping[str, str], earlier: Row, later: Row) -> bool:
    """Return whether the earlier row wins (K3, K4, E2)."""
    if "merge-engine" in options:
        return True
    names = options.get("sequence.field", options.get("watermark-key", ""))
    sign = -1 if "sequence.field.sort-order" in options else 1

    def order(row: Row) -> list[tuple[bool, Any]]:
        values = [row[name] for name in names.split(",") if name]
        return [
            (v is not None, 0 if v is None else sign * (v.timestamp() if hasattr(v, "timestamp") else v))
            for v in values
        ]

    return order(earlier) > order(later)


def _deletes(options: Mapping[str, str], row: Row) -> bool:
    marked = options.get("tombstone-key")
    kinds = "rowkind.field" in options and _retracts(row["op"])
    return bool(kinds or (marked == "gone" and row["gone"]) or (marked == "op" and row["op"] == "-D"))


def _retracts(kind: str | None) -> bool:
    return kind is not None and kind.rstrip() in ("-U", "-D")
