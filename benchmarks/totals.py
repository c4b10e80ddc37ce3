"""Commits, each followed by a full read: what both cost together, compared with Delta, Iceberg and Paimon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

from pyspark.sql import DataFrame

from benchmarks.paimon import Paimon, paimon_python
from benchmarks.peers import NATIVES, Native
from benchmarks.results import Result, against_best
from benchmarks.tables import FormatsBench, drain, fingerprint
from benchmarks.timing import timed, totals_of
from trinity import Table

_COMMITS: Final = 20


class TotalBench(FormatsBench):
    """Twenty commits of half a per cent; all tables take turns, commit by commit. One pass counts."""

    def cases(self) -> Iterator[Result]:
        """Measure the totals of each format, compared with the best of the peers'."""
        tables = {catalog: self.scene.base_table(catalog) for catalog in self.formats}
        natives = {peer: Native(self.scene, peer) for peer in NATIVES}
        steps: dict[str, Callable[[int], float]] = {
            **{name: partial(self._ours, table) for name, table in tables.items()},
            **{name: partial(self._native, table) for name, table in natives.items()},
        }
        with ExitStack() as stack:
            if python := paimon_python():
                paimon = stack.enter_context(Paimon(python, self.scene.folder))
                steps["Paimon 0.9"] = lambda number: paimon.commit(self._name(number))
                self._batch(0)
                paimon.create(self.scene.folder / "base")
            taken = totals_of(self.scene.commits(_COMMITS), self._prepared, steps)
            found = {name: fingerprint(table.to_df()) for name, table in (tables | natives).items()}
            assert len(set(found.values())) == 1, f"other rows: {found}"
            rows = next(iter(found.values()))[0]
            assert not python or paimon.count() == rows, f"Paimon has other rows than {rows}"
        peers = {name: times for name, times in taken.items() if name not in tables}
        for name in tables:
            yield against_best("20 commits, each read", name, taken[name], peers, 0.35, rows)
        self.drop(tables, natives)

    def _prepared(self, number: int) -> int:
        self._batch(number)
        return number

    def _ours(self, table: Table, number: int) -> float:
        batch = self._batch(number)
        return timed(lambda: table.upsert(batch)) + timed(lambda: drain(table.to_df()))

    def _native(self, table: Native, number: int) -> float:
        batch = self._batch(number)
        return timed(lambda: table.merge(batch)) + timed(lambda: drain(table.to_df()))

    def _name(self, number: int) -> str:
        return f"batch_{self._count}_{1 + number}"

    def _batch(self, number: int) -> DataFrame:
        return self.scene.batch(self._count, 1 + number)

    @property
    def _count(self) -> int:
        return max(1, self.scene.rows // 200)
