"""Delta's and Iceberg's own tables, as Spark writes, maintains and reads them, for comparison."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame

from benchmarks.data import COLUMNS
from benchmarks.tables import Scene

NATIVE_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.native": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.native.type": "hadoop",
}
"""Spark settings of the peers; ``spark.sql.catalog.native.warehouse`` is added."""

NATIVES: Final[Mapping[str, str]] = {
    "Delta": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "Delta, deletion vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "Iceberg": "TBLPROPERTIES ('format-version' = '2', 'write.merge.mode' = 'copy-on-write')",
    "Iceberg, merge on read": "TBLPROPERTIES ('format-version' = '2', 'write.merge.mode' = 'merge-on-read')",
}
COPY_ON_WRITE: Final = ("Delta", "Iceberg")
MERGE_ON_READ: Final[Mapping[str, str]] = {"delta": "Delta, deletion vectors", "iceberg": "Iceberg, merge on read"}
"""Format -> the peer that writes in the same way."""

_SAME_ROWS: Final = """WHEN MATCHED AND s.del THEN DELETE
                      WHEN MATCHED THEN UPDATE SET *
                      WHEN NOT MATCHED AND NOT s.del THEN INSERT *"""
"""The MERGE with the effect of an upsert of the same changes, where each change is the newest."""

_numbers: Final = itertools.count()


class Native:
    """A table of a peer's, with the base in it.

    Args:
        scene: where it lies, and its base.
        peer: its kind, one of ``NATIVES``.
    """

    def __init__(self, scene: Scene, peer: str) -> None:
        self._spark, self._delta = scene.session.spark, peer.startswith("Delta")
        self._place = str(scene.folder / f"native_{next(_numbers)}")
        self._short = f"default.{self._place.rpartition('/')[2]}"
        self.name = f"delta.`{self._place}`" if self._delta else f"native.{self._short}"
        columns = ", ".join(f"{c.name} {c.type}" for c in COLUMNS)
        kind = "delta" if self._delta else "iceberg"
        self._spark.sql(f"CREATE TABLE {self.name} ({columns}) USING {kind} {NATIVES[peer]}")
        scene.base().createOrReplaceTempView("base")
        self._spark.sql(f"INSERT INTO {self.name} SELECT {', '.join(c.name for c in COLUMNS)} FROM base")

    def merge(self, source: DataFrame, clauses: str = _SAME_ROWS) -> None:
        """Run the format's own MERGE of the source's rows by ``id``."""
        source.createOrReplaceTempView("changed")
        self._spark.sql(f"MERGE INTO {self.name} t USING changed s ON t.id = s.id {clauses}").collect()

    def optimize(self) -> None:
        """Run OPTIMIZE, or ``rewrite_data_files`` of every file with deleted rows, so that no deletes are left."""
        if self._delta:
            self._spark.sql(f"OPTIMIZE {self.name}").collect()
            return
        options = "map('delete-file-threshold', '1', 'min-input-files', '2', 'remove-dangling-deletes', 'true')"
        call = f"CALL native.system.rewrite_data_files(table => '{self._short}', options => {options})"
        self._spark.sql(call).collect()

    def to_df(self) -> DataFrame:
        """Return the rows, read by the format's own reader."""
        if self._delta:
            return self._spark.read.format("delta").load(self._place)
        return self._spark.table(self.name)

    def drop(self) -> None:
        """Drop the table."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self.name}")
