"""Many small commits: one row a commit from Arrow, each with an application's number, folded in levels meanwhile.

After a tenth of the commits, and after all: what a commit takes, and what a new session takes to open the table, both
in turns with a table that has ten commits; what a read of it opens, how often rows have been written, the bytes of
metadata. Commits wait for the writer's own compaction, and do not count it.

``python -m benchmarks.many`` runs it alone, and ``--every 0`` without compactions, whose figures are printed only.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import typer

import trinity
from benchmarks.machine import facts
from benchmarks.result_files import save_results
from benchmarks.results import Result
from benchmarks.tables import CatalogBench, Scene
from benchmarks.timing import Rounds, Timings, timed
from trinity import Column, Session
from trinity.engine.compacting.after_commit import THREAD
from trinity.storage import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMMITS: Final = 10_000
_KEPT: Final = ("1,000 commits", "10,000 commits")
_EVERY: Final = 20
"""The value of ``compaction.trigger.commits``."""
_FORGET: Final = {"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "20"}
"""Properties by which an Iceberg table expires old versions, which its metadata file would list."""
_FEW: Final = 4
"""Commits to the other table before it takes turns, so that the compared commits are around its tenth."""
_TURNS: Final = 12
_OPENINGS: Final = 7
_NOTED: Final = {"_trinity", "_delta_log"}
_numbers: Final = itertools.count()


@dataclass(frozen=True)
class Figures:
    """The figures of a table after a number of commits.

    Attributes:
        commits: their number.
        commit_ms: the time of a commit, as the median of the last ones.
        opening_ms: the time until a new session has listed the table's files.
        opened: objects of metadata read for that.
        files: data files that a read opens.
        metadata: bytes of metadata written so far.
        written: rows of all data files so far.
    """

    commits: int
    commit_ms: float
    opening_ms: float
    opened: int
    files: int
    metadata: int
    written: int


@dataclass
class _Meter:
    """A meter of the metadata that the process reads and writes through the storage seam."""

    reads: int = 0
    written: int = 0
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> _Meter:
        from pyiceberg.io.pyarrow import PyArrowFile

        from trinity.storage import local_objects

        self._wrap(ObjectStore, "get", lambda _: self._count(1, 0))
        self._wrap(PyArrowFile, "open", lambda _: self._count(1, 0))
        for name in ("put_if_absent", "put"):
            self._wrap(ObjectStore, name, lambda given: self._count(0, len(given[2])))
        self._wrap(local_objects.SyncedWriter, "write", lambda given: self._count(0, len(given[1])))
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


@dataclass
class ManyBench(CatalogBench):
    """The cases of one catalog.

    Attributes:
        commits: the number of commits, after which and after a tenth it measures; None for 10,000, or fewer where the
            other tables have few rows.
    """

    commits: int | None = None

    def cases(self) -> Iterator[Result]:
        """Measure a table after a tenth of the commits, and after all."""
        commits, named = self.commits or max(150, min(_COMMITS, self.rows // 100)), self.commits or _COMMITS
        before = None
        for few, many in figures(self.session, self.folder / "warehouse" / self.catalog, commits):
            yield from _results(self.catalog, named if before else named // 10, few, many, before)
            before = many


def figures(session: Session, folder: Path, commits: int, every: int = _EVERY) -> Iterator[tuple[Figures, Figures]]:
    """Yield the figures of a table of few commits and of one of many: after a tenth of its commits, and after all.

    Times are measured in turns.

    Args:
        session: the session that makes the tables.
        folder: the folder of the catalog, whose name is the format.
        commits: their number.
        every: commits that are folded at a time; 0 for no compaction.
    """
    with _Meter() as meter:
        many = _Written(session, folder, meter, every)
        for stop in (commits // 10, commits):
            few = _Written(session, folder, meter, every)
            for _ in range(_FEW):
                few.commit()
            while many.count < stop - _TURNS:
                many.commit()
            taken = [(few.commit(), many.commit()) for _ in range(_TURNS)]
            opened = [(few.open(), many.open()) for _ in range(_OPENINGS)]
            found = [
                written.figures(*(median(turn[at] for turn in turns) for turns in (taken, opened)))
                for at, written in enumerate((few, many))
            ]
            print("\n".join(json.dumps(asdict(each)) for each in found), flush=True)
            yield found[0], found[1]
        if every:
            many.check()


class _Written:
    """A table that is written, commit by commit.

    Args: as of :func:`figures`.
    """

    def __init__(self, session: Session, folder: Path, meter: _Meter, every: int) -> None:
        self._session, self._folder, self._meter = session, folder, meter
        catalog = folder.name
        properties = dict(_FORGET) if catalog == "iceberg" else {}
        if every:
            properties["compaction.trigger.commits"] = str(every)
        columns = [Column("id", "bigint"), Column("v", "string")]
        self.name = f"{catalog}.default.many_{next(_numbers)}"
        self._table = session.create_table(self.name, columns, primary_key=["id"], properties=properties)
        self.count = self._metadata = self._opened = 0

    def commit(self) -> float:
        """Commit a row, and return the seconds that it took; wait for a compaction that it has begun."""
        rows, before = pa.table({"id": [self.count], "v": [f"row {self.count}"]}), self._meter.written
        seconds = timed(lambda: self._table.upsert(rows, txn=("many", self.count)))
        for thread in threading.enumerate():
            if thread.name.startswith(THREAD):
                thread.join()
        self.count += 1
        self._metadata += self._meter.written - before
        return seconds

    def open(self) -> float:
        """Return the seconds after which a new session has listed the table's files."""
        before = self._meter.reads
        with trinity.connect(self._folder.parent, spark=self._spark) as other:
            seconds = timed(lambda: other.table(self.name).splits())
        self._opened = self._meter.reads - before
        return seconds

    def figures(self, commit: float, opening: float) -> Figures:
        """Return the facts about the table; a commit, and opening it, take these seconds."""
        files, place = self._table.splits().files, Path(self._table.location)
        data = [path for path in place.rglob("*.parquet") if not _NOTED & {*path.relative_to(place).parts}]
        return Figures(
            self.count,
            round(commit * 1000, 2),
            round(opening * 1000, 2),
            self._opened,
            len(files),
            self._metadata,
            sum(pq.read_metadata(path).num_rows for path in data),
        )

    def check(self) -> None:
        """Check that all rows are there."""
        found = sorted(row.id for row in self._table.to_df(where="id < 10").collect())
        assert found == list(range(10)), found
        assert self._table.to_df().count() == self.count

    @property
    def _spark(self) -> SparkSession | None:
        """The Spark that a new session needs."""
        return self._session.spark if self._folder.name == "delta" else None


def _results(catalog: str, named: int, few: Figures, many: Figures, before: Figures | None) -> Iterator[Result]:
    """Yield the cases after so many commits; their names say how many a whole run makes.

    Args:
        catalog: the format.
        named: how many are.
        few: the table of ten commits.
        many: that of many.
        before: the same after a tenth of the commits; None where they are that.
    """

    def result(case: str, ours: float, reference: float, factor: float, unit: str) -> Result:
        return Result(
            f"{named:,} commits: {case}",
            catalog,
            Timings.of([ours]),
            Timings.of([reference]),
            factor,
            unit=unit,
            found=many.commits,
        )

    yield result("the last, beside the tenth", many.commit_ms, few.commit_ms, 1.5, "ms")
    yield result("opening the table, beside a table of ten commits", many.opening_ms, few.opening_ms, 2.0, "ms")
    yield result("objects that a read opens, by commits", many.opened + many.files, many.commits, 0.1, "")
    yield result("rows written, by rows appended", many.written, many.commits, 4.0, "")
    if before is not None:
        each, first = (seen.metadata / seen.commits / 1000 for seen in (many, before))
        yield result(f"metadata of a commit, beside the first {named // 10:,}", each, first, 1.5, "kB")


def run(
    formats: Annotated[str, typer.Option(help="Formats, by commas.")] = "parquet,delta,iceberg",
    commits: Annotated[int, typer.Option(min=150, help="Commits of one row.")] = _COMMITS,
    every: Annotated[int, typer.Option(min=0, help="compaction.trigger.commits; 0: none, and nothing is kept.")] = 20,
) -> None:
    """Measure many small commits."""
    from benchmarks.run import FILES, SETTINGS

    known: Mapping[str, Any] = {**facts(), "rows": commits, "runs": 1}
    with (
        tempfile.TemporaryDirectory() as folder,
        trinity.connect(Path(folder) / "warehouse", spark_settings=SETTINGS) as session,
    ):
        for catalog in formats.split(","):
            print(catalog, flush=True)
            if every != _EVERY:
                list(figures(session, Path(folder, "warehouse", catalog), commits, every))
                continue
            scene = Scene(session, commits * 100, Rounds(1), Path(folder))
            for result in ManyBench(scene, catalog, commits).cases():
                print(f"{result.case:60} {result.ratio:8.3f}x  budget {result.budget}", flush=True)
                if result.case.startswith(_KEPT):
                    save_results([result], FILES["many"], known)
        if every or "delta" in formats:
            session.spark.stop()


def main() -> None:
    """Run the command."""
    typer.run(run)


if __name__ == "__main__":
    main()
