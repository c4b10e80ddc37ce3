"""Further unique keys of a statement's target, which hold among the live rows after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trinity.engine.changing.plan import concerned
from trinity.engine.changing.spark.plan import MERGE_ROW, MergePlan
from trinity.engine.reading.merged_read import merged_read
from trinity.merge.sql.fold import is_deleted
from trinity.spark_names import DataFrame, F
from trinity.spi import Operation, SplitSource
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_unique"]


def check_unique(spark: SparkSession, plan: MergePlan, splits: SplitSource, changes: DataFrame) -> None:
    """Refuse values of a unique key that two live rows would have. NULLs are never equal.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION naming the columns and the value.
    """
    spec = plan.spec
    assert spec is not None
    operation = F.col(f"{MERGE_ROW}._trinity_operation")
    rows = changes.where(operation != int(Operation.DELETE)).select(f"{MERGE_ROW}.*")
    brought = rows.where(f"NOT {is_deleted(spec, rows)}")
    row_id = quoted(plan.row_id)
    touched = changes.where(F.col(row_id).isNotNull())
    touched = touched.select(*[F.col(f"{row_id}.{quoted(k)}").alias(k) for k in spec.key])
    kept = merged_read(spark, splits).join(touched, list(spec.key), "left_anti")
    for columns in concerned(plan.program):
        _check(plan, columns, brought, kept)


def _check(plan: MergePlan, columns: Sequence[str], brought: DataFrame, kept: DataFrame) -> None:
    names = [quoted(c) for c in columns]
    known = " AND ".join(f"{name} IS NOT NULL" for name in names)
    values = brought.select(*names).where(known)
    same = kept.select(*names).join(values.distinct(), list(columns), "left_semi")
    twice = values.unionByName(same).groupBy(*names).count().where("count > 1").limit(1)
    for row in twice.collect():
        raise plan.repeated(columns, [row[c] for c in columns])
