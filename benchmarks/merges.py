"""MERGE of 1 % and 10 % of the rows, beside Delta's and Iceberg's own MERGE of the same kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

from pyspark.sql import DataFrame

from benchmarks.data import COLUMNS, changes
from benchmarks.peers import COPY_ON_WRITE, NATIVES, Native
from benchmarks.results import Result, beside_best
from benchmarks.tables import FormatsBench
from benchmarks.timing import timings_of
from trinity.table import Table

__all__ = ["MergeBench"]

STAR: Final = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
OTHER: Final = """WHEN MATCHED AND s.del THEN DELETE
                  WHEN MATCHED THEN UPDATE SET c = t.c % 100 + s.c, ts = s.ts
                  WHEN NOT MATCHED THEN INSERT *"""
_numbers: Final = itertools.count()


class MergeBench(FormatsBench):
    """Every format of ours and every peer in the same rounds, each round with changes of its own."""

    def cases(self) -> Iterator[Result]:
        """Every case in turn."""
        runs = self.scene.runs.at_most(3)
        for share, count in (("1 %", self.scene.rows // 100), ("10 %", self.scene.rows // 10)):
            sources = [self._changes(count, salt) for salt in range(100, 101 + runs.count)]
            yield from self._case(f"MERGE {share}, plain", sources, STAR, False, COPY_ON_WRITE, 1.2)
            yield from self._case(f"MERGE {share}, keyed, SET *", sources, STAR, True, tuple(NATIVES), 0.6)
            yield from self._case(f"MERGE {share}, keyed, other", sources, OTHER, True, tuple(NATIVES), 1.0)

    def _case(
        self, case: str, sources: list[DataFrame], clauses: str, keyed: bool, peers: tuple[str, ...], factor: float
    ) -> Iterator[Result]:
        tables = {name: self._ours(name, keyed) for name in self.formats}
        natives = {name: Native(self.scene, name) for name in peers}

        def merge(name: str) -> Callable[[int], object]:
            if name in tables:
                return lambda n: self._merge(tables[name], sources[n], clauses)
            return lambda n: natives[name].merge(sources[n], clauses)

        def after(name: str, _: int) -> None:
            if keyed and name in tables:  # else the log of earlier rounds would be measured as well
                tables[name].compact(full=True)

        runs = self.scene.runs.at_most(3)
        times = timings_of(runs, {name: merge(name) for name in (*tables, *natives)}, after=after)
        found = {name: table.to_df().count() for name, table in (tables | natives).items()}
        assert len(set(found.values())) == 1, f"{case}: other rows: {found}"
        beside = {name: times[name] for name in natives}
        for name in tables:
            yield beside_best(case, name, times[name], beside, factor, found[name])
        self.drop(tables, natives)

    def _merge(self, table: Table, source: DataFrame, clauses: str) -> None:
        source.createOrReplaceTempView("changed")
        self.scene.session.sql(f"MERGE INTO {table.name} t USING changed s ON t.id = s.id {clauses}")

    def _ours(self, catalog: str, keyed: bool) -> Table:
        name, session = f"{catalog}.default.merged_{next(_numbers)}", self.scene.session
        if not keyed:
            table = session.create_table(name, COLUMNS)
            table.append(self.scene.base())
            return table
        table = session.create_table(name, COLUMNS, primary_key=["id"], properties={"watermark-key": "ts"})
        table.upsert(self.scene.base())
        table.compact(full=True)
        return table

    def _changes(self, count: int, salt: int) -> DataFrame:
        rows = changes(self.scene.session.spark, self.scene.rows, count, salt, 2)
        return self.scene.prepared(f"merge_{count}_{salt}", rows.dropDuplicates(["id"]).coalesce(2))
