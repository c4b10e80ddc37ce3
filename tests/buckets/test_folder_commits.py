"""Commits to a folder of others are atomic, whoever crashes, and files that others add with old times are seen."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.folder_feed import Feed, values
from tests.support.turns import without_turns
from trinity import TrinityError


class Killed(BaseException):
    """The signal that the process is killed here."""


def feed_of(folder: Path) -> Feed:
    return Feed(str(folder), {"warehouse": str(folder.parent / "w")})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with the rows 0 and 1, one in each partition."""
    folder = tmp_path / "feed"
    for v in (0, 1):
        (folder / f"p={v}").mkdir(parents=True)
        pq.write_table(pa.table({"v": pa.array([v], pa.int64())}), folder / f"p={v}" / "first.parquet")
    return folder


CALLS = ("utime", "fsync", "link", "rename", "unlink", "mkdir", "rmdir")


def killed_at(monkeypatch: pytest.MonkeyPatch, number: int, work: Callable[[], object]) -> bool:
    """Run a function up to its n-th call that changes the disk. Return whether it was killed there."""
    made = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            nonlocal made
            made += 1
            if made >= number:
                raise Killed
            return call(*arguments, **options)

        return counting

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, counted(getattr(os, name)))
        try:
            work()
        except Killed:
            return True
    return False


@pytest.mark.parametrize("action", ["append", "compact"])
def test_a_commit_of_several_files_killed_at_every_operation(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    for number in range(1, 200):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(folder, copy, copy_function=shutil.copy2)
        writer = feed_of(copy)
        work = (lambda w=writer: w.append(2, 3)) if action == "append" else writer.compact
        killed = killed_at(monkeypatch, number, work)
        reader = feed_of(copy)
        found = values(reader)
        before, after = [0, 1], [0, 1, 2, 3] if action == "append" else [0, 1]
        assert found in ([before, after] if killed else [after]), f"killed at {number}"
        assert values(reader) == found, "and it stays so"
        reader.append(4, 5)
        assert values(feed_of(copy)) == sorted([*found, 4, 5]), f"killed at {number}"
        if not killed:
            assert number > 5
            assert not list(copy.glob(".trinity-staging/*"))
            return
    raise AssertionError("it never got through")


def test_readers_see_none_or_all_of_a_commit_under_way(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that begins and lists the folder at any points of a commit sees all of its files, or none."""
    writer, reader, seen = feed_of(folder), feed_of(folder), []
    rename, scandir = os.rename, os.scandir

    def looking(source: Any, target: Any) -> None:
        monkeypatch.setattr(os, "rename", rename)
        seen.append(values(feed_of(folder)))
        if os.path.exists(source):
            rename(source, target)

    def late(path: Any = ".") -> Any:
        """Make the whole commit just before the reader lists the folder."""
        found = scandir(path)
        if str(path) == str(folder):
            monkeypatch.setattr(os, "scandir", scandir)
            writer.append(4, 5)
        return found

    monkeypatch.setattr(os, "rename", looking)
    writer.append(2, 3)
    assert seen
    assert all(s == [0, 1, 2, 3] for s in seen), "the claim is the commit point"
    monkeypatch.setattr(os, "scandir", late)
    assert values(reader) == [0, 1, 2, 3, 4, 5]


def test_one_who_may_not_write_sees_none_of_a_crashed_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*arguments: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("trinity_parquet.claims.Claims.complete", crash)
        with pytest.raises(Killed):
            feed_of(folder).append(2, 3)

    def denied(*arguments: Any) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", denied)
        assert values(feed_of(folder)) == [0, 1]
        with pytest.raises(OSError, match="Permission denied"):
            feed_of(folder).append(4)
    assert values(feed_of(folder)) == [0, 1, 2, 3]


def test_writers_of_different_partitions_have_one_order(folder: Path) -> None:
    """The second writer has checked its change against the folder before the first commit, so it checks again."""
    first, second = feed_of(folder), feed_of(folder)
    begun = second.metadata.begin_insert(second.table)
    staged = second.staged(begun.target, 3)
    claims = [first.append(2).version, second.metadata.finish_insert(begun, staged).version]
    assert claims == sorted(set(claims))
    assert values(first) == [0, 1, 2, 3]
    names = sorted(p.name for p in folder.rglob("trinity-*.parquet"))
    assert [int(n.split("-")[1]) for n in names] == [1, 2]


def test_writers_and_a_compaction_race(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writers share no lock but the claim, as processes do. A compaction may lose; it then raises an error."""
    without_turns(monkeypatch)

    def write(writer: int) -> None:
        feed = feed_of(folder)
        for n in range(4):
            feed.append(100 * writer + 2 * n, 100 * writer + 2 * n + 1)

    def compact(_: int) -> None:
        for _ in range(4):
            with contextlib.suppress(TrinityError, FileNotFoundError):  # files that it reads may be replaced meanwhile
                feed_of(folder).compact()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda work: work[0](work[1]), [(write, 1), (write, 2), (compact, 0), (write, 3)]))
    expected = [0, 1, *(100 * writer + n for writer in (1, 2, 3) for n in range(8))]
    assert values(feed_of(folder)) == sorted(expected)


def test_a_lost_answer_to_a_claim_is_looked_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def lost(source: Any, target: Any) -> None:
        link(source, target)
        raise FileExistsError(17, "File exists")

    monkeypatch.setattr(os, "link", lost)
    feed_of(folder).append(2, 3)
    assert values(feed_of(folder)) == [0, 1, 2, 3]


def test_what_compaction_replaced_is_known_by_more_than_its_name(folder: Path) -> None:
    """A new file with the name of a replaced one is read."""
    feed = feed_of(folder)
    feed.compact()
    name = folder / "p=0" / "first.parquet"
    assert not name.exists()
    pq.write_table(pa.table({"v": pa.array([8], pa.int64())}), name)
    assert values(feed_of(folder)) == [0, 1, 8]
    feed_of(folder).append(3)
    assert values(feed) == [0, 1, 3, 8]


def test_a_file_of_an_old_time_is_seen_to_have_come(folder: Path, tmp_path: Path) -> None:
    """``cp -p`` keeps a file's modification time. A statement still notices that the folder has changed."""
    feed = feed_of(folder)
    splits = feed.metadata.get_splits(feed.table)
    pinned = replace(feed.table, version=splits.version)
    old = time.time() - 1000
    pq.write_table(pa.table({"v": pa.array([9], pa.int64())}), tmp_path / "old.parquet")
    os.utime(tmp_path / "old.parquet", (old, old))
    shutil.copy2(tmp_path / "old.parquet", folder / "p=1" / "old.parquet")
    with pytest.raises(TrinityError) as caught:
        feed.metadata.begin_merge(pinned, {})
    assert caught.value.code == "TRANSACTION_CONFLICT"
    with pytest.raises(TrinityError) as caught:
        feed.metadata.get_splits(pinned)
    assert caught.value.code == "INVALID_ARGUMENTS"
    now = feed.metadata.get_splits(feed.table)
    assert now.version > splits.version
    assert now.files[0].name == "old.parquet", "the order is that of the times"
    assert values(feed) == [0, 1, 9]


def test_the_next_writer_clears_what_a_killed_one_has_staged(folder: Path) -> None:
    """Staged files are deleted after a week, since a younger one may belong to a running statement."""
    now = time.time()
    for digit, days in (("0", 8), ("1", 6)):
        staged = folder / ".trinity-staging" / (digit * 32) / "p=0" / "x.parquet"
        staged.parent.mkdir(parents=True)
        shutil.copy(folder / "p=0" / "first.parquet", staged)
        os.utime(staged, (now - days * 24 * 3600,) * 2)
    feed_of(folder).append(2)
    assert [p.name for p in folder.glob(".trinity-staging/*")] == ["1" * 32]
    assert values(feed_of(folder)) == [0, 1, 2]


def test_a_statement_whose_staged_files_are_gone_is_told(folder: Path) -> None:
    feed = feed_of(folder)
    begun = feed.metadata.begin_insert(feed.table)
    staged = feed.staged(begun.target, 2, 3)
    next(folder.glob(".trinity-staging/*/p=1/*")).unlink()
    with pytest.raises(TrinityError, match="removed meanwhile") as caught:
        feed.metadata.finish_insert(begun, staged)
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert values(feed) == [0, 1]
    assert not list(folder.glob(".trinity-staging/*"))
