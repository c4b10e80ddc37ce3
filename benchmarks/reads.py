"""Reads of a table in several states, compared with a plain scan of the rows that they return."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from benchmarks.peers import MERGE_ON_READ, Native
from benchmarks.results import Result
from benchmarks.tables import CatalogBench, drain, fingerprint, scan
from benchmarks.timing import timings_of
from trinity import Table
from trinity.engine.reading.hidden_rows import forget
from trinity.errors import TrinityError

_KEYS: Final = 100


class ReadBench(CatalogBench):
    """Reads of one catalog's table; the version was not read before, unless the case says otherwise."""

    def cases(self) -> Iterator[Result]:
        """Measure a compacted table, then 1 % and 10 % in the log, a resolve of that, and a tenth in 100 commits."""
        table = self.scene.base_table(self.catalog)
        yield self._read("read, compacted", table, 1.05)
        yield self._look_up("100 keys, compacted", table)
        yield from self._with_log(table)
        table.compact(full=True)
        for piece in self._pieces(self.scene.commits(100)):
            table.upsert(piece)
        yield self._read("read, 10 % in 100 commits", table, 2.2, first=True)
        table.compact(full=True)
        table.upsert(self.scene.batch(self.rows // 10, 4))
        yield self._after_one_more(table)

    def large(self) -> Iterator[Result]:
        """Measure the same reads of a larger table, whose budgets are smaller."""
        yield from self._with_log(self.scene.base_table(self.catalog), large=True)

    def _with_log(self, table: Table, *, large: bool = False) -> Iterator[Result]:
        """Measure reads with 1 % in the log, with 10 %, and after a resolve of that."""
        few, many, resolved = (1.3, 1.7, 1.3) if large else (1.4, 1.9, 1.4)
        prefix = "tenfold rows: " if large else ""
        table.upsert(self.scene.batch(self.rows // 100, 1))
        yield self._read(f"{prefix}read, 1 % in the log", table, few, first=True)
        table.compact(full=True)
        changed = self.scene.batch(self.rows // 10, 2)
        table.upsert(changed)
        yield self._read(f"{prefix}read, 10 % in the log", table, many, first=True)
        if not large:
            yield self._read("second read, 10 % in the log", table, 1.5)
            yield self._look_up("100 keys, 10 % in the log", table)
        if self._resolves(table):
            yield self._read(f"{prefix}read after resolve of 10 %", table, resolved)
            if self.catalog in MERGE_ON_READ and not large:
                yield self._own_reader(table, [self.scene.batch(self.rows // 100, 1), changed])

    def _read(self, case: str, table: Table, factor: float, *, first: bool = False) -> Result:
        """Measure a read of the whole table; with ``first``, the first read of its version."""
        return self._compared_with_scan(case, table, factor, lambda: scan(table.to_df()), forget if first else None)

    def _look_up(self, case: str, table: Table) -> Result:
        """Measure a read of a hundred keys spread over the base, compared with a scan of all rows."""
        keys = f"id IN ({', '.join(str(2 * (n * self.rows // _KEYS)) for n in range(_KEYS))})"
        found, wanted = fingerprint(table.to_df(where=keys)), fingerprint(table.to_df().where(keys))
        assert found == wanted, f"{case}: {found}, by a filter {wanted}"
        return self._compared_with_scan(case, table, 0.2, lambda: scan(table.to_df(where=keys)), forget)

    def _after_one_more(self, table: Table) -> Result:
        """Measure a read after a commit of a thousandth of the rows, where the version before it was read."""
        numbers = itertools.count(5)

        def commit() -> None:
            table.upsert(self.scene.batch_arrow(self.rows // 1000, next(numbers)))

        case = "first read after one more commit, 10 % in the log"
        return self._compared_with_scan(case, table, 1.5, lambda: scan(table.to_df()), commit)

    def _own_reader(self, table: Table, changed: list[DataFrame]) -> Result:
        """Measure the format's own reader of our table, compared with its own table after its own MERGE."""
        peer, own = Native(self.scene, MERGE_ON_READ[self.catalog]), self._own_rows(table)
        peer.merge(changed[0])
        peer.optimize()
        peer.merge(changed[1])
        found, wanted = fingerprint(own()), fingerprint(peer.to_df())
        assert found == wanted == fingerprint(table.to_df()), f"own reader: {found}, in its own table {wanted}"
        with self._plain(table) as plain:
            times = timings_of(
                self.runs,
                {
                    "ours": lambda _: drain(own()),
                    "a table of its own": lambda _: drain(peer.to_df()),
                    "raw scan": lambda _: drain(plain()),
                },
            )
        peer.drop()
        ours, case = times.pop("ours"), "own reader after resolve of 10 %"
        return Result(case, self.catalog, ours, times["a table of its own"], 1.0, peers=times, found=found[0])

    def _own_rows(self, table: Table) -> Callable[[], DataFrame]:
        """Return the table by the reader of its format in Spark."""
        spark = self.session.spark
        if self.catalog == "delta":
            return lambda: spark.read.format("delta").load(table.location)
        other = spark.newSession()
        settings: dict[str, str] = self.session.catalogs["iceberg"].spark_catalog_settings("iceberg")  # type: ignore[attr-defined]
        for name, value in settings.items():
            other.conf.set(name, value)
        return lambda: other.table(f"iceberg.default.{table.name.table}")

    # -- the reference ----------------------------------------------------------------------------------

    def _compared_with_scan(
        self,
        case: str,
        table: Table,
        factor: float,
        ours: Callable[[], object],
        before: Callable[[], object] | None = None,
    ) -> Result:
        """Measure a read, compared with a plain scan of all rows; ``before`` runs first, not timed."""

        def prepare(name: str, _: int) -> None:
            if before and name == "ours":
                before()

        with self._plain(table) as plain:
            found = plain().count()
            assert table.to_df().count() == found, f"{case}: {found} rows in the reference"
            works = {"ours": lambda _: ours(), "raw scan": lambda _: scan(plain())}
            times = timings_of(self.runs, works, before=prepare)
        return Result(case, self.catalog, times["ours"], times["raw scan"], factor, found=found)

    @contextmanager
    def _plain(self, table: Table) -> Iterator[Callable[[], DataFrame]]:
        """Write the merged rows into files of their own, and yield what scans them."""
        target = self._path(f"merged_{self.catalog}")
        table.to_df().write.mode("overwrite").parquet(target)
        yield lambda: self.session.spark.read.parquet(target)
        shutil.rmtree(target, ignore_errors=True)

    def _path(self, name: str) -> str:
        """Return the place of a reference's files, in the store that the tables are in."""
        return str(self.folder / name)

    # -- the table's state ------------------------------------------------------------------------------

    def _resolves(self, table: Table) -> bool:
        """Resolve the table's log; return False where the format cannot."""
        try:
            return not table.compact("resolve").skipped
        except TrinityError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            return False

    def _pieces(self, count: int) -> list[pa.Table]:
        rows = self.scene.batch_arrow(self.rows // 10, 3)
        edges = [rows.num_rows * i // count for i in range(count + 1)]
        return [rows.slice(a, b - a) for a, b in itertools.pairwise(edges)]
