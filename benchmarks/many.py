"""Many small commits: ``python -m benchmarks.many``, which writes ``benchmarks/results/many.json``.

One row a commit from Arrow, each with an application's number: what the last commit costs beside the tenth, what a new
session takes to open the table, the bytes of metadata, and how often rows are written. With ``--every`` the writer's
own minor compaction folds the log, for which Spark is started; the commits wait for it, and do not count it.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

import pyarrow as pa
import typer

import trinity
from trinity import Column, Session, Table
from trinity.engine.compacting.triggered import THREAD
from trinity.storage import ObjectStore

__all__ = ["main"]

_RESULTS: Final = Path(__file__).parent / "results" / "many.json"
_SETTINGS: Final = {"spark.master": "local[2]", "spark.driver.memory": "2g", "spark.ui.enabled": "false"}
_FORGET: Final = {"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "20"}
_TENTH: Final = slice(4, 15)
_LAST: Final = slice(-21, None)


@dataclass
class Many:
    """Figures of one table.

    Attributes:
        format, commits, every: of the table; 0 where nothing folds its log.
        tenth_ms, last_ms: of a commit, the median of those around it.
        open_tenth_ms, open_last_ms: until a new session has listed the table's files.
        reads: objects of metadata that this reads at the end.
        files: that the table has then.
        metadata_bytes: written with all commits.
        amplification: rows written by rows appended.
        byte_amplification: bytes of data files by those of the appended ones.
    """

    format: str
    commits: int
    every: int
    tenth_ms: float = 0.0
    last_ms: float = 0.0
    open_tenth_ms: float = 0.0
    open_last_ms: float = 0.0
    reads: int = 0
    files: int = 0
    metadata_bytes: int = 0
    amplification: float = 1.0
    byte_amplification: float = 1.0


@dataclass
class _Meter:
    """Counts what is read and written of metadata, on a disk, by the seam's streams and calls."""

    reads: int = 0
    written: int = 0
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> _Meter:
        from pyiceberg.io.pyarrow import PyArrowFile

        from trinity.storage import local_sync

        self._wrap(ObjectStore, "get", lambda _: self._count(1, 0))
        self._wrap(PyArrowFile, "open", lambda _: self._count(1, 0))
        for name in ("put_if_absent", "put"):
            self._wrap(ObjectStore, name, lambda given: self._count(0, len(given[2])))
        self._wrap(local_sync.SyncedWriter, "write", lambda given: self._count(0, len(given[1])))
        return self

    def __exit__(self, *_: object) -> None:
        for undo in self._undo:
            undo()

    def _count(self, reads: int, written: int) -> None:
        self.reads, self.written = self.reads + reads, self.written + written

    def _wrap(self, owner: Any, name: str, count: Callable[[tuple[Any, ...]], None]) -> None:
        own = getattr(owner, name)

        def counted(*given: Any, **options: Any) -> Any:
            count(given)
            return own(*given, **options)

        setattr(owner, name, counted)
        self._undo.append(lambda: setattr(owner, name, own))


def run(
    formats: Annotated[str, typer.Option(help="Formats, by commas.")] = "parquet,iceberg",
    commits: Annotated[int, typer.Option(min=40, help="Commits of one row.")] = 1_000,
    every: Annotated[int, typer.Option(min=0, help="compaction.trigger.commits; 0: none, and no Spark.")] = 0,
    forget: Annotated[bool, typer.Option(help="Iceberg tables forget old versions by themselves.")] = True,
) -> None:
    """Measure many small commits."""
    for name in formats.split(","):
        with tempfile.TemporaryDirectory() as folder, _Meter() as meter:
            found = _measured(Path(folder) / "warehouse", Many(name, commits, every), meter, forget)
        print(json.dumps(asdict(found)), flush=True)
        _record(found)


def _measured(warehouse: Path, found: Many, meter: _Meter, forget: bool) -> Many:
    times, appended = [], 0
    properties = dict(_FORGET) if forget and found.format == "iceberg" else {}
    if found.every:
        properties["compaction.trigger.commits"] = str(found.every)
    with trinity.connect(warehouse, spark_settings=_SETTINGS) as session:
        table = session.create_table(
            f"{found.format}.default.t",
            [Column("id", "bigint"), Column("v", "string")],
            primary_key=["id"],
            properties=properties,
        )
        for number in range(found.commits):
            rows = pa.table({"id": [number], "v": [f"row {number}"]})
            started = time.perf_counter()
            done = table.upsert(rows, txn=("many", number))
            times.append(time.perf_counter() - started)
            appended += done.bytes
            _rested()
            if number == 9:
                found.open_tenth_ms = _opening(warehouse, found, meter)
        found.tenth_ms, found.last_ms = (round(median(times[part]) * 1000, 1) for part in (_TENTH, _LAST))
        found.metadata_bytes = meter.written
        found.open_last_ms = _opening(warehouse, found, meter)
        _amplification(table, found, appended)
        if found.every:
            _check(session, table, found.commits)
    return found


def _opening(warehouse: Path, found: Many, meter: _Meter) -> float:
    """The median of three new sessions, milliseconds."""
    taken = []
    for _ in range(3):
        meter.reads = 0
        with trinity.connect(warehouse) as session:
            started = time.perf_counter()
            found.files = len(session.table(f"{found.format}.default.t").splits().files)
            taken.append((time.perf_counter() - started) * 1000)
        found.reads = meter.reads
    return round(median(taken), 1)


def _rested() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith(THREAD):
            thread.join()


def _amplification(table: Table, found: Many, appended: int) -> None:
    """Rows and bytes of all files that there have been; nothing has been vacuumed."""
    import pyarrow.parquet as pq

    files = [path for path in Path(table.location).rglob("*.parquet") if "_trinity" not in path.parts]
    rows = sum(pq.read_metadata(path).num_rows for path in files)
    found.amplification = round(rows / found.commits, 2)
    found.byte_amplification = round(sum(path.stat().st_size for path in files) / appended, 2)


def _check(session: Session, table: Table, commits: int) -> None:
    started = time.perf_counter()
    found = sorted(row.id for row in table.to_df(where="id < 10").collect())
    assert found == list(range(10)), found
    print(f"{table.name}: ten keys read in {time.perf_counter() - started:.2f} s", flush=True)
    assert table.to_df().count() == commits
    session.spark.stop()


def _record(found: Many) -> None:
    known = json.loads(_RESULTS.read_text()) if _RESULTS.exists() else []
    same = (found.format, found.commits, found.every)
    kept = [one for one in known if (one["format"], one["commits"], one["every"]) != same]
    _RESULTS.write_text(json.dumps([*kept, asdict(found)], indent=1) + "\n")


def main() -> None:
    """The command."""
    typer.run(run)


if __name__ == "__main__":
    main()
