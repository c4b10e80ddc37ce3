"""L6 in an S3 bucket: a process is killed around each of its requests; the table reads as before or as after.

One run is not killed, and each state of the bucket during it is restored: a kill at that moment would have left it.
Real kills at random requests follow.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_lake import COLUMNS, ROWS, BucketLake, objects, stored
from tests.support.bucket_moments import Moment, watched
from tests.support.bucket_use import unneeded
from tests.support.crash import KILLED, kill_session
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
    values,
)
from tests.support.fault_proxy import LOST, Answer, Request
from tests.support.object_store import ObjectServer
from tests.support.paths import TESTS
from tests.support.tables import check_that_spark_agrees, ordered_rows
from trinity import Column, Session
from trinity.clock import clock_ahead

pytestmark = pytest.mark.inner

ELSEWHERE: Final = {"region": "eu-west-1"}
"""Options for the same store under which the process has not yet tested conditional puts."""
CHECKPOINTS: Final = {"delta.checkpointInterval": "2"}
"""With these properties Delta writes a checkpoint with the append that is killed."""
INTERVALS: Final = {"parquet": {"checkpoint-interval": 2}}
"""With these options Parquet does, too."""
CHILD: Final = TESTS / "crash" / "in_bucket.py"
FEWEST: Final = 3
"""Every action that is killed makes at least this many requests that write."""
COMPACTIONS: Final = ("minor", "resolve", "full")


@pytest.fixture(autouse=True)
def later() -> Iterator[None]:
    """Let a vacuum remove metadata of the last ten minutes, which it would keep."""
    with clock_ahead(timedelta(minutes=15)):
        yield


def test_an_append_that_is_killed_at_any_request(cloud: BucketLake, object_server: ObjectServer) -> None:
    cloud = replace(
        cloud, place=f"s3://{object_server.new_bucket()}/w", database={**cloud.database, **INTERVALS.get(cloud.fmt, {})}
    )
    with cloud.connect() as session:
        session.create_table("t", COLUMNS, properties=CHECKPOINTS if cloud.fmt == "delta" else {}).append(ROWS)
    with cloud.connect(**ELSEWHERE) as session, watched(cloud) as moments:
        session.table("t").append(ROWS, txn=("crash", 1))
    seen = [check_plain_append(cloud, object_server, moments.put_back(moment)) for moment in moments.found]
    assert sorted(seen) == seen  # before the commit the old state, then the new one
    assert {seen[0], seen[-1]} == {2, 4}
    assert len(seen) > 2


def check_plain_append(cloud: BucketLake, server: ObjectServer, moment: Moment) -> int:
    """Check that the rows are as before or after the append, and that a retry works. Return the number of
    rows found.
    """
    with cloud.connect() as session:
        table = session.table("t")
        count = len(stored(server, table))
        assert table.append(ROWS, txn=("crash", 1)).skipped == (count == 4), moment.where
        table.append(ROWS)
        table.vacuum("0 seconds")
        assert unneeded(cloud, table) == [], moment.where
        assert len(stored(server, table)) == 6, moment.where
        return count


def define(session: Session, action: str) -> None:
    """Run the action that is killed, on a table of three commits or on a new one."""
    if action == "create":
        session.create_table("u", COLUMNS)
    elif action == "drop":
        session.drop_table("t")
    elif action == "alter":
        session.table("t").add_column(Column("more", "int"))
    else:
        session.table("t").vacuum("0 seconds")


@pytest.mark.full
@pytest.mark.parametrize("action", ["create", "drop", "alter", "vacuum"])
def test_a_table_is_defined_or_not(cloud: BucketLake, spark: SparkSession, action: str) -> None:
    """The check needs Spark: it maintains the catalog, which compacts."""
    with cloud.connect() as session:
        table = session.create_table("t", COLUMNS)
        for _ in range(2):
            table.append(ROWS)
        table.connector.metadata.truncate(table.handle)
        table.append(ROWS)
    with cloud.connect(**ELSEWHERE) as session, watched(cloud) as moments:
        define(session, action)
    seen = []
    for moment in moments.found:
        moments.put_back(moment)
        with cloud.connect() as session:
            seen.append(check_defined(session, cloud, action, f"{action} killed {moment.where}"))
    assert sorted(seen) == seen  # up to some request the old state, then the new one
    assert seen[0] < seen[-1]


def check_defined(session: Session, cloud: BucketLake, action: str, where: str) -> bool:
    """Check that the state is as before or after the action, which can be repeated. Return whether it is after."""
    names = session.list_tables("lake", "default")
    if action == "create":
        done = "u" in names
    elif action == "drop":
        done = names == []
    elif action == "alter":
        done = len(session.table("t").definition.columns) == 3
    else:
        done = unneeded(cloud, session.table("t")) == []
    if not done:
        define(session, action)
    table = session.create_table("t", COLUMNS) if action == "drop" else session.table("t")
    assert len(stored(cloud.server, table)) == (0 if action == "drop" else 2), where
    table.append(ROWS)
    table.vacuum("0 seconds")
    assert len(stored(cloud.server, table)) == (2 if action == "drop" else 4), where
    assert unneeded(cloud, table) == [], where
    if cloud.fmt != "iceberg":  # the catalog of which does not record dropped tables
        session.maintain("lake.default", vacuum="0 seconds")
        known = [session.table(name).location for name in session.list_tables("lake", "default")]
        there = [f"s3://{name}" for name in objects(cloud.server, f"{cloud.place}/default")]
        assert [name for name in there if not name.startswith(tuple(known))] == [], where
    return done


# -- through Spark ----------------------------------------------------------------------------------------


@pytest.fixture
def stored_tables(spark: SparkSession, cloud: BucketLake) -> None:
    """Make a keyed table with a base and two later commits, and a plain one of two commits."""
    columns = [Column("id", "bigint"), Column("ts", "bigint"), Column("deleted", "boolean"), Column("v", "string")]
    options = {"watermark-key": "ts", "tombstone-key": "deleted"}
    with cloud.connect() as session:
        table = session.create_table("t", columns, primary_key=["id"], properties=options)
        table.upsert(arrow(FIRST))
        table.compact(full=True)
        table.upsert(arrow(SECOND[:10]))
        table.upsert(arrow(SECOND[10:]))
        plain = session.create_table("plain", columns)
        plain.append(arrow(FIRST[:25]))
        plain.append(arrow(FIRST[25:]))


def act(session: Session, action: str) -> None:
    """Run the action that is killed."""
    if action == "append":
        session.table("t").upsert(arrow(BATCH), txn=("crash", 1))
    elif action == "merge":
        session.sql(MERGE.format(table="t", rows=values(BATCH)))
    elif action == "plain merge":
        session.sql(PLAIN_MERGE.format(table="plain", rows=values(BATCH)))
    else:
        assert not session.table("t").compact(action).skipped


def check(cloud: BucketLake, action: str, where: str, number: int) -> bool:
    """Check that the state is as before or after the action, and later statements work, and that Spark reads as this
    process does. Return whether the state is after the action.
    """
    with cloud.connect() as session:
        plain = action == "plain merge"
        table = session.table("plain" if plain else "t")
        check_that_spark_agrees(table, where)
        after = (check_plain if plain else check_keyed)(session, action, where, number, cloud)
        check_that_spark_agrees(table, where)
        return after


def check_keyed(session: Session, action: str, where: str, number: int, cloud: BucketLake) -> bool:
    table, before, after = session.table("t"), merged(FIRST, SECOND), merged(FIRST, SECOND, BATCH)
    tiers = {file.tier.value for file in table.splits().files}
    found = ordered_rows(table)
    assert found in ([before, after] if action in ("append", "merge") else [before]), where
    table.upsert(arrow(BATCH), txn=("crash", 1))
    assert ordered_rows(table) == after, where
    session.sql(MERGE.format(table="t", rows=values(LATER)))
    assert ordered_rows(table) == merged(FIRST, SECOND, BATCH, LATER), where
    table.compact(action if action in COMPACTIONS else COMPACTIONS[number % 3])
    table.vacuum("0 seconds")
    assert unneeded(cloud, table) == [], where
    assert ordered_rows(table) == merged(FIRST, SECOND, BATCH, LATER), where
    return found == after if action in ("append", "merge") else tiers == {"base"}


def check_plain(session: Session, action: str, where: str, number: int, cloud: BucketLake) -> bool:
    table, before, after = session.table("plain"), sorted(FIRST), plainly_merged()
    found = ordered_rows(table)
    assert found in (before, after), where
    table.append(arrow(LATER))
    session.sql(PLAIN_MERGE.format(table="plain", rows=values(BATCH)))
    expected = plainly_merged([*found, *LATER])
    assert ordered_rows(table) == expected, where
    table.compact(full=True)
    table.vacuum("0 seconds")
    assert unneeded(cloud, table) == [], where
    assert ordered_rows(table) == expected, where
    return found == after


@pytest.mark.full
@pytest.mark.parametrize("action", ["append", "merge", "plain merge", *COMPACTIONS])
def test_a_process_that_is_killed_at_any_request(stored_tables: None, cloud: BucketLake, action: str) -> None:
    with cloud.connect(**ELSEWHERE) as session, watched(cloud) as moments:
        act(session, action)
    seen = []
    for number, moment in enumerate(moments.found):
        moments.put_back(moment)
        seen.append(check(cloud, action, f"{action} killed {moment.where}", number))
    assert sorted(seen) == seen  # before the commit the old state, then the new one
    assert seen[0] < seen[-1] or action == "minor"
    assert len(seen) > 2


@pytest.mark.full
@pytest.mark.parametrize("action", ["merge", "resolve"])
def test_a_process_that_is_killed(stored_tables: None, cloud: BucketLake, action: str) -> None:
    """SIGKILL at a random request that writes ends the process, its JVM and its workers."""
    drawn = random.Random(f"{cloud.fmt} {action}")
    last, forwarded = drawn.randint(1, FEWEST), drawn.random() < 0.5
    writing, mutex = list[Request](), threading.Lock()
    words = ("sql", MERGE.format(table="t", rows=values(BATCH))) if action == "merge" else ("compact", action)

    def kills(request: Request, ask: Callable[[], Answer]) -> Answer | None:
        if request.method in ("GET", "HEAD"):
            return LOST if len(writing) == last else None
        with mutex:
            if len(writing) < last:
                writing.append(request)
                if len(writing) < last:
                    return None
                if forwarded:
                    ask()
                kill_session(child.pid)
            return LOST

    with cloud.server.proxy.faulty(kills):
        command = [sys.executable, str(CHILD), json.dumps(cloud.named), *words]
        child = subprocess.Popen(command, env={**os.environ, **cloud.environment}, start_new_session=True)
        assert child.wait() == KILLED
    where = f"{action} killed {'after' if forwarded else 'before'} {writing[-1]}"
    check(cloud, action, where, last)
