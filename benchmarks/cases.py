"""What is measured: appends, and reads of a table in several states."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from benchmarks.catalog import CatalogBench, scan
from benchmarks.data import COLUMNS, base_rows, changes
from benchmarks.timing import Result, in_turns
from trinity.engine.reading.passed_rows import forget
from trinity.errors import TrinityError
from trinity.table import Table

__all__ = ["Bench"]

_OPTIONS = {"watermark-key": "ts", "tombstone-key": "del"}


@dataclass
class Bench(CatalogBench):
    """Appends to a table, and reads of it.

    Attributes:
        folder: scratch for the reference's files and the prepared data.
    """

    folder: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def cases(self) -> Iterator[Result]:
        """Every case in turn."""
        yield from self.append_spark()
        yield from self.append_arrow()
        yield from self.reads()

    # -- appends ----------------------------------------------------------------------------------------

    def append_spark(self) -> Iterator[Result]:
        """A tenth of the rows as a DataFrame, beside ``df.write.parquet`` of it; time and bytes."""
        rows = self._prepared("changed_10", changes(self.session.spark, self.rows, self.rows // 10, 200, 2))
        table = self._new_table()
        sizes: list[int] = []
        target = self.folder / "reference"
        ours, reference = in_turns(
            self.runs,
            lambda: sizes.append(table.upsert(rows).bytes),
            lambda: rows.write.mode("overwrite").parquet(str(target)),
        )
        yield Result("append, Spark DataFrame", self.catalog, ours, reference, 1.5)
        plain = sum(f.stat().st_size for f in target.glob("*.parquet"))
        yield Result("append, bytes", self.catalog, median(sizes) / 1e6, plain / 1e6, 1.1, unit="MB")

    def append_arrow(self) -> Iterator[Result]:
        """The same rows as an Arrow table, beside ``pq.write_table``; the commit is that of one row."""
        if self.catalog == "delta":  # its commit needs the JVM: no budget
            return
        rows = self._arrow("changed_10")
        table = self._new_table()
        target = str(self.folder / "reference.parquet")
        one = rows.slice(0, 1)
        commit, _ = in_turns(self.runs, lambda: table.upsert(one), lambda: pq.write_table(one, target))
        ours, reference = in_turns(self.runs, lambda: table.upsert(rows), lambda: pq.write_table(rows, target))
        yield Result("append, Arrow table", self.catalog, ours, reference, 2.0, commit)

    # -- reads ------------------------------------------------------------------------------------------

    def reads(self) -> Iterator[Result]:
        """A compacted table, with 1 % and 10 % in the log, after a resolve of that, and with a tenth in 100 commits."""
        spark = self.session.spark
        table = self._new_table()
        table.upsert(self._prepared("base", base_rows(spark, self.rows)))
        table.compact(full=True)
        yield self._read("read, compacted", table, 1.05, 0.15)
        table.upsert(self._prepared("changed_1", changes(spark, self.rows, self.rows // 100, 100, 1)))
        yield self._read("read, 1 % in the log", table, 2.2, first=True)
        table.compact(full=True)
        table.upsert(self._prepared("changed_10", changes(spark, self.rows, self.rows // 10, 200, 2)))
        yield self._read("read, 10 % in the log", table, 3.0, first=True)
        yield self._read("second read, 10 % in the log", table, 1.5)
        if self._resolves(table):
            yield self._read("read after resolve of 10 %", table, 1.4)
        table.compact(full=True)
        for piece in self._pieces(100):
            table.upsert(piece)
        yield self._read("read, 10 % in 100 commits", table, 3.5, first=True)

    def _read(self, case: str, table: Table, factor: float, allowance: float = 0.0, *, first: bool = False) -> Result:
        """The whole merged table, beside a plain scan of the rows that it returns.

        Under ``first`` nothing is known of the version from a read before.
        """
        target = self._beside(f"merged_{self.catalog}")
        table.to_df().write.mode("overwrite").parquet(target)
        spark = self.session.spark
        same = table.to_df().count(), spark.read.parquet(target).count()
        assert same[0] == same[1], f"{case}: {same[0]} rows merged, {same[1]} in the reference"

        def ours_once() -> None:
            if first:
                forget()
            scan(table.to_df())

        ours, reference = in_turns(self.runs, ours_once, lambda: scan(spark.read.parquet(target)))
        shutil.rmtree(target, ignore_errors=True)
        return Result(case, self.catalog, ours, reference, factor, allowance)

    def _beside(self, name: str) -> str:
        """The place of a reference's files, in the store that the tables are in."""
        return str(self.folder / name)

    def _resolves(self, table: Table) -> bool:
        """Resolves the table's log; False where the format cannot."""
        try:
            return not table.compact("resolve").skipped
        except TrinityError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            return False

    def _pieces(self, count: int) -> list[pa.Table]:
        rows = self._arrow("changed_10")
        edges = [rows.num_rows * i // count for i in range(count + 1)]
        # later than everything in the base, whose newest rows are these same ones
        later = rows["ts"].cast(pa.int64()).to_numpy() + 86_400_000_000
        moved = rows.set_column(1, "ts", pa.array(later).cast(rows.schema.field("ts").type))
        return [moved.slice(a, b - a) for a, b in itertools.pairwise(edges)]

    # -- data -------------------------------------------------------------------------------------------

    def _new_table(self) -> Table:
        name = f"{self.catalog}.default.bench_{next(self._numbers)}"
        return self.session.create_table(name, COLUMNS, primary_key=["id"], properties=_OPTIONS)

    def _prepared(self, name: str, rows: DataFrame) -> DataFrame:
        """The rows from a file, so that making them is not measured."""
        target = self.folder / name
        if not (target / "_SUCCESS").exists():
            rows.write.mode("overwrite").parquet(str(target))
        return self.session.spark.read.parquet(str(target))

    def _arrow(self, name: str) -> pa.Table:
        table = pq.read_table(self.folder / name)
        # Spark's INT96 reads as nanoseconds
        at = table.schema.get_field_index("ts")
        return table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", tz="UTC"))).combine_chunks()
