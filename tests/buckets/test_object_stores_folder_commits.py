"""Commits of several files to a folder of others in a bucket: each is atomic, whichever request is the last one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.bucket_lake import BucketLake, bucket_lake, objects
from tests.support.fault_proxy import LOST, Answer, Request
from tests.support.folder_feed import Feed, values
from tests.support.object_store import READER, ObjectServer
from tests.support.refusals import refusal
from tests.support.turns import without_turns
from trinity import TrinityError
from trinity.storage import ObjectStore

DENIED = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")


@pytest.fixture
def cloud(object_server: ObjectServer, bucket: str) -> Iterator[BucketLake]:
    """Yield a catalog in a bucket that is known to support conditional puts."""
    found = bucket_lake("parquet", object_server, bucket, {})
    with found.connect():
        ObjectStore(found.place).put_if_absent("known", b"")
        yield found


class Theirs:
    """Folders of another program with the rows 0 and 1, one in each partition.

    Args:
        lake: the catalog whose place holds the folders.
    """

    def __init__(self, cloud: BucketLake) -> None:
        self.lake = cloud
        self.folder = f"{cloud.place}/none"

    def made(self, name: str = "feed") -> Theirs:
        """Make another folder with the same rows."""
        self.folder = f"{self.lake.place}/{name}"
        for v in (0, 1):
            self.put(v)
        return self

    def put(self, v: int, name: str = "first") -> None:
        """Put a file of one row."""
        path = f"{self.folder}/p={v % 2}/{name}.parquet".removeprefix("s3://")
        pq.write_table(pa.table({"v": pa.array([v], pa.int64())}), path, filesystem=self.lake.server.files)

    def feed(self) -> Feed:
        """Return the folder as another process opens it."""
        return Feed(self.folder, {"warehouse": f"{self.lake.place}/w"})

    def left(self, *parts: str) -> list[str]:
        """Return the names of the folder's objects that contain any of these parts."""
        names = objects(self.lake.server, self.folder)
        return [name for name in names if any(part in name for part in parts)]


@pytest.fixture
def others(cloud: BucketLake) -> Theirs:
    return Theirs(cloud).made()


@dataclass
class Cut:
    """A fault that ends a process with its n-th request that writes: this one takes effect, and no later one."""

    last: int
    writing: list[str] = field(default_factory=list)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request, ask: Callable[[], Answer]) -> Answer | None:
        with self.mutex:
            if len(self.writing) >= self.last:
                return DENIED
            if request.method in ("GET", "HEAD"):
                return None
            self.writing.append(f"{request.method} {request.path[-60:]}")
            found = ask()
            return DENIED if len(self.writing) == self.last else found


def cut_at(theirs: Theirs, last: int, work: Callable[[Feed], object]) -> bool:
    """Run a function of a process up to its n-th request that writes. Return True where it makes fewer."""
    feed, cut = theirs.feed(), Cut(last)
    values(feed)
    with theirs.lake.server.proxy.faulty(cut), contextlib.suppress(TrinityError):
        work(feed)
    return len(cut.writing) < last


def append(feed: Feed) -> None:
    feed.append(2, 3)


def compact(feed: Feed) -> None:
    feed.compact()


@pytest.mark.parametrize("work", [append, compact])
def test_a_commit_of_several_files_cut_at_every_request(cloud: BucketLake, work: Callable[[Feed], object]) -> None:
    before, after, seen = [0, 1], [0, 1, 2, 3] if work is append else [0, 1], []
    for last in range(1, 40):
        theirs = Theirs(cloud).made(f"cut{last}")
        through = cut_at(theirs, last, work)
        found = values(theirs.feed())
        assert found in ([after] if through else [before, after]), f"cut at {last}"
        assert values(theirs.feed()) == found, "and it stays so"
        theirs.feed().append(4, 5)
        assert values(theirs.feed()) == sorted([*found, 4, 5]), f"cut at {last}"
        seen.append(found == after)
        files = theirs.left("trinity-0", "first")
        assert len(files) in ((2 * (len(found) // 2) + 2,) if work is append else (4,)), f"cut at {last}: {files}"
        if through:
            break
    assert last > 7, "two files staged, the claim, two copies, two deletions"
    assert sorted(seen) == seen, "from the claim on it is there"
    assert not theirs.left(".trinity-staging")


def losing(ending: Callable[[Request], bool], *, times: int = 1) -> tuple[list[Request], Any]:
    """Return the list of the first few matching requests, and a fault that does them but loses their answers."""
    lost: list[Request] = []
    mutex = threading.Lock()

    def loses(request: Request, ask: Callable[[], Answer]) -> Answer | None:
        with mutex:
            if not ending(request) or len(lost) == times:
                return None
            lost.append(request)
        ask()
        return LOST

    return lost, loses


def claims(request: Request) -> bool:
    return request.method == "PUT" and ".trinity-commits/" in request.path


def copies(request: Request) -> bool:
    return "x-amz-copy-source" in request.headers


def deletes(request: Request) -> bool:
    return request.method in ("POST", "DELETE")


def stages(request: Request) -> bool:
    return request.method == "PUT" and ".trinity-staging/" in request.path


@pytest.mark.parametrize("kind", [claims, copies, deletes, stages])
def test_what_is_done_and_not_answered_is_done_once(others: Theirs, kind: Callable[[Request], bool]) -> None:
    lost, fault = losing(kind)
    with others.lake.server.proxy.faulty(fault):
        assert others.feed().append(2, 3).rows == 2
    assert len(lost) == 1
    assert values(others.feed()) == [0, 1, 2, 3]
    assert len(others.left("trinity-0")) == 2
    assert not others.left(".trinity-staging")


def denied_once_done(request: Request, ask: Callable[[], Answer]) -> Answer | None:
    if not claims(request):
        return None
    ask()
    return DENIED


@pytest.mark.parametrize("fault", [Cut(3), denied_once_done])  # two files staged, the claim
def test_a_claim_that_is_made_and_not_heard_of_stands(others: Theirs, fault: Any) -> None:
    """The statement fails, but its commit stands, whatever the store answers afterwards."""
    feed = others.feed()
    values(feed)
    with others.lake.server.proxy.faulty(fault):
        refusal("PERMISSION_DENIED", lambda: feed.append(2, 3))
    assert others.left(".trinity-staging")
    assert values(others.feed()) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [claims, stages])
def test_what_the_store_refuses_leaves_nothing(others: Theirs, kind: Callable[[Request], bool]) -> None:
    there = others.left("")
    with others.lake.server.proxy.faulty(lambda request, ask: DENIED if kind(request) else None):
        refusal("PERMISSION_DENIED", lambda: others.feed().append(2, 3))
    assert [name for name in others.left("") if "probe" not in name] == there
    assert values(others.feed()) == [0, 1]


@pytest.mark.parametrize("kind", [copies, deletes])
def test_a_commit_that_cannot_come_in_is_seen_whole_later(others: Theirs, kind: Callable[[Request], bool]) -> None:
    """Until then readers see the folder as it was before, and no other writer commits."""
    feed = others.feed()
    with others.lake.server.proxy.faulty(lambda request, ask: DENIED if kind(request) else None):
        assert feed.append(2, 3).rows == 2
        assert values(feed) == values(others.feed()) == [0, 1]
        refusal("PERMISSION_DENIED", lambda: others.feed().append(4))
    assert values(feed) == [0, 1, 2, 3]
    assert feed.append(4).rows == 1
    assert values(others.feed()) == [0, 1, 2, 3, 4]


def test_a_store_that_says_of_a_copy_that_it_was_made_is_not_believed(others: Theirs) -> None:
    """Azure may report a copy before it is done. The staged file is deleted once all its bytes are copied."""
    reply = Answer(200, b"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")
    with others.lake.server.proxy.faulty(lambda request, ask: reply if copies(request) else None):
        others.feed().append(2, 3)
        assert values(others.feed()) == [0, 1]
    assert values(others.feed()) == [0, 1, 2, 3]


def test_one_who_may_not_write_sees_none_of_a_commit_that_was_cut(others: Theirs) -> None:
    assert not cut_at(others, 4, append)
    with others.lake.connect(**READER):
        assert values(others.feed()) == [0, 1]
        refusal("PERMISSION_DENIED", lambda: others.feed().append(4))
    with others.lake.connect():
        assert values(others.feed()) == [0, 1, 2, 3]


def test_what_compaction_replaces_is_known_by_more_than_its_name(others: Theirs) -> None:
    """A file that another program puts under the name of a replaced one is read, even with the same second and size."""
    first = others.left("first")
    assert not cut_at(others, 7, compact)  # two files staged, the claim, two copies, two deletions
    assert len(others.left("trinity-0")) == 2
    assert others.left("first") == first
    others.put(8)
    assert values(others.feed()) == [0, 1, 8]
    others.feed().append(3)
    assert values(others.feed()) == [0, 1, 3, 8]
    assert others.left("first") == first[:1]


@pytest.mark.parametrize("since", [(), (4,)])
def test_a_replaced_file_that_a_late_copy_brings_back_is_out_of_sight(others: Theirs, since: tuple[int, ...]) -> None:
    """Another process requested the copy while the staged file existed, and the store did it late."""
    late = others.feed()
    late.append(2, 3)
    names = others.left("trinity-0")
    files = {name: others.lake.server.files.open_input_stream(name).read() for name in names}
    others.feed().compact()
    for number in since:
        others.feed().append(number)
    for name, data in files.items():
        with others.lake.server.files.open_output_stream(name) as out:
            out.write(data)
    assert values(late) == values(others.feed()) == [0, 1, 2, 3, *since]
    others.feed().append(5)
    assert values(late) == [0, 1, 2, 3, *since, 5]
    assert not set(names) & set(others.left("trinity-0"))


def test_a_file_that_goes_while_a_reader_looks_is_passed_over(others: Theirs) -> None:
    taken: list[str] = []

    def takes_away(request: Request, ask: Callable[[], Answer]) -> Answer | None:
        if request.path.endswith("first.parquet") and not taken:
            taken.append(request.path)
            others.feed().compact()
        return None

    with others.lake.server.proxy.faulty(takes_away):
        assert values(others.feed()) == [0, 1]
    assert taken
    assert not others.left("first")


def test_a_compaction_of_what_is_gone_is_refused(others: Theirs) -> None:
    feed = others.feed()
    files = feed.metadata.get_splits(feed.table).files
    rewrite = feed.metadata.begin_rewrite(feed.table, files)
    staged = feed.staged(rewrite.target, 0, 1)
    ObjectStore(others.folder).delete([files[0].path])
    message = refusal(
        "TRANSACTION_CONFLICT", lambda: feed.metadata.finish_rewrite(rewrite, staged, replace_sidecar=False)
    )
    assert files[0].name in message
    assert values(feed) == [1]
    assert not others.left("trinity-")


@pytest.mark.full
def test_writers_and_a_compaction_race(others: Theirs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writers share no lock but the claim, as processes do. A compaction may lose; it then raises an error."""
    without_turns(monkeypatch)

    def write(writer: int) -> None:
        feed = others.feed()
        for n in range(4):
            feed.append(100 * writer + 2 * n, 100 * writer + 2 * n + 1)

    def compact(_: int) -> None:
        for _ in range(4):
            with contextlib.suppress(TrinityError, OSError):  # files that it reads may be replaced meanwhile
                others.feed().compact()

    with ThreadPoolExecutor(6) as pool:
        works = [(write, 1), (write, 2), (compact, 0), (write, 3), (compact, 0), (write, 4)]
        list(pool.map(lambda work: work[0](work[1]), works))
    expected = [0, 1, *(100 * writer + n for writer in (1, 2, 3, 4) for n in range(8))]
    assert values(others.feed()) == sorted(expected)
    others.feed().append(9)
    assert not others.left(".trinity-staging")
