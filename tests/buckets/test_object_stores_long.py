"""Tables in a bucket, the long tier: writers at once, a writer killed at each of its requests, and faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.bucket_lake import FIRST, BucketLake
from tests.support.fault_proxy import LOST, Answer, Request
from tests.support.object_store import ObjectServer
from trinity import Column, Session, Table
from trinity.errors import TrinityError

pytestmark = pytest.mark.full

APPENDS: Final = """
import json, sys, pyarrow as pa, trinity
settings, first, count = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
table = trinity.connect(catalogs={"lake": settings}).table("t")
for number in range(first, first + count):
    table.append(pa.table({"k": [number]}), txn=(f"app-{number}", 1))
"""
INCREMENTS: Final = """
import json, sys, trinity
settings = {"spark.master": "local[1]", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"}
session = trinity.connect(catalogs={"lake": json.loads(sys.argv[1])}, spark_settings=settings)
for _ in range(int(sys.argv[2])):
    session.sql("UPDATE counters SET n = n + 1 WHERE id = 1")
session.spark.stop()
"""
OPENS: Final = """
import json, sys, trinity
files = trinity.connect(catalogs={"lake": json.loads(sys.argv[1])}).table("t").splits().files
print(json.dumps([file.path.rpartition("/")[2] for file in files]))
"""


@pytest.fixture
def table(s3: Session) -> Table:
    return s3.create_table("t", [Column("k", "bigint")])


def appends(cloud: BucketLake, first: int, count: int) -> subprocess.Popen[bytes]:
    """Start a process that appends rows, one a commit; it gets the store's options from its environment."""
    command = [sys.executable, "-c", APPENDS, json.dumps(cloud.named), str(first), str(count)]
    return subprocess.Popen(command, env={**os.environ, **cloud.environment})


def keys(server: ObjectServer, table: Table, column: str = "k") -> list[int]:
    files = [f.path.removeprefix("s3://") for f in table.splits().files]
    return sorted(k for f in files for k in pq.read_table(f, filesystem=server.files).column(column).to_pylist())


@pytest.mark.parametrize(
    "cloud", ["parquet", "delta", "iceberg", "iceberg-postgres", "iceberg-rest", "iceberg-glue"], indirect=True
)
def test_eight_processes_lose_nothing(table: Table, object_server: ObjectServer, cloud: BucketLake) -> None:
    writers = [appends(cloud, 25 * number, 25) for number in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8
    assert keys(object_server, table) == list(range(200))
    assert table.splits().version == FIRST[cloud.fmt] + 200


def test_processes_lose_no_increment(s3: Session, object_server: ObjectServer, cloud: BucketLake) -> None:
    """An UPDATE that has lost a race reads again, so each row version increments the previous one."""
    columns = [Column("id", "int"), Column("n", "int")]
    counters = s3.create_table("counters", columns, primary_key=["id"])
    whole = pa.int32()
    counters.upsert(pa.table({"id": pa.array([1, 2], whole), "n": pa.array([0, -1], whole)}))
    command, environment = (
        [sys.executable, "-c", INCREMENTS, json.dumps(cloud.named), "4"],
        {**os.environ, **cloud.environment},
    )
    writers = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0] * 3
    assert keys(object_server, counters, "n") == list(range(-1, 13))


@pytest.mark.parametrize("forwarded", [False, True], ids=["before", "after"])
def test_a_writer_that_is_killed_at_a_request_commits_once_or_not(
    table: Table, object_server: ObjectServer, cloud: BucketLake, forwarded: bool
) -> None:
    """The process is killed when the store receives one of its requests, or has answered it. Then it is run again."""
    number, survived = 0, False
    writers: list[subprocess.Popen[bytes]] = []
    while not survived:
        seen: list[Request] = []

        def kills(request: Request, ask: Any, seen: list[Request] = seen, last: int = number) -> Answer | None:
            seen.append(request)
            if len(seen) != last + 1:
                return None
            if forwarded:
                ask()
            writers[-1].kill()
            return LOST

        with object_server.proxy.faulty(kills):
            writers.append(appends(cloud, number, 1))
            survived = writers[-1].wait() == 0
        found = keys(object_server, table)
        assert found in ([*range(number)], [*range(number + 1)])
        assert appends(cloud, number, 1).wait() == 0  # with the same txn
        assert keys(object_server, table) == [*range(number + 1)]
        number += 1
    assert number > 6
    assert table.append(pa.table({"k": [number]})).rows == 1


def test_a_table_of_a_thousand_commits_is_opened_by_few_requests(
    table: Table, object_server: ObjectServer, cloud: BucketLake
) -> None:
    for number in range(1000):
        table.append(pa.table({"k": [number]}))
    command = [sys.executable, "-c", OPENS, json.dumps(cloud.named)]
    with object_server.proxy.counting() as requests:
        done = subprocess.run(
            command, env={**os.environ, **cloud.environment}, capture_output=True, text=True, check=True
        )
    data = json.loads(done.stdout)
    assert len(data) == 1000
    assert len(requests) <= {"parquet": 30, "delta": 30, "iceberg": 60}[cloud.fmt], requests
    assert [r for r in requests if r.path.rpartition("/")[2] in data] == []


@pytest.mark.parametrize("cloud", ["parquet"], indirect=True)
def test_a_large_file_whose_upload_fails_leaves_the_table_as_it_was(table: Table, object_server: ObjectServer) -> None:
    count = 4_000_000
    rows = pa.table({"k": np.random.default_rng(1).permutation(count)})

    def fails(request: Request, ask: Any) -> Answer | None:
        return Answer(500, b"<Error><Code>InternalError</Code></Error>") if "partNumber=2" in request.path else None

    proxy = object_server.proxy
    with proxy.faulty(fails), proxy.counting() as requests, pytest.raises(TrinityError) as caught:
        table.append(rows)
    assert caught.value.code == "FILESYSTEM_ERROR"
    assert any("partNumber=2" in request.path for request in requests)
    assert table.splits().version == 0
    assert table.append(rows).rows == count
    assert keys(object_server, table) == list(range(count))


def test_keys_that_expire_are_renewed_by_another_session(
    table: Table, object_server: ObjectServer, cloud: BucketLake
) -> None:
    rows = pa.table({"k": [1]})

    def expires(request: Request, ask: Any) -> Answer | None:
        is_old = "x-amz-security-token" in request.headers
        return Answer(403, b"<Error><Code>ExpiredToken</Code></Error>") if is_old else None

    with object_server.proxy.faulty(expires):
        for call in (lambda: cloud.connect(session_token="of-some-hour-ago"), lambda: table.append(rows)):
            with pytest.raises(TrinityError, match="expired") as caught:
                call()
            assert caught.value.code == "PERMISSION_DENIED"
        with cloud.connect():
            assert table.append(rows).rows == 1
