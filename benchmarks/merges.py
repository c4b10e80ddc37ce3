"""MERGE of 1 % and 10 % of the rows, compared with Delta's and Iceberg's own MERGE of the same kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame

from benchmarks.data import COLUMNS
from benchmarks.peers import COPY_ON_WRITE, NATIVES, Native
from benchmarks.results import Result, against_best
from benchmarks.tables import FormatsBench
from benchmarks.timing import timings_of
from trinity import Table

STAR: Final = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
OTHER: Final = """WHEN MATCHED AND s.del THEN DELETE
                  WHEN MATCHED THEN UPDATE SET c = t.c % 100 + s.c, ts = s.ts
                  WHEN NOT MATCHED THEN INSERT *"""
_numbers: Final = itertools.count()


@dataclass
class MergeBench(FormatsBench):
    """Every format of ours and every peer in the same rounds, each round with changes of its own."""

    _batches: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def cases(self) -> Iterator[Result]:
        """Measure plain tables, then keyed ones; each case begins with the tables of the previous one."""
        yield from self._of_kind(False, COPY_ON_WRITE, {"plain": (STAR, 1.2)})
        yield from self._of_kind(True, tuple(NATIVES), {"keyed, SET *": (STAR, 0.6), "keyed, other": (OTHER, 1.0)})

    def _of_kind(self, keyed: bool, peers: tuple[str, ...], kinds: Mapping[str, tuple[str, float]]) -> Iterator[Result]:
        tables = {name: self._ours(name, keyed) for name in self.formats}
        natives = {name: Native(self.scene, name) for name in peers}
        for share, part in (("1 %", 100), ("10 %", 10)):
            for kind, (clauses, factor) in kinds.items():
                rounds = range(self.scene.runs.at_most(3).count + 1)
                sources = [self.scene.batch(self.scene.rows // part, next(self._batches)) for _ in rounds]
                yield from self._case(f"MERGE {share}, {kind}", tables, natives, sources, clauses, factor)
                for native in natives.values() if keyed else ():
                    native.optimize()
        self.drop(tables, natives)

    def _case(
        self,
        case: str,
        tables: dict[str, Table],
        natives: dict[str, Native],
        sources: list[DataFrame],
        clauses: str,
        factor: float,
    ) -> Iterator[Result]:
        def merge(name: str) -> Callable[[int], object]:
            if name in tables:
                return lambda n: self._merge(tables[name], sources[n], clauses)
            return lambda n: natives[name].merge(sources[n], clauses)

        def after(name: str, _: int) -> None:
            if name in tables and tables[name].definition.primary_key:
                tables[name].compact(full=True)  # else the log of earlier rounds would be measured as well

        runs = self.scene.runs.at_most(3)
        times = timings_of(runs, {name: merge(name) for name in (*tables, *natives)}, after=after)
        found = {name: table.to_df().count() for name, table in (tables | natives).items()}
        assert len(set(found.values())) == 1, f"{case}: other rows: {found}"
        others = {name: times[name] for name in natives}
        for name in tables:
            yield against_best(case, name, times[name], others, factor, found[name])

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
