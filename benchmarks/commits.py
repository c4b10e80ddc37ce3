"""Small commits, compared with the format's own writer in Spark; many rows by the database API or as Arrow data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameWriter

from benchmarks.results import Result
from benchmarks.tables import CatalogBench
from benchmarks.timing import in_turns
from trinity import Column, Table, dbapi

_NATIVE: Final = "native.default.commits"
_ROWS: Final = 10_000
_COMMITS: Final = 12
"""Commits a round: more than Delta's own writer makes between two checkpoints."""


@dataclass
class CommitBench(CatalogBench):
    """One row a commit, each with an application's number, so that a retry is none."""

    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def cases(self) -> Iterator[Result]:
        """Measure ``table.upsert(arrow, txn=...)`` compared with an append of the same row."""
        table, unsynced = self._table("commits"), self._table("unsynced_commits", {"write.sync": "false"})
        row = pa.table({"id": [1], "v": [1]})
        plain = self.session.spark.createDataFrame(row)
        if self.catalog == "iceberg":
            self.session.spark.sql(f"CREATE TABLE {_NATIVE} (id BIGINT, v BIGINT) USING iceberg")

        commits = self.scene.commits(_COMMITS)

        def upserts(table: Table) -> None:
            for _ in range(commits):
                table.upsert(row, txn=("bench", next(self._numbers)))

        def appends() -> None:
            for _ in range(commits):
                self._append(plain)

        ours, reference = in_turns(self.runs, lambda: upserts(table), appends)
        yield Result("commit of one row", self.catalog, ours.per(commits), reference.per(commits), 1.0)
        synced, unforced = in_turns(self.runs, lambda: upserts(table), lambda: upserts(unsynced))
        yield Result("commit, synced", self.catalog, synced.per(commits), unforced.per(commits), 1.5, 0.01)
        yield self._many()

    def _table(self, name: str, properties: Mapping[str, str] | None = None) -> Table:
        columns = [Column("id", "bigint"), Column("v", "bigint")]
        return self.session.create_table(
            f"{self.catalog}.default.{name}", columns, primary_key=["id"], properties=properties
        )

    def _many(self) -> Result:
        """Measure ``executemany()`` of an INSERT, compared with ``table.upsert(arrow)`` of the same rows."""
        columns = [Column("id", "bigint"), Column("name", "string"), Column("price", "decimal(8,2)")]
        table = self.session.create_table(f"{self.catalog}.default.many", columns, primary_key=["id"])
        rows = [(i, f"name {i}", Decimal(i) / 4) for i in range(_ROWS)]
        types = [pa.int64(), pa.string(), pa.decimal128(8, 2)]

        def upsert() -> None:
            arrays = [pa.array(v, t) for v, t in zip(zip(*rows, strict=True), types, strict=True)]
            table.upsert(pa.Table.from_arrays(arrays, names=[c.name for c in columns]))

        with dbapi.connect(warehouse=self.folder / "warehouse") as connection:
            insert = f"INSERT INTO {table.name} VALUES (?, ?, ?)"
            ours, reference = in_turns(self.runs, lambda: connection.cursor().executemany(insert, rows), upsert)
        return Result("executemany, 10,000 rows", self.catalog, ours, reference, 2.0)

    def _append(self, rows: DataFrame) -> None:
        if self.catalog == "iceberg":
            rows.writeTo(_NATIVE).append()
            return
        writer: DataFrameWriter = rows.write.mode("append").format(self.catalog)
        if self.catalog == "delta":
            writer = writer.option("txnAppId", "bench").option("txnVersion", next(self._numbers))
        writer.save(str(self.folder / f"commits_{self.catalog}"))
