"""MERGE of 1 % and 10 % of the rows, beside Delta's and Iceberg's own MERGE of the same kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from benchmarks.data import COLUMNS, base_rows, changes
from benchmarks.timing import Result, rounds
from trinity import Session
from trinity.table import Table

__all__ = ["NATIVE_SETTINGS", "MergeBench"]

STAR: Final = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
OTHER: Final = """WHEN MATCHED AND s.del THEN DELETE
                  WHEN MATCHED THEN UPDATE SET c = t.c % 100 + s.c, ts = s.ts
                  WHEN NOT MATCHED THEN INSERT *"""

NATIVE_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.native": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.native.type": "hadoop",
}
"""What the peers need of Spark; ``spark.sql.catalog.native.warehouse`` is theirs, too."""

NATIVES: Final[Mapping[str, str]] = {
    "Delta": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "Delta, deletion vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "Iceberg": "TBLPROPERTIES ('format-version' = '2', 'write.merge.mode' = 'copy-on-write')",
    "Iceberg, merge on read": "TBLPROPERTIES ('format-version' = '2', 'write.merge.mode' = 'merge-on-read')",
}
COPY_ON_WRITE: Final = ("Delta", "Iceberg")


@dataclass
class MergeBench:
    """The cases: every format of ours and every peer in the same rounds, each round with changes of its own.

    Attributes:
        session: where the tables are.
        formats: our catalogs.
        rows: rows of the base.
        runs: rounds per case.
        folder: scratch for the peers' tables and the prepared data.
    """

    session: Session
    formats: tuple[str, ...]
    rows: int
    runs: int
    folder: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def cases(self) -> Iterator[Result]:
        """Every case in turn."""
        for share, count in (("1 %", self.rows // 100), ("10 %", self.rows // 10)):
            sources = [self._changes(count, salt) for salt in range(100, 101 + self.runs)]
            yield from self._case(f"MERGE {share}, plain", sources, STAR, False, COPY_ON_WRITE, 1.2)
            yield from self._case(f"MERGE {share}, keyed, SET *", sources, STAR, True, tuple(NATIVES), 0.6)
            yield from self._case(f"MERGE {share}, keyed, other", sources, OTHER, True, tuple(NATIVES), 1.0)

    def _case(
        self, case: str, sources: list[DataFrame], clauses: str, keyed: bool, peers: tuple[str, ...], factor: float
    ) -> Iterator[Result]:
        tables = {name: self._ours(name, keyed) for name in self.formats}
        natives = {name: self._native(name) for name in peers}

        def merge(name: str) -> Callable[[int], object]:
            if name in tables:
                return lambda n: self._merge(tables[name], sources[n], clauses)
            return lambda n: self._merge_native(natives[name], sources[n], clauses)

        def between(name: str) -> None:
            if keyed and name in tables:  # else the log of earlier rounds would be measured as well
                tables[name].compact(full=True)

        times = rounds(self.runs, {name: merge(name) for name in (*tables, *natives)}, between)
        best = min(times[name] for name in natives)
        for name in tables:
            yield Result(case, name, times[name], best, factor)
        for table in tables.values():
            self.session.drop_table(table.name)
        for native in natives.values():
            self.session.spark.sql(f"DROP TABLE IF EXISTS {native}")

    def _merge(self, table: Table, source: DataFrame, clauses: str) -> None:
        source.createOrReplaceTempView("changed")
        self.session.sql(f"MERGE INTO {table.name} t USING changed s ON t.id = s.id {clauses}")

    def _merge_native(self, table: str, source: DataFrame, clauses: str) -> None:
        source.createOrReplaceTempView("changed")
        self.session.spark.sql(f"MERGE INTO {table} t USING changed s ON t.id = s.id {clauses}").collect()

    def _ours(self, catalog: str, keyed: bool) -> Table:
        name = f"{catalog}.default.merged_{next(self._numbers)}"
        if not keyed:
            table = self.session.create_table(name, COLUMNS)
            table.append(self._base())
            return table
        options = {"watermark-key": "ts"}
        table = self.session.create_table(name, COLUMNS, primary_key=["id"], properties=options)
        table.upsert(self._base())
        table.compact(full=True)
        return table

    def _native(self, peer: str) -> str:
        number = next(self._numbers)
        delta = peer.startswith("Delta")
        table = f"delta.`{self.folder}/native_{number}`" if delta else f"native.default.native_{number}"
        columns = ", ".join(f"{c.name} {c.type}" for c in COLUMNS)
        kind = "delta" if delta else "iceberg"
        self.session.spark.sql(f"CREATE TABLE {table} ({columns}) USING {kind} {NATIVES[peer]}")
        self._base().createOrReplaceTempView("base")
        self.session.spark.sql(f"INSERT INTO {table} SELECT {', '.join(c.name for c in COLUMNS)} FROM base")
        return table

    def _base(self) -> DataFrame:
        return self._prepared("base", base_rows(self.session.spark, self.rows))

    def _changes(self, count: int, salt: int) -> DataFrame:
        rows = changes(self.session.spark, self.rows, count, salt, 2).dropDuplicates(["id"]).coalesce(2)
        return self._prepared(f"merge_{count}_{salt}", rows)

    def _prepared(self, name: str, rows: DataFrame) -> DataFrame:
        """The rows from a file, so that making them is not measured."""
        target = self.folder / name
        if not (target / "_SUCCESS").exists():
            rows.write.mode("overwrite").parquet(str(target))
        return self.session.spark.read.parquet(str(target))
