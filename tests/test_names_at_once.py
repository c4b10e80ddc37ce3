"""Names that several make, take and drop at once: one of them does it, and the others are told what is so."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.bucket_lake import BucketLake
from trinity import Column, Session
from trinity.errors import TrinityError
from trinity.names import TableName

COLUMNS = [Column("k", "int")]
SESSIONS = 4

Act = Callable[[Session, str], object]


def drop_if_exists(session: Session, name: str) -> None:
    from trinity.sql.defining.schemas import _drop_named

    _drop_named(session, TableName(*name.split(".")), if_exists=True)


TABLES: dict[str, Act] = {
    "create": lambda session, name: session.create_table(name, COLUMNS),
    "create if not exists": lambda session, name: session.create_table(name, COLUMNS, if_not_exists=True),
    "drop": lambda session, name: session.drop_table(name),
    "drop if exists": drop_if_exists,
}
SCHEMAS: dict[str, Act] = {
    "create schema": lambda session, name: session.connector("lake").metadata.create_schema(name),
    "drop schema": lambda session, name: session.connector("lake").metadata.drop_schema(name),
    "create in it": lambda session, name: session.create_table(f"lake.{name}.t", COLUMNS),
}
TOLD = {
    "create": {"TABLE_ALREADY_EXISTS"},
    "create if not exists": set(),
    "drop": {"TABLE_NOT_FOUND"},
    "drop if exists": set(),
    "create schema": {"SCHEMA_ALREADY_EXISTS"},
    "drop schema": {"SCHEMA_NOT_FOUND", "SCHEMA_NOT_EMPTY"},
    "create in it": {"SCHEMA_NOT_FOUND", "TABLE_ALREADY_EXISTS"},
}
"""What those are told who come too late, or too early."""


@pytest.fixture(params=["disk", "bucket"])
def settings(request: pytest.FixtureRequest, fmt: str, tmp_path: Path) -> dict[str, Any]:
    """A catalog of each format, on a disk and in a bucket."""
    if request.param == "disk":
        return {"connector": fmt, "warehouse": str(tmp_path / "w")}
    from tests.support.bucket_lake import bucket_lake, database_of

    server = request.getfixturevalue("object_server")
    lake: BucketLake = bucket_lake(fmt, server, server.new_bucket(), database_of(fmt, tmp_path))
    return lake.settings()


@pytest.fixture
def sessions(settings: dict[str, Any]) -> Iterator[list[Session]]:
    """Sessions that have nothing in common but the catalog."""
    made = [trinity.connect(catalogs={"lake": settings}) for _ in range(SESSIONS)]
    yield made
    for session in made:
        session.close()


def at_once(acts: Sequence[Callable[[], object]]) -> list[str | None]:
    """Run acts at once; what each was told, None for those that did it."""
    ready = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> str | None:
        ready.wait()
        try:
            act()
        except TrinityError as error:
            return error.code
        return None

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


def check(kinds: list[str], told: list[str | None], *, was: bool, there: bool) -> None:
    """Compare what was told with what can be so: each name was made and dropped in turns."""
    for kind, code in zip(kinds, told, strict=True):
        assert code is None or code in TOLD[kind], (kinds, told)
    done = Counter(kind for kind, code in zip(kinds, told, strict=True) if code is None)
    made, dropped = done["create"] + done["create schema"], done["drop"] + done["drop schema"]
    if not {"create if not exists", "drop if exists"} & set(kinds):
        assert made - dropped == there - was, (kinds, told, was, there)
    elif set(kinds) <= {"create", "create if not exists"}:
        assert (made <= 1, there) == (True, True), (kinds, told)
    elif set(kinds) <= {"drop", "drop if exists"}:
        assert (dropped <= was, there) == (True, False), (kinds, told)


PAIRS = list(itertools.combinations_with_replacement(TABLES, 2))


def test_tables_at_once(sessions: list[Session]) -> None:
    for number, (one, other) in enumerate(PAIRS):
        for was in (False, True):
            name = f"lake.default.t{number}{was:d}"
            if was:
                sessions[0].create_table(name, COLUMNS)
            kinds = [one, other] * len(sessions)
            told = at_once(
                [partial(TABLES[kind], session, name) for kind, session in zip(kinds, sessions * 2, strict=True)]
            )
            there = f"t{number}{was:d}" in sessions[0].list_tables("lake", "default")
            check(kinds, told, was=was, there=there)
            if there:
                assert sessions[1].table(name).append(pa.table({"k": pa.array([1], pa.int32())})).rows == 1


def test_schemas_at_once(sessions: list[Session]) -> None:
    metadata = sessions[0].connector("lake").metadata
    for number, (one, other) in enumerate(itertools.combinations_with_replacement(SCHEMAS, 2)):
        for was in (False, True):
            name = f"s{number}{was:d}"
            if was:
                metadata.create_schema(name)
            kinds = [one, other] * len(sessions)
            told = at_once(
                [partial(SCHEMAS[kind], session, name) for kind, session in zip(kinds, sessions * 2, strict=True)]
            )
            there = name in metadata.list_schemas()
            check(kinds, told, was=was, there=there)
            if "create in it" in kinds and there:
                made = [code for kind, code in zip(kinds, told, strict=True) if kind == "create in it"].count(None)
                assert len(sessions[0].list_tables("lake", name)) == made, (kinds, told)


def test_registrations_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    pq.write_table(pa.table({"k": [1]}), folder / "1.parquet")
    acts: dict[str, Act] = {
        "create": lambda session, name: session.register(name, "parquet", folder),
        "create if not exists": lambda session, name: session.register(name, "parquet", folder, if_not_exists=True),
        "drop": TABLES["drop"],
        "drop if exists": TABLES["drop if exists"],
    }
    opened = [trinity.connect(tmp_path / "w") for _ in range(SESSIONS)]
    for number, (pair, was) in enumerate(itertools.product(PAIRS, (False, True))):
        name = f"parquet.default.t{number}"
        if was:
            opened[0].register(name, "parquet", folder)
        kinds = [*pair] * len(opened)
        told = at_once([partial(acts[kind], session, name) for kind, session in zip(kinds, opened * 2, strict=True)])
        check(kinds, told, was=was, there=f"t{number}" in opened[0].list_tables("parquet", "default"))
    for session in opened:
        session.close()


def _in_a_process(settings: dict[str, Any], kind: str, name: str, ready: Any, told: Any) -> None:
    with trinity.connect(catalogs={"lake": settings}) as session:
        ready.wait()
        try:
            TABLES[kind](session, name)
            told.put((kind, None))
        except TrinityError as error:
            told.put((kind, error.code))


@pytest.mark.full
@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_tables_at_once_by_processes(settings: dict[str, Any], pair: tuple[str, str]) -> None:
    spawn = multiprocessing.get_context("spawn")
    with trinity.connect(catalogs={"lake": settings}) as session:
        for was in (False, True):
            name = f"lake.default.t{was:d}"
            if was:
                session.create_table(name, COLUMNS)
            kinds = [*pair] * 2
            ready, answers = spawn.Barrier(len(kinds)), spawn.SimpleQueue()
            running = [spawn.Process(target=_in_a_process, args=(settings, k, name, ready, answers)) for k in kinds]
            for process in running:
                process.start()
            told = [answers.get() for _ in running]
            for process in running:
                process.join()
            there = name.rpartition(".")[2] in session.list_tables("lake", "default")
            check([kind for kind, _ in told], [code for _, code in told], was=was, there=there)
