"""Names that several sessions create, register and drop at once: one call succeeds, the others get the right error."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import CreateTableTransaction

import trinity
from tests.support.bucket_lake import BucketLake, bucket_lake, database_of
from tests.support.fault_proxy import Answer, Request
from tests.support.fault_sequences import hurried
from tests.support.object_store import ObjectServer
from trinity import Column, Session, TableName
from trinity.errors import TrinityError
from trinity.spi import TableDefinition, TableHandle

COLUMNS = [Column("k", "int")]
SESSIONS = 4

Act = Callable[[Session, str], object]


TABLES: dict[str, Act] = {
    "create": lambda session, name: session.create_table(name, COLUMNS),
    "create if not exists": lambda session, name: session.create_table(name, COLUMNS, if_not_exists=True),
    "drop": lambda session, name: session.drop_table(name),
    "drop if exists": lambda session, name: session.drop_table(name, if_exists=True),
}
SCHEMAS: dict[str, Act] = {
    "create schema": lambda session, name: session.connector("lake").metadata.create_schema(name),
    "drop schema": lambda session, name: session.connector("lake").metadata.drop_schema(name),
    "create in it": lambda session, name: session.create_table(f"lake.{name}.t", COLUMNS),
}
TOLD = {
    "create": {"TABLE_ALREADY_EXISTS"},
    "register": {"TABLE_ALREADY_EXISTS"},
    "create if not exists": set(),
    "drop": {"TABLE_NOT_FOUND"},
    "drop if exists": set(),
    "create schema": {"SCHEMA_ALREADY_EXISTS"},
    "drop schema": {"SCHEMA_NOT_FOUND", "SCHEMA_NOT_EMPTY"},
    "create in it": {"SCHEMA_NOT_FOUND", "TABLE_ALREADY_EXISTS"},
}
"""Action -> the error codes that it may get."""


@pytest.fixture(params=["disk", "bucket"])
def settings(request: pytest.FixtureRequest, fmt: str, tmp_path: Path) -> dict[str, Any]:
    """Return the settings of a catalog of each format, on disk and in a bucket."""
    if request.param == "disk":
        return {"connector": fmt, "warehouse": str(tmp_path / "w")}
    server = request.getfixturevalue("object_server")
    lake: BucketLake = bucket_lake(fmt, server, server.new_bucket(), database_of(fmt, tmp_path))
    return lake.settings()


@pytest.fixture
def sessions(settings: dict[str, Any]) -> Iterator[list[Session]]:
    """Yield sessions that share only the catalog."""
    made = [trinity.connect(catalogs={"lake": settings}) for _ in range(SESSIONS)]
    yield made
    for session in made:
        session.close()


def at_once(acts: Sequence[Callable[[], object]]) -> list[str | None]:
    """Run functions at once, and return their error codes, None for those that succeed."""
    ready = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> str | None:
        ready.wait()
        return told_by(act)

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


def told_by(act: Callable[[], object]) -> str | None:
    """Return the error code of a function, None if it succeeds."""
    try:
        act()
    except TrinityError as error:
        return error.code
    return None


Beside = Callable[[Callable[[], object]], "Future[str | None]"]


@pytest.fixture
def interleaved(monkeypatch: pytest.MonkeyPatch) -> Iterator[Beside]:
    """Yield a function that runs another one in a second thread, and returns when that has ended or waits."""
    sleep, on = time.sleep, threading.Event()

    def sleeping(seconds: float) -> None:
        if threading.current_thread().name.startswith("beside"):
            on.set()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleeping)
    with ThreadPoolExecutor(1, "beside") as threads:

        def run(act: Callable[[], object]) -> Future[str | None]:
            on.clear()
            found = threads.submit(told_by, act)
            found.add_done_callback(lambda _: on.set())
            assert on.wait(60)
            return found

        yield run


def check(kinds: list[str], outcomes: list[str | None], *, was: bool, there: bool) -> None:
    """Check that the outcomes are possible in some order of the creations and drops."""
    for kind, code in zip(kinds, outcomes, strict=True):
        assert code is None or code in TOLD[kind], (kinds, outcomes)
    done = Counter(kind for kind, code in zip(kinds, outcomes, strict=True) if code is None)
    made = done["create"] + done["register"] + done["create schema"]
    dropped = done["drop"] + done["drop schema"]
    if not {"create if not exists", "drop if exists"} & set(kinds):
        assert made - dropped == there - was, (kinds, outcomes, was, there)
    elif set(kinds) <= {"create", "create if not exists"}:
        assert (made <= 1, there) == (True, True), (kinds, outcomes)
    elif set(kinds) <= {"drop", "drop if exists"}:
        assert (dropped <= was, there) == (True, False), (kinds, outcomes)


PAIRS = list(itertools.combinations_with_replacement(TABLES, 2))
FEW = [("create", "create"), ("create", "drop"), ("create if not exists", "drop if exists"), ("drop", "drop")]
of_some_and_all = pytest.mark.parametrize(
    "pairs", [pytest.param(FEW, id="few"), pytest.param(PAIRS, id="all", marks=pytest.mark.full)]
)


@of_some_and_all
def test_tables_at_once(sessions: list[Session], pairs: list[tuple[str, str]]) -> None:
    for number, (one, other) in enumerate(pairs):
        for was in (False, True):
            name = f"lake.default.t{number}{was:d}"
            if was:
                sessions[0].create_table(name, COLUMNS)
            kinds = [one, other] * len(sessions)
            outcomes = at_once(
                [partial(TABLES[kind], session, name) for kind, session in zip(kinds, sessions * 2, strict=True)]
            )
            there = f"t{number}{was:d}" in sessions[0].list_tables("lake", "default")
            check(kinds, outcomes, was=was, there=there)
            if there:
                assert sessions[1].table(name).append(pa.table({"k": pa.array([1], pa.int32())})).rows == 1


@pytest.mark.parametrize("removed", ["", "of_a_killed_call"])
def test_a_table_is_made_while_another_session_drops_one_of_its_name(
    fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: str
) -> None:
    """The other's folder, which holds files when it is looked for, is gone when these are listed."""
    folder, listed = tmp_path / "w" / "default" / "t", os.scandir
    metadata = folder / {"parquet": "_trinity", "delta": "_delta_log", "iceberg": "metadata"}[fmt]
    (metadata / "of_a_killed_call").mkdir(parents=True)
    gone: list[str] = []

    def scandir(path: Any = ".") -> Any:
        if not gone and Path(os.fspath(path)) == (metadata / removed if removed else folder):
            gone.append(str(path))
            folder.rename(tmp_path / "dropped")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with trinity.connect(catalogs={"lake": {"connector": fmt, "warehouse": str(tmp_path / "w")}}) as session:
        assert session.create_table("lake.default.t", pa.table({"k": [1]})).to_arrow()["k"].to_pylist() == [1]
    assert gone


@pytest.mark.parametrize("last", [2, -1])
def test_another_table_of_the_name_is_neither_filled_nor_dropped(sessions: list[Session], last: int) -> None:
    """Another session drops and makes the table while it gets its first rows; the last one may violate its CHECK."""
    name, kind = "lake.default.t", pa.schema([("k", pa.int32())])

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([1], pa.int32())], schema=kind)
        sessions[1].drop_table(name)
        sessions[1].create_table(name, pa.table({"k": pa.array([7], pa.int32())}))
        yield pa.record_batch([pa.array([last], pa.int32())], schema=kind)

    given = pa.RecordBatchReader.from_batches(kind, rows())
    with pytest.raises(TrinityError):
        sessions[0].create_table(name, given, checks={"positive": "k > 0"})
    assert sessions[2].table(name).to_arrow()["k"].to_pylist() == [7]


FILLS: dict[str, Act] = {
    "rows": lambda session, name: session.create_table(name, pa.table({"k": pa.array([1], pa.int32())})),
    "as select": lambda session, name: session.sql(f"CREATE TABLE {name} AS SELECT CAST(1 AS INT) AS k"),
    "copy": lambda session, name: session.table("lake.default.source").copy_to(name),
}


@pytest.mark.parametrize(
    "way", ["rows", *(pytest.param(way, marks=pytest.mark.full) for way in FILLS if way != "rows")]
)
def test_rows_of_a_new_table_go_to_it_alone(sessions: list[Session], monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Another session drops the table and makes one of the same name right after it was made."""
    name, metadata = "lake.default.t", sessions[0].connector("lake").metadata
    sessions[2].create_table("lake.default.source", pa.table({"k": pa.array([1], pa.int32())}))
    make = metadata.create_table

    def create_table(definition: TableDefinition) -> TableHandle:
        handle = make(definition)
        sessions[1].drop_table(name)
        sessions[1].create_table(name, pa.table({"k": pa.array([7], pa.int32())}))
        return handle

    monkeypatch.setattr(metadata, "create_table", create_table)
    assert told_by(lambda: FILLS[way](sessions[0], name)) in ("TRANSACTION_CONFLICT", "TABLE_NOT_FOUND")
    assert sessions[2].table(name).to_arrow()["k"].to_pylist() == [7]


def test_schemas_at_once(sessions: list[Session]) -> None:
    metadata = sessions[0].connector("lake").metadata
    for number, (one, other) in enumerate(itertools.combinations_with_replacement(SCHEMAS, 2)):
        for was in (False, True):
            name = f"s{number}{was:d}"
            if was:
                metadata.create_schema(name)
            kinds = [one, other] * len(sessions)
            outcomes = at_once(
                [partial(SCHEMAS[kind], session, name) for kind, session in zip(kinds, sessions * 2, strict=True)]
            )
            there = name in metadata.list_schemas()
            check(kinds, outcomes, was=was, there=there)
            if "create in it" in kinds and there:
                made = [code for kind, code in zip(kinds, outcomes, strict=True) if kind == "create in it"].count(None)
                assert len(sessions[0].list_tables("lake", name)) == made, (kinds, outcomes)


@pytest.fixture(params=["disk", "bucket"])
def whole(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return the settings of a warehouse with a registry, on disk and in a bucket."""
    if request.param == "disk":
        return {"warehouse": str(tmp_path / "w")}
    server = request.getfixturevalue("object_server")
    return {"warehouse": request.getfixturevalue("place"), "storage_options": server.options}


def others_folder(tmp_path: Path) -> Path:
    """Make a folder of files without Trinity."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    pq.write_table(pa.table({"k": [1]}), folder / "1.parquet")
    return folder


def registering(folder: Path, *, if_not_exists: bool = False) -> Act:
    """Return a function that registers files."""
    return lambda session, name: session.register(name, "parquet", folder, if_not_exists=if_not_exists)


@of_some_and_all
def test_registrations_at_once(whole: dict[str, Any], tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    folder = others_folder(tmp_path)
    acts = {
        **TABLES,
        "create": registering(folder),
        "create if not exists": registering(folder, if_not_exists=True),
    }
    opened = [trinity.connect(**whole) for _ in range(SESSIONS)]
    for number, (pair, was) in enumerate(itertools.product(pairs, (False, True))):
        name = f"parquet.default.t{number}"
        if was:
            opened[0].register(name, "parquet", folder)
        kinds = [*pair] * len(opened)
        outcomes = at_once(
            [partial(acts[kind], session, name) for kind, session in zip(kinds, opened * 2, strict=True)]
        )
        check(kinds, outcomes, was=was, there=f"t{number}" in opened[0].list_tables("parquet", "default"))
    for session in opened:
        session.close()


@pytest.mark.parametrize("catalog", ["parquet", "delta"])
def test_a_table_is_made_and_another_registered_at_once(whole: dict[str, Any], tmp_path: Path, catalog: str) -> None:
    """One of all calls gets the name, and returns without an error; the losers leave nothing under the name."""
    acts = [TABLES["create"], registering(others_folder(tmp_path))] * 2
    opened = [trinity.connect(**whole) for _ in acts]
    for number in range(4):
        name = f"{catalog}.default.t{number}"
        outcomes = at_once([partial(act, session, name) for act, session in zip(acts, opened, strict=True)])
        assert Counter(outcomes) == {None: 1, "TABLE_ALREADY_EXISTS": 3}
        own = opened[0].connector(catalog).metadata.list_tables("default")
        assert (f"t{number}" in own, f"t{number}" in opened[1].external.names(catalog, "default")) == (
            None in outcomes[::2],
            None in outcomes[1::2],
        )
    for session in opened:
        session.close()


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("catalog", ["parquet", "delta", "iceberg"])
def test_on_a_disk_a_registration_waits_for_a_create(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interleaved: Beside, catalog: str, first: bool
) -> None:
    """The new table stands once others can see it. The first one makes the warehouse, and may have to be undone."""
    with trinity.connect(tmp_path / "w") as maker, trinity.connect(tmp_path / "w") as registrar:
        if not first:
            maker.create_table(f"{catalog}.default.before", COLUMNS)
        outcomes = _made_beside_a_registration(
            maker, registrar, f"{catalog}.default.t", tmp_path, monkeypatch, interleaved
        )
        assert outcomes == [None, "TABLE_ALREADY_EXISTS"] or (first and outcomes == ["TABLE_ALREADY_EXISTS", None])
        assert ("t" in maker.connector(catalog).metadata.list_tables("default")) == (outcomes[0] is None)
        assert maker.external.names(catalog, "default") == ["t"] * (outcomes[1] is None)


def _made_beside_a_registration(
    maker: Session, registrar: Session, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interleaved: Beside
) -> list[str | None]:
    """Begin a registration just before the table of its name is made, and return the codes of both."""
    folder, metadata = others_folder(tmp_path), maker.connector(name.partition(".")[0]).metadata
    registered: list[Future[str | None]] = []
    make = metadata.create_table

    def create_table(definition: TableDefinition) -> TableHandle:
        registered.append(interleaved(lambda: registering(folder)(registrar, name)))
        return make(definition)

    monkeypatch.setattr(metadata, "create_table", create_table)
    return [told_by(lambda: maker.create_table(name, COLUMNS)), registered[0].result()]


@pytest.fixture
def catalogs(object_server: ObjectServer, fmt: str, place: str, tmp_path: Path) -> Iterator[tuple[Session, Session]]:
    """Yield two sessions on a warehouse in a bucket."""
    lake = bucket_lake(fmt, object_server, object_server.new_bucket(), database_of(fmt, tmp_path)).settings()
    given: dict[str, Any] = {"warehouse": place, "storage_options": object_server.options}
    others = {"parquet": {"connector": "parquet", "warehouse": f"{place}/p"}} if fmt != "parquet" else {}
    whole = {**given, "catalogs": {fmt: lake, **others}}
    with trinity.connect(**whole) as one, trinity.connect(**whole) as other:
        yield one, other


@pytest.mark.tiered
def test_in_a_bucket_a_registration_waits_for_a_create(
    catalogs: tuple[Session, Session], fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interleaved: Beside
) -> None:
    outcomes = _made_beside_a_registration(*catalogs, f"{fmt}.default.t", tmp_path, monkeypatch, interleaved)
    assert outcomes == [None, "TABLE_ALREADY_EXISTS"]
    assert catalogs[0].external.names(fmt, "default") == []
    assert catalogs[1].table(f"{fmt}.default.t").append(pa.table({"k": pa.array([1], pa.int32())})).rows == 1


@pytest.mark.tiered
def test_in_a_bucket_a_create_makes_a_registration_under_way_look_again(
    catalogs: tuple[Session, Session], fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is made just after the registration has looked for one."""
    maker, registrar = catalogs
    name, metadata, looking = f"{fmt}.default.t", registrar.connector(fmt).metadata, itertools.count()
    look = metadata.get_table

    def get_table(schema: str, table: str) -> TableHandle | None:
        found = look(schema, table)
        if next(looking) == 1:  # the second look is that of a registration under way
            maker.create_table(name, COLUMNS)
        return found

    monkeypatch.setattr(metadata, "get_table", get_table)
    assert told_by(lambda: registering(others_folder(tmp_path))(registrar, name)) == "TABLE_ALREADY_EXISTS"
    assert maker.external.names(fmt, "default") == []


@pytest.mark.tiered
def test_in_a_bucket_a_table_goes_whose_create_takes_longer_than_a_registration_waits(
    catalogs: tuple[Session, Session], fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker, registrar = catalogs
    name, metadata = f"{fmt}.default.t", maker.connector(fmt).metadata
    make = metadata.create_table

    def create_table(definition: TableDefinition) -> TableHandle:
        with hurried():
            registering(others_folder(tmp_path))(registrar, name)
        return make(definition)

    monkeypatch.setattr(metadata, "create_table", create_table)
    assert told_by(lambda: maker.create_table(name, COLUMNS)) == "TABLE_ALREADY_EXISTS"
    assert metadata.list_tables("default") == []
    assert maker.external.names(fmt, "default") == ["t"]


Round = tuple[str, tuple[str, str], bool]
"""(name, two actions on it at once, whether it existed before)."""


def rounds() -> list[Round]:
    """Return all pairs of actions on names of tables, and of schemas."""
    named = {"lake.default.t": [*TABLES, "register"], "s": [*SCHEMAS]}
    pairs = [(start, pair) for start in named for pair in itertools.combinations_with_replacement(named[start], 2)]
    found = enumerate(itertools.product(pairs, (False, True)))
    return [(f"{start}{number}", pair, was) for number, ((start, pair), was) in found]


def _in_a_process(catalogs: dict[str, Any], folder: Path, number: int, ready: Any, outcomes: Any) -> None:
    acts = {**TABLES, **SCHEMAS, "register": registering(folder)}
    with trinity.connect(catalogs=catalogs, catalog="lake") as session:
        session.connector("theirs")
        for name, pair, _ in rounds():
            kind = pair[number % 2]
            ready.wait()
            try:
                acts[kind](session, name)
                outcomes.put((kind, None))
            except Exception as error:
                outcomes.put((kind, error.code if isinstance(error, TrinityError) else repr(error)))


@pytest.mark.full
def test_names_at_once_by_processes(settings: dict[str, Any], tmp_path: Path) -> None:
    folder, spawn = others_folder(tmp_path), multiprocessing.get_context("spawn")
    catalogs = {"lake": settings, "theirs": {"connector": "parquet", "warehouse": str(tmp_path / "beside")}}
    ready, answers = spawn.Barrier(SESSIONS + 1, timeout=300), spawn.SimpleQueue()
    running = [
        spawn.Process(target=_in_a_process, args=(catalogs, folder, number, ready, answers), daemon=True)
        for number in range(SESSIONS)
    ]
    for process in running:
        process.start()
    with trinity.connect(catalogs=catalogs, catalog="lake") as session:
        metadata = session.connector("lake").metadata
        for name, pair, was in rounds():
            if was:
                ({**TABLES, **SCHEMAS}["create schema" if pair[0] in SCHEMAS else "create"])(session, name)
            ready.wait()
            outcomes = [answers.get() for _ in running]
            known = metadata.list_schemas() if pair[0] in SCHEMAS else session.list_tables("lake", "default")
            check(
                [kind for kind, _ in outcomes],
                [code for _, code in outcomes],
                was=was,
                there=name.rpartition(".")[2] in known,
            )
    for process in running:
        process.join()


@pytest.fixture
def schema(whole: dict[str, Any]) -> Iterator[tuple[Session, Session]]:
    """Yield two sessions on a catalog with a schema ``s``."""
    with trinity.connect(**whole) as one, trinity.connect(**whole) as other:
        one.create_schema("parquet.s")
        yield one, other


def test_a_registration_waits_for_the_drop_of_its_schema(
    schema: tuple[Session, Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interleaved: Beside
) -> None:
    """The registration waits, and then finds no schema."""
    one, other = schema
    metadata = one.connector("parquet").metadata
    outcomes: list[Future[str | None]] = []
    drop, folder = metadata.drop_schema, others_folder(tmp_path)

    def drop_schema(name: str) -> None:
        outcomes.append(interleaved(lambda: registering(folder)(other, "parquet.s.t")))
        drop(name)

    monkeypatch.setattr(metadata, "drop_schema", drop_schema)
    one.drop_schema("parquet.s")
    assert outcomes[0].result() == "SCHEMA_NOT_FOUND"
    assert "s" not in other.schemas("parquet")
    assert other.external.names("parquet", "s") == []


def test_in_a_bucket_a_schema_stays_whose_drop_takes_longer_than_a_registration_waits(
    object_server: ObjectServer, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trinity.connect(place, storage_options=object_server.options) as session:
        session.create_schema("parquet.s")
        metadata = session.connector("parquet").metadata
        drop = metadata.drop_schema

        def drop_schema(name: str) -> None:
            with hurried():
                registering(others_folder(tmp_path))(session, "parquet.s.t")
            drop(name)

        monkeypatch.setattr(metadata, "drop_schema", drop_schema)
        assert told_by(lambda: session.drop_schema("parquet.s")) == "SCHEMA_NOT_EMPTY"
        assert session.list_tables("parquet", "s") == ["t"]


def test_in_a_bucket_a_drop_of_a_schema_that_fails_half_way_keeps_nobody_from_registering(
    object_server: ObjectServer, place: str, tmp_path: Path
) -> None:
    seen: list[str] = []
    down = failing_once_made("closed.json", "", seen)
    with trinity.connect(place, storage_options=object_server.options) as session, hurried():
        session.create_schema("parquet.s")
        with object_server.proxy.faulty(down):
            assert told_by(lambda: session.drop_schema("parquet.s")) == "FILESYSTEM_ERROR"
        assert len(seen) > 1
        registering(others_folder(tmp_path))(session, "parquet.s.t")
        assert session.list_tables("parquet", "s") == ["t"]


def test_nothing_is_registered_in_a_schema_that_is_dropped_meanwhile(
    schema: tuple[Session, Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interleaved: Beside
) -> None:
    """In a bucket the registration notices it; on a disk the drop waits, and then finds the registered table."""
    one, other = schema
    metadata, looking = one.connector("parquet").metadata, itertools.count()
    outcomes: list[Future[str | None]] = []
    look = metadata.get_table

    def get_table(name: str, table: str) -> TableHandle | None:
        found = look(name, table)
        if next(looking) == 1:  # the second look is that of a registration under way
            outcomes.append(interleaved(lambda: other.drop_schema("parquet.s")))
        return found

    monkeypatch.setattr(metadata, "get_table", get_table)
    registered = told_by(lambda: registering(others_folder(tmp_path))(one, "parquet.s.t"))
    dropped = outcomes[0].result()
    assert (dropped, registered) in [(None, "SCHEMA_NOT_FOUND"), ("SCHEMA_NOT_EMPTY", None)]
    assert ("s" in other.schemas("parquet")) == (registered is None)
    assert other.external.names("parquet", "s") == ["t"] * (registered is None)


def test_a_schema_is_dropped_just_as_a_registration_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interleaved: Beside
) -> None:
    """On a disk, before the registration has its name."""
    link = os.link
    outcomes: list[Future[str | None]] = []
    with trinity.connect(tmp_path / "w") as one, trinity.connect(tmp_path / "w") as other:
        one.create_schema("parquet.s")

        def meanwhile(*names: Any) -> None:
            if not outcomes:
                outcomes.append(interleaved(lambda: other.drop_schema("parquet.s")))
            link(*names)

        monkeypatch.setattr(os, "link", meanwhile)
        registering(others_folder(tmp_path))(one, "parquet.s.t")
        assert outcomes[0].result() == "SCHEMA_NOT_EMPTY"
        assert other.list_tables("parquet", "s") == ["t"]


Changing = Callable[[Callable[[], object]], list["Future[str | None]"]]


@pytest.fixture
def changing(
    request: pytest.FixtureRequest, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch, interleaved: Beside
) -> Changing:
    """Return a function that runs another one just before a changed registration is written; it may have to wait."""

    def before(act: Callable[[], object]) -> list[Future[str | None]]:
        outcomes: list[Future[str | None]] = []
        if "storage_options" not in whole:
            replace, waits = os.replace, iter([True])

            def replacing(*names: Any) -> None:
                if next(waits, False):
                    outcomes.append(interleaved(act))
                replace(*names)

            monkeypatch.setattr(os, "replace", replacing)
            return outcomes
        server, waits = request.getfixturevalue("object_server"), iter([True])

        def putting(asked: Request, ask: Callable[[], Answer]) -> None:
            if asked.method == "PUT" and "/_trinity/external/" in asked.path and next(waits, False):
                outcomes.append(interleaved(act))

        request.getfixturevalue("_faults").enter_context(server.proxy.faulty(putting))
        return outcomes

    return before


@pytest.fixture
def _faults() -> Iterator[ExitStack]:
    with ExitStack() as faults:
        yield faults


def test_a_table_that_is_dropped_while_its_properties_are_set_stays_dropped(
    whole: dict[str, Any], tmp_path: Path, changing: Changing
) -> None:
    with trinity.connect(**whole) as one, trinity.connect(**whole) as other:
        table = one.register("parquet.default.t", "parquet", others_folder(tmp_path))
        dropped = changing(lambda: other.drop_table("parquet.default.t"))
        assert told_by(lambda: table.set_properties({"comment": "mine"})) in (None, "TABLE_NOT_FOUND")
        assert [outcomes.result() for outcomes in dropped] == [None]
        assert one.list_tables("parquet", "default") == []


def test_properties_that_two_set_at_once_are_both_set(
    whole: dict[str, Any], tmp_path: Path, changing: Changing
) -> None:
    with trinity.connect(**whole) as one, trinity.connect(**whole) as other:
        one.register("parquet.default.t", "parquet", others_folder(tmp_path))
        set_too = changing(lambda: other.table("parquet.default.t").set_properties({"write.sync": "false"}))
        one.table("parquet.default.t").set_properties({"comment": "mine"})
        assert [outcomes.result() for outcomes in set_too] == [None]
        assert other.table("parquet.default.t").definition.properties == {"comment": "mine", "write.sync": "false"}


def just_before(*gates: tuple[str, str, Callable[[], object]]) -> Callable[[Request, Callable[[], Answer]], None]:
    """Return a fault of a store that runs functions, one after the other, each just before a matching request.

    Args:
        gates: (method, part of the path, function) of each request.
    """
    left = list(gates)

    def meanwhile(asked: Request, ask: Callable[[], Answer]) -> None:
        if left and asked.method == left[0][0] and left[0][1] in asked.path:
            rest, (_, _, act) = left[1:], left[0]
            left.clear()  # the act's own requests pass
            act()
            left.extend(rest)

    return meanwhile


@pytest.mark.parametrize("catalog", ["parquet", "delta"])
def test_in_a_bucket_nobody_sees_a_table_whose_schema_is_dropped_while_it_is_made(
    object_server: ObjectServer, place: str, catalog: str
) -> None:
    """The schema is dropped just before the name is put. Another session looks for the table before its maker does."""
    seen: list[object] = []
    with (
        trinity.connect(place, storage_options=object_server.options) as maker,
        trinity.connect(place, storage_options=object_server.options) as other,
    ):
        maker.create_schema(f"{catalog}.s")
        meanwhile = just_before(
            ("PUT", "/_trinity/tables/", lambda: other.drop_schema(f"{catalog}.s")),
            ("GET", "schemas", lambda: seen.append(other.find_table(TableName(catalog, "s", "t")))),
        )
        with object_server.proxy.faulty(meanwhile):
            assert told_by(lambda: maker.create_table(f"{catalog}.s.t", COLUMNS)) == "SCHEMA_NOT_FOUND"
    assert seen == [None]


@pytest.mark.parametrize("catalog", ["parquet", "delta"])
def test_in_a_bucket_a_schema_in_which_a_table_is_made_is_never_gone(
    object_server: ObjectServer, place: str, catalog: str
) -> None:
    """The table is made after the drop has found none, and before the drop looks again."""
    seen: list[object] = []
    with (
        trinity.connect(place, storage_options=object_server.options) as dropper,
        trinity.connect(place, storage_options=object_server.options) as other,
    ):
        dropper.create_schema(f"{catalog}.s")
        meanwhile = just_before(
            ("PUT", "/_trinity/schemas/", lambda: other.create_table(f"{catalog}.s.t", COLUMNS)),
            ("GET", "tables", lambda: seen.append("s" in other.schemas(catalog))),
        )
        with object_server.proxy.faulty(meanwhile):
            assert told_by(lambda: dropper.drop_schema(f"{catalog}.s")) == "SCHEMA_NOT_EMPTY"
        assert dropper.list_tables(catalog, "s") == ["t"]
    assert seen == [True]


def test_no_table_of_iceberg_is_in_the_database_once_its_schema_was_dropped(
    object_server: ObjectServer, place: str, tmp_path: Path
) -> None:
    """The schema is dropped after the metadata was put, and before the database has the table; a trigger records it."""
    lake = bucket_lake(
        "iceberg", object_server, place.removeprefix("s3://").partition("/")[0], database_of("iceberg", tmp_path)
    )
    with lake.connect() as maker, lake.connect() as other:
        maker.create_schema("lake.s")
        with closing(sqlite3.connect(str(lake.database["uri"]).removeprefix("sqlite:///"))) as database:
            database.execute("CREATE TABLE seen (name TEXT)")
            database.execute(
                "CREATE TRIGGER made AFTER INSERT ON iceberg_tables BEGIN INSERT INTO seen VALUES (NEW.table_name); END"
            )
            database.commit()

        meanwhile = just_before(("PUT", "metadata.json", lambda: other.drop_schema("lake.s")))
        with object_server.proxy.faulty(meanwhile):
            assert told_by(lambda: maker.create_table("lake.s.t", COLUMNS)) == "SCHEMA_NOT_FOUND"
        with closing(sqlite3.connect(str(lake.database["uri"]).removeprefix("sqlite:///"))) as database:
            assert database.execute("SELECT name FROM seen").fetchall() == []


def test_a_table_of_iceberg_that_is_dropped_at_once_was_made(
    object_server: ObjectServer, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its maker does not look for it again."""
    bucket = place.removeprefix("s3://").partition("/")[0]
    lake = bucket_lake("iceberg", object_server, bucket, database_of("iceberg", tmp_path))
    commit = CreateTableTransaction.commit_transaction
    with lake.connect() as maker, lake.connect() as other:

        def dropped(made: CreateTableTransaction) -> object:
            found = commit(made)
            other.drop_table("lake.default.t")
            return found

        monkeypatch.setattr(CreateTableTransaction, "commit_transaction", dropped)
        assert told_by(lambda: maker.create_table("lake.default.t", COLUMNS)) is None
        assert maker.list_tables("lake", "default") == []


def failing_once_made(
    made: str, looked_for: str, seen: list[str]
) -> Callable[[Request, Callable[[], Answer]], Answer | None]:
    """Return a fault of a store that fails from the lookup of one name on, after another name was put."""

    def down(request: Request, ask: Callable[[], Answer]) -> Answer | None:
        if (request.method == "PUT" and made in request.path) or (seen and looked_for in request.path):
            seen.append(request.path)
        return Answer(503) if len(seen) > 1 else None

    return down


def test_a_table_that_a_failed_call_cannot_remove_is_named(object_server: ObjectServer, place: str) -> None:
    """The store fails after the table was made, and before its maker has looked for a registration."""
    seen: list[str] = []
    down = failing_once_made("/_trinity/tables/", "external", seen)
    session = trinity.connect(place, storage_options=object_server.options)
    with session, hurried(), object_server.proxy.faulty(down), pytest.raises(TrinityError) as refused:
        session.create_table("parquet.default.t", COLUMNS)
    assert len(seen) > 1
    assert refused.value.code == "COMMIT_STATE_UNKNOWN"
    with trinity.connect(place, storage_options=object_server.options) as session:
        session.drop_table("parquet.default.t")
        assert session.list_tables("parquet", "default") == []


def test_a_registration_that_fails_half_way_is_none(object_server: ObjectServer, place: str, tmp_path: Path) -> None:
    """The store fails after the name was claimed, and before the registration has looked for a table."""
    seen: list[str] = []
    down = failing_once_made("/_trinity/external/", "tables", seen)
    register = registering(others_folder(tmp_path))
    session = trinity.connect(place, storage_options=object_server.options)
    with session, hurried(), object_server.proxy.faulty(down), pytest.raises(TrinityError) as refused:
        register(session, "parquet.default.t")
    assert len(seen) > 1
    assert refused.value.code == "FILESYSTEM_ERROR"
    with trinity.connect(place, storage_options=object_server.options) as session:
        assert session.list_tables("parquet", "default") == []
        session.create_table("parquet.default.t", COLUMNS)
        session.drop_table("parquet.default.t")
        register(session, "parquet.default.t")
        assert session.list_tables("parquet", "default") == ["t"]
