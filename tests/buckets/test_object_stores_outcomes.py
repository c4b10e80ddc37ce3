"""Commits in buckets whose outcome is unknown at first: it is asked for until it is known, and reported as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.bucket_lake import (
    COLUMNS,
    FIRST,
    ROWS,
    STORES,
    BucketLake,
    Server,
    bucket_lake,
    database_of,
    lake_in_store,
    stored,
)
from tests.support.fault_histories import drawn_history, play
from tests.support.fault_proxy import LOST, Answer, Request
from tests.support.fault_sequences import COMMIT, FaultSequence, hurried, playing
from tests.support.refusals import refusal
from trinity.storage import Location, ObjectStore


def longer(*values: str) -> list[Any]:
    """Return test parameters of the long tier."""
    return [pytest.param(value, marks=pytest.mark.full) for value in values]


LAKES = ["s3-parquet", *longer("s3-delta", "gcs-parquet", "gcs-delta", "azure-parquet", "azure-delta")]


@pytest.fixture(params=LAKES)
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> BucketLake:
    """Return a catalog whose commits are objects, in each kind of store."""
    return lake_in_store(request, tmp_path)


@pytest.mark.parametrize("answer", ["throttled", *longer("failed", "refused", "expired", "lost")])
def test_a_commit_that_cannot_be_asked_for_yet_is_made_once(cloud: BucketLake, answer: str) -> None:
    """The put takes effect, its answer is lost, and reads of the object fail for a while."""
    with cloud.connect() as session:
        table = session.create_table("plain", COLUMNS)
        faults = FaultSequence(COMMIT, "done", ("lost", *[answer] * 12))
        with hurried(), playing(cloud.server.proxy, faults) as began:
            assert table.append(ROWS).version == FIRST[cloud.fmt] + 1
        assert began()
        assert len(stored(cloud.server, table)) == 2
        assert table.append(ROWS).version == FIRST[cloud.fmt] + 2


@pytest.mark.parametrize("effect", ["late", *longer("done", "undone")])
@pytest.mark.parametrize("answer", ["expired", *longer("silent")])
def test_a_commit_of_which_nobody_knows_has_a_code_of_its_own(cloud: BucketLake, effect: str, answer: str) -> None:
    with cloud.connect() as session:
        table = session.create_table("plain", COLUMNS)
        faults = FaultSequence(COMMIT, effect, ("silent", answer), repeats=True)
        with hurried(), playing(cloud.server.proxy, faults):
            message = refusal("COMMIT_STATE_UNKNOWN", lambda: table.append(ROWS, txn=("load", 1)))
        assert table.location in message
        assert "same txn" in message
    with cloud.connect() as session:
        table = session.table("plain")
        assert len(stored(cloud.server, table)) == (0 if effect == "undone" else 2)
        assert table.append(ROWS, txn=("load", 1)).skipped == (effect != "undone")
        assert len(stored(cloud.server, table)) == 2


@pytest.mark.parametrize("change", ["delete", *longer("update", "merge", "keys")])
def test_a_statement_of_which_nobody_knows_is_told_so(cloud: BucketLake, change: str) -> None:
    """The store no longer answers reads of the newest version, whose settings the next attempt needs."""
    with cloud.connect() as session:
        table = session.create_table("keyed", COLUMNS, primary_key=["k"])
        table.upsert(ROWS)
        acts = {
            "delete": lambda: table.delete("k = 1"),
            "keys": lambda: table.delete([1]),
            "update": lambda: table.update("k = 1", {"v": "'z'"}),
            "merge": lambda: table.merge(ROWS, "t.k = s.k AND t.k = 1").when_matched_delete().execute(),
        }
        with hurried(), playing(cloud.server.proxy, FaultSequence(COMMIT, "done", ("lost",), repeats=True)):
            refusal("COMMIT_STATE_UNKNOWN", acts[change])
        assert table.to_arrow().to_pylist() != ROWS.to_pylist()


def test_a_commit_that_the_store_refuses_at_once_is_not_in_doubt(cloud: BucketLake) -> None:
    """Nor is a commit in doubt that gets an error as its answer, if the object can then be read."""
    with cloud.connect() as session:
        table = session.create_table("plain", COLUMNS)
        for answer, code in {"refused": "PERMISSION_DENIED", "throttled": "FILESYSTEM_ERROR"}.items():

            def says(request: Request, ask: Any, answer: str = answer) -> Answer | None:
                answers = {
                    "refused": Answer(403, b"<Error><Code>AccessDenied</Code></Error>"),
                    "throttled": Answer(503),
                }
                return answers[answer] if request.conditional else None

            with hurried(), cloud.server.proxy.faulty(says):
                refusal(code, lambda: table.append(ROWS))
        assert stored(cloud.server, table) == []


@pytest.mark.parametrize("cloud", ["s3-parquet"], indirect=True)
def test_files_that_a_commit_may_need_stay(cloud: BucketLake) -> None:
    """In a folder of others: the claim takes effect after the statement has failed, and then moves the staged files."""
    place = f"{cloud.place}-folder"
    pq.write_table(ROWS, f"{Location.of(place).for_arrow}/first.parquet", filesystem=cloud.server.files)
    with cloud.connect() as session:
        table = session.register("folder", "parquet", place)
        with hurried(), playing(cloud.server.proxy, FaultSequence(COMMIT, "late", ("silent",), repeats=True)):
            refusal("COMMIT_STATE_UNKNOWN", lambda: table.append(ROWS))
        assert len(stored(cloud.server, table)) == 4


@pytest.mark.parametrize("cloud", ["s3-parquet"], indirect=True)
@pytest.mark.parametrize("effect", ["done", *longer("undone")])
def test_a_name_of_which_nobody_knows_is_told_so(cloud: BucketLake, effect: str) -> None:
    def made(request: Request, ask: Any) -> Answer | None:
        if "/_trinity/tables/" not in request.path or request.method != "PUT":
            return None
        if effect == "done":
            ask()
        return LOST

    with cloud.connect() as session, hurried(), cloud.server.proxy.faulty(lambda r, ask: made(r, ask) or _unseen(r)):
        refusal("COMMIT_STATE_UNKNOWN", lambda: session.create_table("plain", COLUMNS))
    with cloud.connect() as session:
        assert session.list_tables("lake", "default") == (["plain"] if effect == "done" else [])
        table = session.create_table("plain", COLUMNS, if_not_exists=True)
        assert table.append(ROWS).rows == 2


def _unseen(request: Request) -> Answer | None:
    named = "/_trinity/tables/" in request.path and request.method in ("GET", "HEAD")
    return LOST if named and request.object.rpartition("/")[2].isdecimal() else None


def test_what_nothing_hangs_on_is_not_in_doubt(cloud: BucketLake) -> None:
    with cloud.connect() as session:
        store = ObjectStore(session.create_table("plain", COLUMNS).location)
        with hurried(), playing(cloud.server.proxy, FaultSequence(COMMIT, "undone", ("silent",), repeats=True)):
            refusal("FILESYSTEM_ERROR", lambda: store.put_if_absent("x", b"1", commits=False))


SEEDS = [
    *(("s3", fmt, seed) for fmt, seed in (("parquet", 3), ("delta", 13), ("iceberg", 5))),
    *(
        pytest.param((kind, fmt, first + n), marks=pytest.mark.full)
        for kind, first, seeds in (("s3", 100, 30), ("gcs", 200, 6), ("azure", 300, 6))
        for fmt in FIRST
        for n in range(seeds)
    ),
]


@pytest.mark.parametrize("drawn", SEEDS, ids=str)
def test_what_statements_tell_of_drawn_faults_is_so(
    request: pytest.FixtureRequest, drawn: tuple[str, str, int], tmp_path: Path
) -> None:
    """A failure prints its history; ``play`` repeats it."""
    kind, fmt, seed = drawn
    server: Server = request.getfixturevalue(STORES[kind])
    play(bucket_lake(fmt, server, server.new_bucket(), database_of(fmt, tmp_path)), drawn_history(seed))
