"""L6: a process is killed (SIGKILL) at each storage operation in turn; the table reads as before or as after.

``crash/crash_shim.c`` counts the operations of the child and all its processes, JVM included. Around the commit it
kills them. For all other operations it copies the warehouse before each one, in a child that is not killed: a kill at
that moment would have left this state on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.changes import defined_changes, feed
from tests.support.crash import COMMIT, Crash, built_shim
from tests.support.crash_rows import (
    BATCH,
    FIRST,
    LATER,
    MERGE,
    PLAIN_MERGE,
    SECOND,
    arrow,
    made_victim,
    merged,
    plainly_merged,
)
from tests.support.paths import TESTS
from tests.support.spark import clear_delta_cache
from tests.support.tables import check_that_spark_agrees, ordered_rows, spark_rows
from trinity import Session, Table

STATEMENTS = {"merge": MERGE, "plain merge": PLAIN_MERGE}


def words(action: str, warehouse: Path, table: str, rows: Path) -> list[object]:
    """Return the child's arguments."""
    if action in STATEMENTS:
        return ["sql", warehouse, table, STATEMENTS[action].format(table=table, rows=f"parquet.`{rows}`")]
    return [action, warehouse, table, *([rows] if action == "append" else [])]


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def crash(shim: Path, tmp_path: Path, warehouse: Path) -> Crash:
    folder = tmp_path / "crash"
    folder.mkdir()
    pq.write_table(arrow(BATCH), folder / "batch.parquet")
    return Crash(shim, folder, warehouse, TESTS / "crash" / "child.py")


@pytest.fixture
def victim(session: Session) -> Callable[[str, str], Table]:
    """Return a function that makes a new table with two commits, so that kills do not build on each other."""
    made = 0

    def make(catalog: str, action: str) -> Table:
        nonlocal made
        made += 1
        name = f"{catalog}.default.victim_{made}"
        return made_victim(session, name, plain=action == "plain merge", base=action == "resolve")

    return make


def check_append(table: Table, killed: bool, where: str) -> None:
    """Check that the state is as before or after the append, a retry leads to the latter, and later rows fold."""
    found, after = ordered_rows(table), merged(FIRST, SECOND, BATCH)
    allowed = [merged(FIRST, SECOND), after] if killed else [after]
    assert found in allowed, where
    table.upsert(arrow(BATCH), txn=("crash", 1))
    table.upsert(arrow(LATER))
    assert ordered_rows(table) == merged(FIRST, SECOND, BATCH, LATER), where


def check_compaction(table: Table, killed: bool, where: str) -> None:
    """Check that the rows are unchanged, and that later rows fold, also after another compaction."""
    assert ordered_rows(table) == merged(FIRST, SECOND), where
    compacted = {f.tier.value for f in table.splits().files} == {"base"}
    assert compacted or killed, where
    table.upsert(arrow(LATER))
    assert ordered_rows(table) == merged(FIRST, SECOND, LATER), where
    table.compact("resolve")
    assert ordered_rows(table) == merged(FIRST, SECOND, LATER), where
    table.compact(full=True)
    assert ordered_rows(table) == merged(FIRST, SECOND, LATER), where


def check_plain_merge(table: Table, killed: bool, where: str) -> None:
    """Check that the state is as before or after the MERGE, and that later rows are added to it."""
    found = ordered_rows(table)
    assert found in ([sorted(FIRST), plainly_merged()] if killed else [plainly_merged()]), where
    table.append(arrow(LATER))
    assert ordered_rows(table) == sorted([*found, *LATER]), where


CHECKS: dict[str, Callable[[Table, bool, str], None]] = {
    "append": check_append,
    "compact": check_compaction,
    "resolve": check_compaction,
    "merge": check_append,  # with * it is an upsert of the same rows
    "plain merge": check_plain_merge,
}


def check(table: Table, action: str, killed: bool, where: str) -> None:
    """Check what a kill left, and that Spark reads it, and what came of it, as this process does."""
    check_that_spark_agrees(table, where)
    CHECKS[action](table, killed, where)
    check_that_spark_agrees(table, where)


def sweep(
    crash: Crash, victim: Callable[[str, str], Table], catalog: str, action: str, session: Session, spark: SparkSession
) -> int:
    """Check the table as a kill of Spark at each operation leaves it, and return the number of these states."""
    name, reached = str(victim(catalog, action).name), list[str]()
    session.close()
    for where in crash.states(words(action, crash.warehouse, name, crash.folder / "batch.parquet")):
        clear_delta_cache(spark)
        with trinity.connect(crash.warehouse) as another:
            check(another.table(name), action, where != "end", f"{catalog} {action} killed at {where}")
        reached.append(where)
    assert any(where.endswith(", torn") for where in reached)
    return len(reached)


def kill_around_commit(crash: Crash, victim: Callable[[str, str], Table], catalog: str, action: str) -> None:
    """Check kills right before and right after the commit; each child starts a Spark of its own."""
    points: list[dict[str, Any]] = [{"at": 1, "match": COMMIT[catalog]}, {"at": 2, "match": COMMIT[catalog]}]
    for point in points:
        table = victim(catalog, action)
        killed = crash.run(words(action, crash.warehouse, str(table.name), crash.folder / "batch.parquet"), **point)
        where = f"{catalog} {action} at {point}: {crash.last_operation()}"
        assert killed or point["at"] > 1, f"{where}: the operation did not come"
        check(table, action, killed, where)


@pytest.mark.parametrize(
    ("catalog", "action"),
    [
        pytest.param("iceberg", "append", marks=pytest.mark.full),
        pytest.param("parquet", "compact", marks=pytest.mark.full),
        pytest.param("delta", "merge", marks=pytest.mark.full),
        pytest.param("iceberg", "plain merge", marks=pytest.mark.full),
    ],
)
def test_killed_around_the_commit(crash: Crash, victim: Callable[[str, str], Table], catalog: str, action: str) -> None:
    kill_around_commit(crash, victim, catalog, action)


LISTED = "link */_trinity/changelog/*.json"
"""The operation after which the changes of a version are on disk."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("catalog", "at", "match"),
    [("parquet", 2, COMMIT["parquet"]), ("parquet", 2, LISTED), *[(catalog, 1, LISTED) for catalog in COMMIT]],
)
def test_killed_between_a_commit_and_its_changes(
    crash: Crash, victim: Callable[[str, str], Table], catalog: str, at: int, match: str
) -> None:
    """The commit stands, and its change feed is right: computed where it was not written (C6)."""
    table = victim(catalog, "append")
    table.set_properties({"changelog-producer": "lookup"})
    first, *others = (entry.version for entry in table.connector.metadata.history(table.handle))
    assert crash.run(words("append", crash.warehouse, str(table.name), crash.folder / "batch.parquet"), at, match)
    assert ordered_rows(table) == sorted(spark_rows(table)) == merged(FIRST, SECOND, BATCH)
    (committed,) = {entry.version for entry in table.connector.metadata.history(table.handle)} - {first, *others}
    whole = feed(table, first)
    assert whole == defined_changes(table, first, committed)
    last = table.upsert(arrow(LATER)).version
    assert feed(table, first) == defined_changes(table, first, last)


@pytest.mark.full
@pytest.mark.parametrize(("action", "catalog"), [*zip(CHECKS, cycle(COMMIT), strict=False)])
def test_killed_at_every_operation(
    crash: Crash,
    victim: Callable[[str, str], Table],
    catalog: str,
    action: str,
    session: Session,
    spark: SparkSession,
) -> None:
    """Formats take turns: tests/local/test_local_crash.py has every statement in each of them."""
    assert sweep(crash, victim, catalog, action, session, spark) >= 5
