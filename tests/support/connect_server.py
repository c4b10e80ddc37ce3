"""A server of Spark Connect for tests, from pyspark's JARs, and programs that are its clients."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyspark

from tests.support.object_store import free_ports, wait_for
from tests.support.paths import ROOT

_SUBMIT: Final = Path(pyspark.__file__).parent / "bin" / "spark-submit"
_SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextlib.contextmanager
def running_connect_server(further: Mapping[str, str] = MappingProxyType({}), **environment: str) -> Iterator[str]:
    """Start a server whose workers can import Trinity, and yield its address, ``sc://…``.

    Args:
        further: Spark settings.
        environment: the server's environment variables, besides those of this process.
    """
    folder = Path(tempfile.mkdtemp(prefix="trinity-connect-"))
    [port] = free_ports(1)
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.connect.grpc.binding.port": str(port),
        **further,
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    log = folder / "log"
    with log.open("wb") as said:
        server = subprocess.Popen(
            [_SUBMIT, "--class", _SERVER, *words, "spark-internal"],
            env={**_environment(), **environment},
            cwd=folder,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        wait_for(server, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def client(address: str, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program as a client of the server: a process that runs Spark itself cannot be one."""
    given: Mapping[str, str] = {**_environment(), "SPARK_REMOTE": address, **environment}
    return subprocess.run([sys.executable, *words], env=given, cwd=ROOT, capture_output=True, text=True, check=False)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
