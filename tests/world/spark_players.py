"""The MERGE of Delta and of Iceberg in Spark, as players of histories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tests.support.oracles import NativeDelta, NativeIceberg
from tests.world.players import Upserts, as_tuples, merge_text
from trinity.errors import TrinityError
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.tables import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SEVERAL: Final = (
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING",
    "MERGE_CARDINALITY_VIOLATION",
    "match more then one source rows",
)
"""Parts of the errors of Delta, Iceberg and Paimon when several source rows change one row."""


class SparkMerge(Upserts):
    """A format's own MERGE INTO.

    Args:
        native: a table of the format's own writer.
        versions: returns, for the table's name, the query of its versions, newest first, with the number as first
            column.
    """

    dialect = "spark"

    def __init__(self, native: NativeDelta | NativeIceberg, versions: Callable[[str], str]) -> None:
        super().__init__()
        self.native, self.versions = native, versions

    def make(self, shape: Shape) -> None:
        self.native.create(shape)

    def write(self, batch: pa.Table) -> None:
        self.native.spark.createDataFrame(batch).createOrReplaceTempView("s")
        self.native.run(merge_text(self.shape, self.native.table))

    def rows(self) -> list[tuple[Any, ...]]:
        return as_tuples(self._read(""), self.shape)

    def rows_at(self, version: int) -> list[Row]:
        numbers = [row[0] for row in self.native.spark.sql(self.versions(self.native.table)).collect()]
        rows: list[Row] = self._read(f" VERSION AS OF {numbers[self.commits - version]}").to_pylist()
        return rows

    def _read(self, at: str) -> pa.Table:
        return self.native.spark.sql(f"SELECT * FROM {self.native.table}{at}").toArrow()


def delta_merge(spark: SparkSession, folder: Path) -> SparkMerge:
    """Return the player of Delta's MERGE."""
    return SparkMerge(NativeDelta(spark, folder), lambda table: f"DESCRIBE HISTORY {table}")


def iceberg_merge(spark: SparkSession, folder: Path) -> SparkMerge:
    """Return the player of Iceberg's MERGE."""
    newest_first = "SELECT snapshot_id FROM {}.snapshots ORDER BY committed_at DESC"
    return SparkMerge(NativeIceberg(spark, folder), newest_first.format)


def with_code(run: Callable[[str], None], text: str) -> None:
    """Run a statement. The refusal of a row that several source rows change is raised with Trinity's code."""
    try:
        run(text)
    except Exception as error:
        if not any(name in str(error) for name in _SEVERAL):
            raise
        raise TrinityError("MERGE_TARGET_ROW_MULTIPLE_MATCHES", str(error)) from error


class DeltaStatements(NativeDelta):
    """Delta's own statements on a plain table."""

    def run(self, text: str) -> None:
        with_code(super().run, text)


class IcebergStatements(NativeIceberg):
    """Iceberg's own statements on a plain table."""

    def run(self, text: str) -> None:
        with_code(super().run, text)


def taken_by_spark(statement: Statement) -> bool:
    """Return whether the formats' own writers know a statement."""
    joined = statement.kind != "MERGE" and statement.source is not None
    subqueries = "SELECT q.m" in statement.sql("t", Shape((), ()), "spark")
    return not (joined or subqueries or any(case.action == "DO NOTHING" for case in statement.cases))
