"""Further steps of the formats' own engines, Delta's and Iceberg's, in restored histories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.support.iceberg import pyiceberg
from trinity import Table


class Others(ABC):
    """Another engine that writes a table.

    Args:
        spark: the Spark session of the histories.
        table: the table, opened by Trinity.
    """

    def __init__(self, spark: SparkSession, table: Table) -> None:
        self.spark = spark
        self.table = table

    @abstractmethod
    def append(self, rows: pa.Table, way: int) -> None:
        """Append rows as one file, with or without statistics."""

    @abstractmethod
    def require(self, column: str, required: bool) -> None:
        """Forbid NULL in a column, or allow it again."""

    @abstractmethod
    def remake_metadata(self, way: int) -> None:
        """Change how the format keeps metadata and statistics from now on."""


class _Delta(Others):
    @property
    def _name(self) -> str:
        return f"delta.`{self.table.location}`"

    def append(self, rows: pa.Table, way: int) -> None:
        setting = "spark.databricks.delta.stats.collect"
        self.spark.conf.set(setting, str(bool(way % 2)).lower())
        try:
            self.spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append").save(self.table.location)
        finally:
            self.spark.conf.unset(setting)

    def require(self, column: str, required: bool) -> None:
        change = f"ADD CONSTRAINT given CHECK ({column} IS NOT NULL)" if required else "DROP CONSTRAINT given"
        self.spark.sql(f"ALTER TABLE {self._name} {change}").collect()

    def remake_metadata(self, way: int) -> None:
        properties = [
            "'delta.checkpointInterval' = '2'",
            "'delta.dataSkippingNumIndexedCols' = '0'",
            "'delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = 'false'",
        ]
        chosen = properties[way % len(properties)]
        self.spark.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ({chosen})").collect()


class _Iceberg(Others):
    def append(self, rows: pa.Table, way: int) -> None:
        found = pyiceberg(self.table)
        required = {f.name: f.required for f in found.schema().fields}
        given = rows.cast(pa.schema([f.with_nullable(not required[f.name]) for f in rows.schema]))
        if way % 2:
            found.append(given)
            return
        path = Path(self.table.location, "data", f"added-{way}-{len(found.metadata.snapshots)}.parquet")
        path.parent.mkdir(exist_ok=True)  # the backup may be of a table without rows
        pq.write_table(given, path, write_statistics=bool(way % 3))
        found.add_files([f"file://{path}"])

    def require(self, column: str, required: bool) -> None:
        with pyiceberg(self.table).update_schema(allow_incompatible_changes=True) as update:
            update.update_column(column, required=required)

    def remake_metadata(self, way: int) -> None:
        properties = [
            {"write.metadata.compression-codec": "gzip"},
            {"write.metadata.compression-codec": "none"},
            {"write.metadata.metrics.default": "none"},
            {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"},
        ]
        with pyiceberg(self.table).transaction() as transaction:
            transaction.set_properties(properties[way % len(properties)])


OTHERS: Final[dict[str, type[Others]]] = {"delta": _Delta, "iceberg": _Iceberg}
