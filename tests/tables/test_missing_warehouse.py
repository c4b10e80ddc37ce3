"""A warehouse that does not exist: reads find it empty and make nothing; its first table or schema makes it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import trinity
from tests.support.bucket_lake import BucketLake, bucket_lake, database_of, objects
from tests.support.refusals import refused
from trinity import Column, Session
from trinity.cli.main import app

COLUMNS: Final = [Column("k", "int")]
ROW: Final = pa.table({"k": pa.array([1], pa.int32())})
MAKERS: Final = 4


def left(folder: Path) -> list[str]:
    """Return all paths below a folder, sorted."""
    return sorted(str(found.relative_to(folder)) for found in folder.rglob("*"))


def look_around(session: Session, catalog: str) -> None:
    """Call the functions that read, maintain or remove; check that they find nothing."""
    metadata = session.connector(catalog).metadata
    assert (metadata.list_schemas(), session.list_tables(catalog, "default"), session.maintain()) == (
        ["default"],
        [],
        [],
    )
    assert session.maintain(f"{catalog}.default", vacuum="0 seconds") == []
    for call in (session.table, session.drop_table, session.repair):
        with refused("TABLE_NOT_FOUND", f"{catalog}.default.t"):
            call(f"{catalog}.default.t")
        with refused("SCHEMA_NOT_FOUND", "nowhere"):
            call(f"{catalog}.nowhere.t")
    with refused("SCHEMA_NOT_FOUND", "nowhere"):
        session.create_table(f"{catalog}.nowhere.t", COLUMNS)
    with refused("SCHEMA_NOT_FOUND", "nowhere"):
        session.list_tables(catalog, "nowhere")
    with refused("SCHEMA_NOT_FOUND", "nowhere"):
        metadata.drop_schema("nowhere")
    with refused("SCHEMA_ALREADY_EXISTS"):
        metadata.create_schema("default")
    with refused("NOT_SUPPORTED"):
        metadata.drop_schema("default")


def test_what_reads_leaves_nothing(tmp_path: Path, fmt: str) -> None:
    with trinity.connect(tmp_path / "absent/w") as session:
        look_around(session, fmt)
    with trinity.connect(catalogs={"lake": {"connector": fmt, "warehouse": str(tmp_path / "absent")}}) as session:
        look_around(session, "lake")
    assert left(tmp_path) == []


def test_what_reads_leaves_nothing_in_a_bucket(object_server: Any, bucket: str, tmp_path: Path, fmt: str) -> None:
    lake: BucketLake = bucket_lake(fmt, object_server, bucket, database_of(fmt, tmp_path))
    with lake.connect() as session:
        look_around(session, "lake")
    assert (objects(object_server, lake.place), left(tmp_path)) == ([], [])


COMMANDS: Final = {
    "tail": ["tail", "parquet.default.t", "--once"],
    "health": ["health", "delta.default.t"],
    "maintain": ["maintain"],
    "maintain a schema": ["maintain", "iceberg.default", "--vacuum", "7 days"],
    "repair": ["repair", "iceberg.default.t", "--dry-run"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_that_read_refuse_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    for given in ([], ["--warehouse", "missing"], ["-w", str(tmp_path / "deep/missing")]):
        done = CliRunner().invoke(app, [*command, *given])
        assert done.exit_code == 2
        assert done.stderr.startswith("CONFIGURATION_INVALID")
        assert str(tmp_path / (given[-1] if given else "warehouse")) in done.stderr
    assert left(tmp_path) == []


def test_commands_that_read_refuse_a_place_without_objects(
    object_server: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake: BucketLake = bucket_lake("parquet", object_server, bucket, {})
    for name, value in lake.environment.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, ["maintain", "-w", lake.place], env={"COLUMNS": "500"})
    assert (done.exit_code, done.stderr.partition(":")[0]) == (2, "CONFIGURATION_INVALID")
    assert lake.place in done.stderr
    assert objects(object_server, lake.place) == []


def test_a_command_reads_one_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    assert CliRunner().invoke(app, ["maintain", "-w", str(tmp_path / "w")]).exit_code == 0
    assert left(tmp_path) == ["w"]


def refusals(tmp_path: Path) -> dict[str, tuple[str, str]]:
    """Return kind of a place -> (a warehouse there, the code of its refusal)."""
    (tmp_path / "file").write_text("theirs")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    return {
        "a file": (f"{tmp_path}/file", "FILESYSTEM_ERROR"),
        "below a file": (f"{tmp_path}/file/w", "FILESYSTEM_ERROR"),
        "a link to nothing": (f"{tmp_path}/link", "FILESYSTEM_ERROR"),
        "a long name": (f"{tmp_path}/{'w' * 300}", "FILESYSTEM_ERROR"),
        "no path": (f"{tmp_path}/a\0b", "CONFIGURATION_INVALID"),
    }


@pytest.mark.parametrize("kind", ["a file", "below a file", "a link to nothing", "a long name", "no path"])
def test_a_place_where_no_folder_can_be_is_refused(tmp_path: Path, fmt: str, kind: str) -> None:
    place, code = refusals(tmp_path)[kind]
    before = left(tmp_path)
    for given in ({"warehouse": place}, {"catalogs": {"lake": {"connector": fmt, "warehouse": place}}}):
        with refused(code, str(tmp_path)):
            trinity.connect(**given, catalog=fmt if "warehouse" in given else None)
    assert left(tmp_path) == before


@pytest.mark.parametrize("first", ["table", "schema"])
def test_a_session_sees_what_another_one_makes(tmp_path: Path, fmt: str, first: str) -> None:
    with trinity.connect(tmp_path / "a/w") as early, trinity.connect(tmp_path / "a/w") as maker:
        assert early.list_tables(fmt, "default") == []
        if first == "schema":
            maker.connector(fmt).metadata.create_schema("s")
            assert early.connector(fmt).metadata.list_schemas() == ["default", "s"]
        maker.create_table(f"{fmt}.default.t", COLUMNS)
        assert early.list_tables(fmt, "default") == ["t"]
        early.table(f"{fmt}.default.t").append(ROW)
        early.create_table(f"{fmt}.default.u", COLUMNS)
        assert maker.table(f"{fmt}.default.t").to_arrow().to_pylist() == [{"k": 1}]
        assert maker.list_tables(fmt, "default") == ["t", "u"]
        for name in ("t", "u"):
            maker.drop_table(f"{fmt}.default.{name}")
        assert early.list_tables(fmt, "default") == []


def make_first(session: Session, catalog: str, number: int) -> None:
    """Make a table, or a schema with a table."""
    schema = "default" if number % 2 else f"s{number}"
    if schema != "default":
        session.connector(catalog).metadata.create_schema(schema)
    session.create_table(f"{catalog}.{schema}.t{number}", COLUMNS).append(ROW)


def check_made(session: Session, catalog: str) -> None:
    """Check that each call of :func:`make_first` has made its table."""
    found = [
        f"{s}.{t}" for s in session.connector(catalog).metadata.list_schemas() for t in session.list_tables(catalog, s)
    ]
    assert found == ["default.t1", "default.t3", "s0.t0", "s2.t2"]
    assert [session.table(f"{catalog}.{name}").to_arrow().num_rows for name in found] == [1] * len(found)


def at_once(acts: Sequence[Callable[[], object]]) -> None:
    """Run functions at once, and raise the error of any of them."""
    ready = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> None:
        ready.wait()
        act()

    with ThreadPoolExecutor(len(acts)) as threads:
        list(threads.map(run, acts))


def test_the_first_tables_are_made_at_once(tmp_path: Path, fmt: str) -> None:
    for attempt in range(2):
        sessions = [trinity.connect(tmp_path / f"{attempt}/w") for _ in range(MAKERS)]
        assert [session.list_tables(fmt, "default") for session in sessions] == [[]] * MAKERS
        at_once([partial(make_first, session, fmt, number) for number, session in enumerate(sessions)])
        for session in sessions:
            check_made(session, fmt)
            session.close()


def in_a_process(warehouse: str, fmt: str, number: int, ready: Any, outcomes: Any) -> None:
    with trinity.connect(warehouse) as session:
        session.connector(fmt)
        ready.wait()
        try:
            make_first(session, fmt, number)
            outcomes.put(None)
        except Exception as error:
            outcomes.put(repr(error))


@pytest.mark.full
def test_the_first_tables_are_made_at_once_by_processes(tmp_path: Path, fmt: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    for attempt in range(3):
        place = tmp_path / f"{attempt}/w"
        ready, outcomes = spawn.Barrier(MAKERS), spawn.SimpleQueue()
        running = [
            spawn.Process(target=in_a_process, args=(str(place), fmt, number, ready, outcomes))
            for number in range(MAKERS)
        ]
        for process in running:
            process.start()
        assert [outcomes.get() for _ in running] == [None] * MAKERS
        for process in running:
            process.join()
        with trinity.connect(place) as session:
            check_made(session, fmt)


WITH_SPARK: Final = """
import trinity
from trinity import dbapi

with trinity.connect("absent/w") as session, dbapi.connect(warehouse="absent/w") as connection:
    spark = session.spark
    for catalog in ("parquet", "delta", "iceberg"):
        assert session.sql(f"SHOW TABLES IN {catalog}.default").collect() == []
        assert [row[0] for row in session.sql(f"SHOW SCHEMAS IN {catalog}").collect()] == ["default"]
        name = f"{catalog}.default.t"
        source = spark.readStream.format("trinity").option("table", name)
        for look in (
            lambda: session.sql(f"SELECT * FROM {name}"),
            lambda: session.sql(f"DESCRIBE TABLE {name}"),
            lambda: session.sql(f"DELETE FROM {name}"),
            lambda: source.load(),
            lambda: connection.cursor().execute(f"SELECT * FROM {name}"),
        ):
            try:
                look()
            except Exception as error:
                assert "TABLE_NOT_FOUND" in str(error), error
            else:
                raise AssertionError(name)
        session.sql(f"DROP TABLE IF EXISTS {name}")
        session.sql(f"CREATE SCHEMA IF NOT EXISTS {catalog}.default")
    assert session.sql("SELECT 1 AS one").collect()[0].one == 1
    session.maintain(vacuum="0 seconds")
    spark.stop()
"""


@pytest.mark.full
def test_what_reads_through_spark_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_SPARK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert left(tmp_path) == []
