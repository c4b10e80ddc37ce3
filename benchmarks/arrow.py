"""Commits from Arrow in one process, each read as Arrow, compared with delta-rs and PyIceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks.results import Result
from benchmarks.tables import FormatsBench, arrow_rows
from benchmarks.timing import Timings, timed, totals_of
from trinity import Table

_COMMITS: Final = 20
_FEW: Final = 10_000
"""Number of changes in PyIceberg's case: its upsert turns ten thousand keys into a filter, and compares row by row."""


class ArrowBench(FormatsBench):
    """Half a per cent of the rows a commit; all tables take turns, commit by commit. One pass counts."""

    def cases(self) -> Iterator[Result]:
        """Measure twenty commits compared with delta-rs; then one of few rows, compared with PyIceberg."""
        tables = {catalog: self.scene.base_table(catalog) for catalog in self.formats}
        self.scene.base()
        base = arrow_rows(self.scene.folder / "base")
        plain = self.scene.folder / "delta_rs"
        write_deltalake(str(plain), base)
        steps: dict[str, Callable[[pa.Table], float]] = {
            **{name: partial(self._ours, table) for name, table in tables.items()},
            "delta-rs": partial(self._delta_rs, plain),
        }
        count = max(1, self.scene.rows // 200)
        taken = totals_of(self.scene.commits(_COMMITS), lambda number: self.scene.batch_arrow(count, 1 + number), steps)
        wanted = DeltaTable(str(plain)).to_pyarrow_table().num_rows
        for name, table in tables.items():
            found = _read(table).num_rows
            assert found == wanted, f"{name}: {found} rows, {wanted} in delta-rs"
            peers = {"delta-rs": taken["delta-rs"]}
            yield Result(
                "20 commits from Arrow, each read",
                name,
                taken[name],
                taken["delta-rs"],
                1.0,
                peers=peers,
                found=found,
            )
        self.drop(tables)
        yield from self._compared_with_pyiceberg(base)

    def _ours(self, table: Table, batch: pa.Table) -> float:
        return timed(lambda: table.upsert(batch)) + timed(lambda: _read(table))

    def _delta_rs(self, place: Path, batch: pa.Table) -> float:
        def commit() -> None:
            merge = DeltaTable(str(place)).merge(batch, "t.id = s.id", source_alias="s", target_alias="t")
            merge = merge.when_matched_delete("s.del").when_matched_update_all()
            merge.when_not_matched_insert_all("NOT s.del").execute()

        return timed(commit) + timed(lambda: DeltaTable(str(place)).to_pyarrow_table())

    def _compared_with_pyiceberg(self, base: pa.Table) -> Iterator[Result]:
        """Measure an upsert of few rows, none of them deleted, and a read: one round."""
        folder = self.scene.folder / "pyiceberg"
        folder.mkdir()
        catalog = SqlCatalog("peer", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        catalog.create_namespace("default")
        peer = catalog.create_table("default.bench", base.schema)
        peer.append(base)
        few = min(_FEW, self.scene.rows // 100)
        batch = self.scene.batch_arrow(few, 2 + _COMMITS)
        batch = batch.filter(pc.invert(batch["del"])).cast(base.schema)
        taken = timed(lambda: peer.upsert(batch, join_cols=["id"])) + timed(lambda: peer.scan().to_arrow())
        wanted, peers = peer.scan().to_arrow().num_rows, {"PyIceberg": Timings.of([taken])}
        for name in self.formats:
            table = self.scene.base_table(name)
            ours, found = Timings.of([self._ours(table, batch)]), _read(table).num_rows
            assert found == wanted, f"{name}: {found} rows, {wanted} in PyIceberg"
            yield Result("10,000 rows from Arrow, read", name, ours, peers["PyIceberg"], 1.0, peers=peers, found=found)
            self.drop({name: table})
        catalog.close()


def _read(table: Table) -> pa.Table:
    """Return all merged rows as Arrow data."""
    return table.to_arrow()
