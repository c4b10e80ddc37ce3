"""Tables that a cluster writes: executors are killed in every step, tasks fail, tasks run twice (L6); spark-submit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest

from tests.crash.on_cluster import COUNT
from tests.support.bucket_lake import BucketLake
from tests.support.cluster import Cluster, running_cluster
from tests.support.fault_proxy import Answer, Request
from tests.support.object_store import ObjectServer
from tests.support.paths import ROOT, TESTS

pytestmark = pytest.mark.full

PAGE = ROOT / "docs" / "clusters.md"
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
PROGRAM = TESTS / "crash" / "on_cluster.py"
KILLED = {"upsert", "merge", "read", "compact", "stream"}
"""Steps during which an executor is killed; the others have other faults."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster() as found:
        yield found


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a program that can import Trinity, on the executors, too."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def wanted() -> dict[int, tuple[int, str]]:
    """Return the rows that the steps leave, by key."""
    rows = {k: (1, f"v1 {k}") for k in range(3 * COUNT)}
    rows |= {k: (2, f"v2 {k}") for k in range(COUNT // 2)}
    rows = {k: (9, "merged") if k % 5 == 1 else row for k, row in rows.items() if k % 5}
    return rows | dict.fromkeys(range(3 * COUNT, 3 * COUNT + 100), (9, "new"))


def test_executors_are_killed_and_nothing_is_lost_or_doubled(
    cloud: BucketLake, cluster: Cluster, object_server: ObjectServer, tmp_path: Path
) -> None:
    step, requests, killed = tmp_path / "step", dict.fromkeys(KILLED, 0), set[str]()

    def kills(request: Request, ask: Any) -> Answer | None:
        """Kill an executor at the third request for a data file of each step."""
        now = step.read_text() if step.exists() else ""
        if now in KILLED and ".parquet" in request.path:
            requests[now] += 1
            if requests[now] >= 3 and now not in killed and cluster.kill_executor():
                killed.add(now)
        return None

    with object_server.proxy.faulty(kills):
        done = ran(sys.executable, str(PROGRAM), cluster.master, json.dumps(cloud.settings()), str(tmp_path))
    assert done.returncode == 0, done.stderr[-5000:]
    assert killed == KILLED
    rows = wanted()
    sums = [len(rows), len(rows), sum(rows)]
    assert json.loads(done.stdout) == {"read": sums, "copy": sums}
    with cloud.connect() as session:
        for name in ("t", "copy"):
            files = [f.path.removeprefix("s3://") for f in session.table(name).splits().files]
            read = [pq.read_table(f, filesystem=object_server.files, columns=["k", "ts", "v"]) for f in files]
            found = [row for file in read for row in file.to_pylist()]
            assert {row["k"]: (row["ts"], row["v"]) for row in found} == rows
            assert len(found) == len(rows)


JOB = """
import sys, trinity
session = trinity.connect(catalogs={"lake": {"connector": "delta", "warehouse": sys.argv[1]}})
table = session.create_table("t", [trinity.Column("k", "bigint")], primary_key=["k"])
table.upsert(session.spark.range(1000).withColumnRenamed("id", "k"))
print(session.spark.sparkContext.master, session.spark.conf.get("spark.sql.shuffle.partitions"), table.to_df().count())
"""


@pytest.mark.parametrize("with_packages", [True, False])
def test_the_command_of_the_page(cluster: Cluster, tmp_path: Path, with_packages: bool) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    [command] = re.findall(r"^spark-submit (?:.*\\\n)*.*$", PAGE.read_text(), flags=re.MULTILINE)
    command = command.replace("\\\n", " ").replace("spark://master:7077", cluster.master).replace("job.py", str(job))
    words = command.split()
    if not with_packages:
        at = words.index("--packages")
        words = [*words[:at], *words[at + 2 :]]
    done = ran(
        str(SUBMIT),
        "--conf",
        "spark.driver.host=127.0.0.1",
        "--conf",
        "spark.executor.memory=768m",
        *words[1:],
        str(tmp_path / "w"),
    )
    if with_packages:
        assert done.returncode == 0, done.stderr[-5000:]
        assert done.stdout.split() == [cluster.master, "200", "1000"]
    else:
        assert done.returncode != 0
        assert "CONFIGURATION_INVALID" in done.stdout  # where spark-submit puts a program's errors, too
        assert "lacks the JAR io.delta:delta-spark" in done.stdout
