"""L6: a process is killed (SIGKILL) at each storage operation in turn; the table reads as before or as after.

``crash/crash_shim.c`` counts the operations of the child and all its processes, JVM included. Around the commit it
kills them. For all the other places it copies the warehouse before each operation of one child that gets through:
what a kill there would have left on the disk.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.changes import defined_changes, feed
from tests.support.crash import built_shim, run_until_killed
from tests.support.crash_rows import (
    BATCH,
    FIRST,
    LATER,
    MERGE,
    PLAIN_MERGE,
    SECOND,
    arrow,
    merged,
    plainly_merged,
    read,
)
from tests.support.paths import TESTS
from trinity import Column, Session
from trinity.table import Table

STATEMENTS = {"merge": MERGE, "plain merge": PLAIN_MERGE}

# the operation by which the commit becomes visible, as the shim prints it
COMMIT = {
    "parquet": "link */_trinity/log/*.json",
    "delta": "link */_delta_log/*.json",
    "iceberg": "unlink */catalog.db-journal",
}


@dataclass(frozen=True)
class Crash:
    """Runs the child, and kills it.

    Attributes:
        shim: the shared library.
        folder: scratch, outside of the warehouse.
        warehouse: what is watched.
        rows: the file with BATCH.
    """

    shim: Path
    folder: Path
    warehouse: Path
    rows: Path

    def run(self, action: str, table: str, at: int = 0, match: str = "", copies: str = "") -> bool:
        """Runs the child up to operation ``at``, counted from ``match`` on; True when it was killed there."""
        control = self.folder / "control"
        control.write_bytes(bytes(64))
        self.trace.unlink(missing_ok=True)
        environment = {
            "LD_PRELOAD": str(self.shim),
            "CRASH_ROOT": str(self.warehouse),
            "CRASH_CONTROL": str(control),
            "CRASH_TRACE": str(self.trace),
            "CRASH_AT": str(at),
            "CRASH_MATCH": match,
            "CRASH_COPIES": copies,
        }
        words = [action, self.warehouse, table]
        if action == "append":
            words.append(self.rows)
        elif action in STATEMENTS:
            words = [
                "sql",
                self.warehouse,
                table,
                STATEMENTS[action].format(table=table, rows=f"parquet.`{self.rows}`"),
            ]
        return run_until_killed(TESTS / "crash" / "child.py", words, environment, self.folder)

    @property
    def trace(self) -> Path:
        """The file with what the child did, and was about to do, a line each."""
        return self.folder / "trace"

    def last_operation(self) -> str:
        """What the child was about to do."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        return lines[-1] if lines else "nothing"

    def states(self, action: str, table: str) -> Iterator[tuple[str, Path]]:
        """Lets the child get through: the operations, and the warehouse as each of them found it.

        A write comes a second time, after its first half. What leaves the disk as it was, an fsync say, is passed
        over. The last state is the one after the child's end.
        """
        copies = self.folder / "copies"
        copies.mkdir()
        seen = digest(self.warehouse)
        assert not self.run(action, table, copies=str(copies))
        end = self.warehouse.rename(copies / "end")
        for line in self.trace.read_text().splitlines():
            for torn in ("", ".torn"):
                state = copies / f"{line.split()[0]}{torn}"
                if not state.exists():
                    continue
                before, seen = seen, digest(state)
                if seen != before:
                    yield f"{line}{torn.replace('.', ', ')}", state
        yield "end", end


def digest(folder: Path) -> str:
    """All names and all bytes under a folder."""
    found = hashlib.blake2b()
    for file in sorted(folder.rglob("*")):
        found.update(os.fsencode(file.relative_to(folder)) + b"\0")
        if file.is_file():
            found.update(hashlib.blake2b(file.read_bytes()).digest())
    return found.hexdigest()


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def crash(shim: Path, tmp_path: Path, warehouse: Path) -> Crash:
    folder = tmp_path / "crash"
    folder.mkdir()
    rows = folder / "batch.parquet"
    pq.write_table(arrow(BATCH), rows)
    return Crash(shim, folder, warehouse, rows)


@pytest.fixture
def victim(session: Session) -> Callable[[str, str], Table]:
    """Makes a table with two commits; a new one each time, so that no kill builds on another."""
    made = 0

    def make(catalog: str, action: str) -> Table:
        nonlocal made
        made += 1
        columns = [Column("id", "bigint"), Column("ts", "bigint"), Column("deleted", "boolean"), Column("v", "string")]
        if action == "plain merge":
            plain = session.create_table(f"{catalog}.default.victim_{made}", columns)
            plain.append(arrow(FIRST[:25]))
            plain.append(arrow(FIRST[25:]))
            return plain
        options = {"watermark-key": "ts", "tombstone-key": "deleted"}
        table = session.create_table(
            f"{catalog}.default.victim_{made}", columns, primary_key=["id"], properties=options
        )
        table.upsert(arrow(FIRST))
        if action == "resolve":
            table.compact(full=True)
        table.upsert(arrow(SECOND))
        return table

    return make


def check_append(table: Table, killed: bool, where: str) -> None:
    """As before or as after; the same batch again gives after; later rows fold as ever."""
    found, after = read(table), merged(FIRST, SECOND, BATCH)
    allowed = [merged(FIRST, SECOND), after] if killed else [after]
    assert found in allowed, where
    table.upsert(arrow(BATCH), txn=("crash", 1))
    table.upsert(arrow(LATER))
    assert read(table) == merged(FIRST, SECOND, BATCH, LATER), where


def check_compaction(table: Table, killed: bool, where: str) -> None:
    """Nothing changed; later rows fold as ever, also after a compaction that runs to its end."""
    assert read(table) == merged(FIRST, SECOND), where
    compacted = {f.tier.value for f in table.splits().files} == {"base"}
    assert compacted or killed, where
    table.upsert(arrow(LATER))
    assert read(table) == merged(FIRST, SECOND, LATER), where
    table.compact("resolve")
    assert read(table) == merged(FIRST, SECOND, LATER), where
    table.compact(full=True)
    assert read(table) == merged(FIRST, SECOND, LATER), where


def check_plain_merge(table: Table, killed: bool, where: str) -> None:
    """As before or as after; later rows come on top."""
    found = read(table)
    assert found in ([sorted(FIRST), plainly_merged()] if killed else [plainly_merged()]), where
    table.append(arrow(LATER))
    assert read(table) == sorted([*found, *LATER]), where


CHECKS: dict[str, Callable[[Table, bool, str], None]] = {
    "append": check_append,
    "compact": check_compaction,
    "resolve": check_compaction,
    "merge": check_append,  # with * it is an upsert of the same rows
    "plain merge": check_plain_merge,
}


def sweep(
    crash: Crash, victim: Callable[[str, str], Table], catalog: str, action: str, session: Session, spark: SparkSession
) -> int:
    """Checks the table as a kill at operation 1, 2, ... leaves it; how many such states there were."""
    name, met = str(victim(catalog, action).name), list[str]()
    session.close()
    for where, state in crash.states(action, name):
        put_back(state, crash.warehouse, spark)
        with trinity.connect(crash.warehouse) as another:
            CHECKS[action](another.table(name), where != "end", f"{catalog} {action} killed at {where}")
        met.append(where)
    assert any(where.endswith(", torn") for where in met)
    return len(met)


def put_back(state: Path, warehouse: Path, spark: SparkSession) -> None:
    """Makes the warehouse what a state of it was, for a Spark that remembers nothing of the later ones."""
    shutil.rmtree(warehouse, ignore_errors=True)
    state.rename(warehouse)
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def kill_around_commit(crash: Crash, victim: Callable[[str, str], Table], catalog: str, action: str) -> None:
    """Kills right before the commit, and right after it; each child starts a Spark of its own."""
    points: list[dict[str, Any]] = [{"at": 1, "match": COMMIT[catalog]}, {"at": 2, "match": COMMIT[catalog]}]
    for point in points:
        table = victim(catalog, action)
        killed = crash.run(action, str(table.name), **point)
        where = f"{catalog} {action} at {point}: {crash.last_operation()}"
        assert killed or point["at"] > 1, f"{where}: the operation did not come"
        CHECKS[action](table, killed, where)


@pytest.mark.parametrize(
    ("catalog", "action"),
    [
        pytest.param("iceberg", "append", marks=pytest.mark.full),
        pytest.param("delta", "append", marks=pytest.mark.full),
        pytest.param("parquet", "compact", marks=pytest.mark.full),
        pytest.param("delta", "resolve", marks=pytest.mark.full),
        *[pytest.param(catalog, "merge", marks=pytest.mark.full) for catalog in COMMIT],
        pytest.param("delta", "plain merge", marks=pytest.mark.full),
    ],
)
def test_killed_around_the_commit(crash: Crash, victim: Callable[[str, str], Table], catalog: str, action: str) -> None:
    kill_around_commit(crash, victim, catalog, action)


LISTED = "link */_trinity/changelog/*.json"
"""The operation by which the changes of a version are on disk."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("catalog", "at", "match"),
    [("parquet", 2, COMMIT["parquet"]), ("parquet", 2, LISTED), *[(catalog, 1, LISTED) for catalog in COMMIT]],
)
def test_killed_between_a_commit_and_its_changes(
    crash: Crash, victim: Callable[[str, str], Table], catalog: str, at: int, match: str
) -> None:
    """The commit stands, and its feed is right: computed, where it was not written (C6)."""
    table = victim(catalog, "append")
    table.set_properties({"changelog-producer": "lookup"})
    first, *others = (entry.version for entry in table.connector.metadata.history(table.handle))
    assert crash.run("append", str(table.name), at, match)
    assert read(table) == merged(FIRST, SECOND, BATCH)
    (committed,) = {entry.version for entry in table.connector.metadata.history(table.handle)} - {first, *others}
    whole = feed(table, first)
    assert whole == defined_changes(table, first, committed)
    last = table.upsert(arrow(LATER)).version
    assert feed(table, first) == defined_changes(table, first, last)


@pytest.mark.full
@pytest.mark.parametrize("catalog", COMMIT)
@pytest.mark.parametrize("action", CHECKS)
def test_killed_at_every_operation(
    crash: Crash,
    victim: Callable[[str, str], Table],
    catalog: str,
    action: str,
    session: Session,
    spark: SparkSession,
) -> None:
    assert sweep(crash, victim, catalog, action, session, spark) >= 5
