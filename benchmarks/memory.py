"""``python -m benchmarks.memory``: what a driver of 2 GB holds, after each step and at most.

Every measurement has a process of its own: tables of ``rows`` rows and of a tenth of them, whose difference is what the
driver keeps of rows; and logs of many files and of a tenth of them, whose difference is what it keeps of files, by a
merged read and by Spark's own scan of the same files. In Spark's local mode the driver is the executor as well, so
that the peak is that of both. The heap is measured when the executor's threads have ended, which hold the last pages
that they sorted.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Final

import pyarrow as pa
import typer
from pyspark.sql import SparkSession

import trinity
from benchmarks.data import COLUMNS
from benchmarks.machine import facts
from benchmarks.result_files import RESULTS
from benchmarks.run import SETTINGS
from benchmarks.tables import Scene, scan
from benchmarks.timing import Rounds

_SETTINGS: Final = {**SETTINGS, "spark.driver.memory": "2g", "spark.executor.memory": "2g"}
_MIB: Final = 2**20
_IDLE_S: Final = 90
"""Spark's threads end after a minute without work, and the monitor of its Python workers checks every ten seconds."""


class _Driver:
    """The JVM of a Spark."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._system, lang = jvm.java.lang.System, jvm.java.lang
        self._heap = lang.management.ManagementFactory.getMemoryMXBean()
        self._folder = Path(f"/proc/{lang.ProcessHandle.current().pid()}")

    def heap(self) -> int:
        """Return bytes of the heap that are in use when no task has run for a while, after a collection."""
        time.sleep(_IDLE_S)
        for _ in range(3):  # what a cleaner frees goes with the next one
            self._system.gc()
        return int(self._heap.getHeapMemoryUsage().getUsed())

    def forget_peak(self) -> None:
        """Have the system count the peak anew."""
        (self._folder / "clear_refs").write_text("5")

    def peak(self) -> int:
        """Return the most bytes of the process since then."""
        lines = (self._folder / "status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    def measured(self, step: str, call: Callable[[], object]) -> dict[str, Any]:
        """Measure a step: its seconds, the heap after it, while its result is referenced, and its peak."""
        self.forget_peak()
        start = time.perf_counter()
        result = call()
        seconds, peak = time.perf_counter() - start, self.peak()
        heap = self.heap()
        del result
        return {"step": step, "seconds": round(seconds, 2), "heap": heap, "peak": peak}


def steps_of(catalog: str, rows: int, scratch: str | None) -> list[dict[str, Any]]:
    """Measure every step of a table of so many rows, in a Spark of its own."""
    with (
        tempfile.TemporaryDirectory(dir=scratch) as folder,
        trinity.connect(Path(folder) / "warehouse", spark_settings=_SETTINGS) as session,
    ):
        scene, driver = Scene(session, rows, Rounds(1), Path(folder)), _Driver(session.spark)
        found = [{"rows": rows, **step} for step in _steps(scene, catalog, driver)]
        session.spark.stop()
    return found


def _steps(scene: Scene, catalog: str, driver: _Driver) -> Iterator[dict[str, Any]]:
    base, changed, merged = scene.base(), scene.batch(scene.rows // 10, 1), scene.batch(scene.rows // 10, 2)
    table, session = scene.new_table(catalog), scene.session

    def read() -> object:
        rows = table.to_df()
        scan(rows)
        return rows

    def merge() -> object:
        merged.createOrReplaceTempView("changed")
        clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        return session.sql(f"MERGE INTO {table.name} t USING changed s ON t.id = s.id {clauses}")

    yield driver.measured("upsert of the base", lambda: table.upsert(base))
    yield driver.measured("its full compaction", lambda: table.compact(full=True))
    yield driver.measured("upsert of 10 %", lambda: table.upsert(changed))
    yield driver.measured("merged read", read)
    yield driver.measured("resolve", lambda: table.compact("resolve"))
    yield driver.measured("read after it", read)
    yield driver.measured("MERGE of 10 %", merge)
    yield driver.measured("merged read after it", read)
    yield driver.measured("full compaction", lambda: table.compact(full=True))
    yield driver.measured("read of the compacted table", read)


def files_of(catalog: str, files: int, scratch: str | None, plain: bool) -> dict[str, Any]:
    """Measure a merged read of a log of so many files, or Spark's scan of all their rows, in a Spark of its own."""
    with (
        tempfile.TemporaryDirectory(dir=scratch) as folder,
        trinity.connect(Path(folder) / "warehouse", spark_settings=_SETTINGS) as session,
    ):
        scene, driver = Scene(session, 10_000, Rounds(1), Path(folder)), _Driver(session.spark)
        table, rows = scene.base_table(catalog), scene.batch_arrow(1000, 1)
        assert rows.column_names == [column.name for column in COLUMNS]
        for number in range(files):
            table.upsert(_one(rows, number))

        def read() -> object:
            found = session.spark.read.parquet(*(f.path for f in table.splits().files)) if plain else table.to_df()
            scan(found)
            return found

        found = {"files": files, **driver.measured("plain scan" if plain else "merged read", read)}
        session.spark.stop()
    return found


def _one(rows: pa.Table, number: int) -> pa.Table:
    return rows.slice(number % rows.num_rows, 1)


def _in_new_process(call: Callable[..., Any], *values: object) -> Any:
    """Return the result of a call in a new process, whose JVM is new as well."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(call, *values).result()


def run(
    rows: Annotated[int, typer.Option(min=10_000, help="Rows of the larger table.")] = 40_000_000,
    files: Annotated[int, typer.Option(min=10, help="Files of the longer log.")] = 3000,
    parts: Annotated[str, typer.Option(help="Which measurements, by commas; others stay as they were.")] = "rows,files",
    catalog: Annotated[str, typer.Option(help="Which format.")] = "parquet",
    name: Annotated[str, typer.Option(help="Name of the result file.")] = "memory",
    results: Annotated[Path, typer.Option(help="Folder of the result file.")] = RESULTS,
    scratch: Annotated[Path | None, typer.Option(help="Folder for scratch files; needs some 15 GB.")] = None,
) -> None:
    """Measure the memory of the driver."""
    kept, place = results / f"{name}.json", str(scratch) if scratch else None
    found = json.loads(kept.read_text()) if kept.exists() else {}
    known = {**facts(), "catalog": catalog, "driver_memory": "2g", "runs": 1}
    if "rows" in parts.split(","):
        found["rows"] = {"run": {**known, "rows": rows}, "steps": _steps_by_rows(rows, catalog, place)}
    if "files" in parts.split(","):
        found["files"] = {"run": {**known, "rows": files}, "logs": _logs_by_files(files, catalog, place)}
    results.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found, indent=2) + "\n")


def _steps_by_rows(rows: int, catalog: str, place: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for count in (rows // 10, rows):
        steps = _in_new_process(steps_of, catalog, count, place)
        for step in steps:
            print(_line(f"{count:,} rows: {step['step']}", step), flush=True)
        found += steps
    return found


def _logs_by_files(files: int, catalog: str, place: str | None) -> list[dict[str, Any]]:
    found = list[dict[str, Any]]()
    for plain in (False, True):
        few, many = (_in_new_process(files_of, catalog, count, place, plain) for count in (files // 10, files))
        per_file = round((many["heap"] - few["heap"]) / (many["files"] - few["files"]))
        for log in (few, many):
            print(_line(f"{log['files']:,} files: {log['step']}", log), flush=True)
        print(f"a file: {per_file:,} bytes of the heap", flush=True)
        found.append({"step": many["step"], "few": few, "many": many, "bytes_per_file": per_file})
    return found


def _line(what: str, step: dict[str, Any]) -> str:
    heap, peak = step["heap"] / _MIB, step["peak"] / _MIB
    return f"{what:50} {step['seconds']:8.2f} s  heap {heap:7.1f} MiB  peak of the process {peak:7.1f} MiB"


def main() -> None:
    """Run the command."""
    typer.run(run)


if __name__ == "__main__":
    main()
