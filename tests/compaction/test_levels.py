"""Minor compaction by the writer, in levels: rows are rewritten few times, and reads stay the same (L3, K6)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from trinity import Column, Session, Table
from trinity.engine.compacting.after_commit import THREAD
from trinity.engine.compacting.levels import FAN, LEVELLED_SHARE, fresh_commits, newest_runs
from trinity.engine.streaming import background
from trinity.merge.compaction_strength import Strength
from trinity.spi import CommitResult, DataFile, Origin, Tier

pytestmark = pytest.mark.inner

COLUMNS = [Column("k", "bigint"), Column("ts", "bigint"), Column("gone", "boolean"), Column("v", "bigint")]
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {"watermark-key": "ts", "tombstone-key": "gone"},
    "arrival": {"tombstone-key": "gone"},
    "partial-update": {"merge-engine": "partial-update", "fields.ts.sequence-group": "v"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}


def log_file(commit: int, rows: int, tier: Tier = Tier.LOG, origin: Origin = Origin.OWN) -> DataFile:
    return DataFile(f"/t/{tier.value}-{commit}", rows, rows, tier, commit, origin=origin)


class Writer:
    """A log of rows with distinct keys, which the writer also compacts."""

    def __init__(self, every: int, size: Callable[[], int]) -> None:
        self.every, self.size = every, size
        self.files: list[DataFile] = []
        self.version, self.appended, self.written, self.most = 0, 0, 0, 0

    def commit(self) -> None:
        self.append()
        self.fold_when_due()

    def append(self) -> None:
        self.version, rows = self.version + 1, self.size()
        self.files.append(log_file(self.version, rows))
        self.appended, self.written = self.appended + rows, self.written + rows

    def fold_when_due(self) -> None:
        if fresh_commits(self.files, self.every) >= self.every:
            self.fold()
        self.most = max(self.most, len(self.files))

    def fold(self) -> None:
        base = [f for f in self.files if f.tier is Tier.BASE]
        folded = newest_runs(self.files, self.every)
        assert folded == self.files[-len(folded) :], "adjacent commits up to the newest"
        rows_of_base = sum(f.rows for f in base)
        full = len(base) + len(folded) == len(self.files) and self.appended >= (1 + LEVELLED_SHARE.value) * rows_of_base
        folded = self.files if full else folded
        rows = sum(f.rows for f in folded)
        made = log_file(max(f.commit or 0 for f in folded), rows, Tier.BASE if full else Tier.LOG)
        self.files = [f for f in self.files if f not in folded] + [made]
        self.version, self.written = self.version + 1, self.written + rows


@pytest.mark.parametrize("every", [2, 3, 5, 20, 50])
def test_each_row_is_written_four_times_at_most(every: int) -> None:
    writer = Writer(every, lambda: 1)
    for _ in range(300):
        writer.commit()
    assert writer.written <= 4 * writer.appended
    assert writer.most <= every + 64  # and a read opens few files
    for _ in range(2700):
        writer.commit()
    assert writer.written <= 4 * writer.appended
    assert writer.most <= every + 64


def test_commits_of_any_size_are_written_few_times() -> None:
    chance = random.Random(1)
    writer = Writer(20, lambda: chance.choice([1, 10, 1, 500]))
    for _ in range(2000):
        writer.commit()
    assert writer.written <= 4 * writer.appended


@pytest.mark.parametrize("every", [1, 20])
def test_the_batches_of_a_long_stream_are_written_few_times(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(0, lambda: 1)

    def folded(_: object, strength: Strength, every: int | None = None) -> CommitResult:
        assert (strength, every) == (Strength.MINOR, writer.every)
        writer.fold_when_due()
        return CommitResult(writer.version)

    monkeypatch.setattr(background, "compact_newest", folded)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(setJobGroup=lambda *_: None))
    handle = SimpleNamespace(location="t", full_name="t")
    table: Any = SimpleNamespace(name="t", handle=handle, session=SimpleNamespace(spark=spark))
    compactor, writer.every = background.BackgroundCompactor(table, every), max(every, 2)
    for _ in range(1000):
        writer.append()
        compactor.count_commit()
        for thread in threading.enumerate():
            if thread.name == f"{THREAD} t":
                thread.join()
    assert writer.appended == 1000
    assert writer.written <= 4 * writer.appended
    assert len(writer.files) <= writer.most <= every + 64


def test_a_run_is_not_folded_again_with_commits() -> None:
    files = [log_file(1, 9, Tier.BASE), log_file(5, 3), log_file(7, 1), log_file(8, 1), log_file(9, 1)]
    assert fresh_commits(files, 3) == 3
    assert [f.commit for f in newest_runs(files, 3)] == [7, 8, 9]
    assert newest_runs(files[:-1], 3) == []


def test_where_another_engine_rewrote_files_all_of_the_log_is_folded() -> None:
    files = [log_file(n, 1) for n in (1, 6, 7, 8, 9)]
    assert newest_runs(files, 3) == files[2:]
    files[0] = log_file(1, 1, origin=Origin.REWRITTEN)
    assert newest_runs(files, 3) == files


def rested(table: Table) -> Table:
    """Wait for the writer's compactions, and return the table."""
    for thread in threading.enumerate():
        if thread.name.startswith(THREAD):
            thread.join()
    return table


@pytest.mark.parametrize("engine", ["deduplicate", *(pytest.param(e, marks=pytest.mark.full) for e in [*ENGINES][1:])])
@FAN.set_to(2)
@LEVELLED_SHARE.set_to(99.0)  # the base has few rows
def test_folds_in_levels_change_no_read(session: Session, tiered_fmt: str, engine: str) -> None:
    """A table that is not compacted has the same rows: late ones, ties, tombstones and NULLs among them."""
    chance = random.Random(engine)
    trigger: dict[str, Any] = {"compaction.trigger.commits": "3"}
    left, folded = (
        session.create_table(f"{tiered_fmt}.default.{name}", COLUMNS, primary_key=["k"], properties={**options, **more})
        for options, name, more in ((ENGINES[engine], "left", {}), (ENGINES[engine], "folded", trigger))
    )
    for commit in range(14):
        keys = chance.sample(range(12), 3)
        rows = [
            (k, chance.choice([None, *range(commit + 3)]), chance.random() < 0.2, chance.randrange(99)) for k in keys
        ]
        data = pa.table(dict(zip([c.name for c in COLUMNS], map(list, zip(*rows, strict=True)), strict=True)), SCHEMA)
        for table in (left, folded):
            table.upsert(data)
        rested(folded)
    runs = sorted({(f.commit, f.rows) for f in folded.splits().files if f.tier is Tier.LOG})
    assert len(runs) == 4, "a run of six commits, one of three, and two commits"
    assert read(folded) == read(left)
    late = pa.table({"k": range(12), "ts": [1] * 12, "gone": [False] * 12, "v": range(12)}, SCHEMA)
    for table in (left, folded):
        table.upsert(late)
    assert read(rested(folded)) == read(left)


SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("gone", pa.bool_()), ("v", pa.int64())])


def read(table: Table) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, table.to_df().collect()), key=str)
