"""A Spark cluster for tests: a standalone master and its workers, each a process, from pyspark's JARs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from tests.support.object_store import free_ports, wait_for

_HOME: Final = Path(pyspark.__file__).parent
_DEPLOY: Final = "org.apache.spark.deploy"
_EXECUTOR: Final = b"CoarseGrainedExecutorBackend"
_PATIENCE_S: Final = 120
"""Seconds within which workers must register."""


@dataclass(frozen=True)
class Cluster:
    """A Spark cluster.

    Attributes:
        master: the address of its master, ``spark://…``.
        workers: the processes that start executors.
    """

    master: str
    workers: tuple[subprocess.Popen[bytes], ...]

    def kill_executor(self) -> bool:
        """Kill the executor that has run longest; its worker starts another one. Return False where none runs."""
        for pid in self._executors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def _executors(self) -> list[int]:
        parents = {worker.pid for worker in self.workers}
        found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        return sorted(pid for pid in found if _parent(pid) in parents and _EXECUTOR in _command(pid))


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _parent(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start a master and two workers of one core each; stop them and their executors at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="trinity-cluster-"))
    port, page, *pages = free_ports(4)
    with contextlib.ExitStack() as running:
        running.callback(shutil.rmtree, folder, ignore_errors=True)
        at = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page))
        master = running.enter_context(_process(folder / "master", "127.0.0.1", f"{_DEPLOY}.master.Master", *at))
        wait_for(master, page, folder / "master" / "log")
        address = f"spark://127.0.0.1:{port}"
        started = []
        for number, own_page in enumerate(pages):
            own = folder / f"worker-{number}"
            host = f"127.0.0.{number + 1}"  # a second attempt at a task runs on another host
            size = ("--cores", "1", "--memory", "1g", "--host", host, "--webui-port", str(own_page))
            words = (*size, "--work-dir", str(own), address)
            started.append(running.enter_context(_process(own, host, f"{_DEPLOY}.worker.Worker", *words)))
        until = time.monotonic() + _PATIENCE_S
        while _alive(page) < len(pages):
            log = (folder / "worker-0" / "log").read_text()
            assert time.monotonic() < until, log[-2000:]
            assert all(worker.poll() is None for worker in started), log[-2000:]
            time.sleep(0.1)
        yield Cluster(address, tuple(started))


def _alive(page: int) -> int:
    """Return the number of workers that the master knows; 0 as long as its page is incomplete."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=60) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (urllib.error.URLError, ValueError):
        return 0


@contextlib.contextmanager
def _process(folder: Path, host: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of Spark in a process group of its own, so that its children end with it."""
    folder.mkdir()
    environment = {"SPARK_HOME": str(_HOME), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": host}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(_HOME / "bin" / "spark-class"), *words],
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()  # a worker ends its executors
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
