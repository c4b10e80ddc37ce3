"""The daemon that forks a local Spark's Python workers: pyspark's own, without two things that delay each task.

``spark.python.daemon.module`` names this module in the sessions that :func:`trinity.connect` starts. Tasks do the
same as with pyspark's daemon, but begin sooner, by some 0.3 s on two slow cores:

* Spark puts ``pyspark.zip``, ``py4j-….zip`` and its core JAR at the head of the workers' path, and each task calls
  ``importlib.invalidate_caches()``. Before Python 3.13 (gh-103200) that reads the directory of each archive again,
  once for each package that was looked for in it. The installed pyspark is the same one: the archives are left out.
* A worker collects garbage after each task. Modules that are imported here, before the first worker is forked, are
  frozen: they are imported once, and never scanned.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import PurePath
from socket import socket
from typing import Any, Final

_ARCHIVES: Final = re.compile(r"pyspark\.zip|py4j-.*-src\.zip|spark-core_.*\.jar")
_IMPORTED: Final = (
    *("pyspark.worker", "pyarrow.parquet"),
    *("trinity.engine.writing.spark.run_sinks", "trinity.engine.compacting.rewrite_task"),
)
"""Modules that the workers of Trinity's tasks import first."""


def _leave_out_archives() -> None:
    """Take Spark's archives off the module path, unless pyspark is found only in them."""
    before = list(sys.path)
    archives = tuple(entry for entry in before if _ARCHIVES.fullmatch(PurePath(entry).name))
    sys.path[:] = [entry for entry in before if entry not in archives]
    for searched in [path for path in sys.path_importer_cache if path.startswith(archives)]:
        del sys.path_importer_cache[searched]
    if not importlib.util.find_spec("pyspark") or not importlib.util.find_spec("py4j"):
        sys.path[:] = before


def _quiet(worker: Callable[[socket, bool], int]) -> Callable[[socket, bool], int]:
    """Return a worker that ends without a traceback when Spark has ended: its Unix socket is then a broken pipe."""

    def run(connection: socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except BrokenPipeError:
            return 1

    return run


def main() -> None:
    """Run pyspark's daemon until Spark closes its input."""
    _leave_out_archives()
    for module in _IMPORTED:
        importlib.import_module(module)
    daemon: Any = importlib.import_module("pyspark.daemon")
    daemon.worker = _quiet(daemon.worker)
    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
