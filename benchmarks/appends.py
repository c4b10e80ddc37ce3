"""Appends to a table, compared with the plain writers of the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq

from benchmarks.data import changes
from benchmarks.results import Result
from benchmarks.tables import CatalogBench, arrow_rows
from benchmarks.timing import Timings, in_turns


class AppendBench(CatalogBench):
    """A tenth of the rows into one catalog's table."""

    def cases(self) -> Iterator[Result]:
        """Measure an append of a DataFrame, and of an Arrow table."""
        yield from self.append_spark()
        yield from self.append_arrow()

    def append_spark(self) -> Iterator[Result]:
        """Measure an append of a DataFrame, compared with ``df.write.parquet``: time and bytes."""
        changed = changes(self.session.spark, self.rows, self.rows // 10, 200, 2)
        rows, table = self.scene.prepared("changed_10", changed), self.scene.new_table(self.catalog)
        sizes: list[int] = []
        target = self.folder / "reference"
        ours, reference = in_turns(
            self.runs,
            lambda: sizes.append(table.upsert(rows).bytes),
            lambda: rows.write.mode("overwrite").parquet(str(target)),
        )
        yield Result("append, Spark DataFrame", self.catalog, ours, reference, 1.5)
        plain = Timings.of([sum(f.stat().st_size for f in target.glob("*.parquet")) / 1e6])
        yield Result("append, bytes", self.catalog, Timings.of(sizes).per(1e6), plain, 1.1, unit="MB")

    def append_arrow(self) -> Iterator[Result]:
        """Measure an append of the same rows as an Arrow table, compared with ``pq.write_table``; then of one row."""
        if self.catalog == "delta":  # its commit needs the JVM: no budget
            return
        rows, table = arrow_rows(self.folder / "changed_10"), self.scene.new_table(self.catalog)
        target, one = str(self.folder / "reference.parquet"), rows.slice(0, 1)
        commit, _ = in_turns(self.runs, lambda: table.upsert(one), lambda: pq.write_table(one, target))
        ours, reference = in_turns(self.runs, lambda: table.upsert(rows), lambda: pq.write_table(rows, target))
        yield Result("append, Arrow table", self.catalog, ours, reference, 2.0, commit.median)
