"""Keys under which a statement writes rows, compared with the rows stored there (M4, M7, M9).

The target's further unique keys are checked, too, among the rows that are live after the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trinity.engine.changing.plan import StatementPlan, written_unique_keys
from trinity.engine.changing.spark.stored_winners import stored_winners
from trinity.engine.reading.spark.merged_read import merged_read
from trinity.hidden import CHANGE_CASE, CHANGE_OPERATION, DELETED, MERGE_ROW
from trinity.merge.sql.fold import beats, is_deleted
from trinity.spark_names import Column, DataFrame, F
from trinity.spi import Operation
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CASE = f"{MERGE_ROW}.{CHANGE_CASE}"
_OPERATION = f"{MERGE_ROW}.{CHANGE_OPERATION}"
_MOVED: Final = "_trinity_moved"
"""BOOLEAN: True for a row whose key the statement changes."""
_VACATED: Final = "_trinity_vacated"
"""BOOLEAN: True for a key whose row the statement deletes or moves away; else NULL."""
_LIVE: Final = "_trinity_live"
"""BOOLEAN: True for a key with a live row that the statement does not vacate."""
_LOSES: Final = "_trinity_loses"
"""BOOLEAN: True for a moved row that the stored row of its new key beats."""


def check_keys(spark: SparkSession, plan: StatementPlan, changes: DataFrame) -> None:
    """Refuse keys that are live and not vacated by the same statement, and moves that would lose.

    The changes are persisted: they are read here and again when they are written.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION naming the key (M4), INVALID_ARGUMENTS (M9).
    """
    spec = plan.fold.spec
    moving = F.col(_CASE).isin(list(plan.key_changing_cases)) if plan.key_changing_cases else F.lit(False)
    stays = F.lit(True)
    for k in spec.key:
        stays = stays & F.col(f"{quoted(plan.row_id)}.{quoted(k)}").eqNullSafe(F.col(f"{MERGE_ROW}.{quoted(k)}"))
    moved = moving & ~stays
    inserted = F.col(_CASE).isin(list(plan.inserting_cases)) if plan.inserting_cases else F.lit(False)
    selected = changes.where(F.col(MERGE_ROW).isNotNull())
    filled = selected.where(moved | inserted).select(
        *[F.col(f"{MERGE_ROW}.{quoted(c)}").alias(c) for c in plan.collision_columns], moved.alias(_MOVED)
    )
    vacated = selected.where(moved | (F.col(_OPERATION) == int(Operation.DELETE))).select(
        *[F.col(f"{quoted(plan.row_id)}.{quoted(k)}").alias(k) for k in spec.key], F.lit(True).alias(_VACATED)
    )
    stored = stored_winners(spark, plan.fold, filled.select(*map(quoted, spec.key)))
    stored = stored.select(*[quoted(c) for c in stored.columns if c in (*plan.collision_columns, DELETED)])
    found = (
        filled.alias("n")
        .join(stored.alias("o"), _equal("n", "o", spec.key))
        .join(vacated.alias("v"), _equal("n", "v", spec.key), "left")
    )
    loses = f"n.{_MOVED} AND {beats(spec, 'o', 'n')}"
    live = f"NOT o.{DELETED} AND v.{_VACATED} IS NULL"
    columns = [f"n.{quoted(k)} AS {quoted(k)}" for k in spec.key]
    bad = found.selectExpr(*columns, f"{live} AS {_LIVE}", f"{loses} AS {_LOSES}")
    for row in bad.where(f"{_LIVE} OR {_LOSES}").limit(1).collect():
        if not row[_LIVE]:
            raise plan.loses_error()
        raise plan.key_exists_error([row[k] for k in spec.key])


def _equal(one: str, other: str, key: tuple[str, ...]) -> Column:
    return F.expr(" AND ".join(f"{one}.{quoted(k)} = {other}.{quoted(k)}" for k in key))


def check_unique(spark: SparkSession, plan: StatementPlan, changes: DataFrame) -> None:
    """Refuse a value of a unique key that two live rows would have. NULLs are never equal.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION naming the columns and the value.
    """
    spec = plan.fold.spec
    operation = F.col(f"{MERGE_ROW}.{CHANGE_OPERATION}")
    rows = changes.where(operation != int(Operation.DELETE)).select(f"{MERGE_ROW}.*")
    brought = rows.where(f"NOT {is_deleted(spec, rows)}")
    row_id = quoted(plan.row_id)
    touched = changes.where(F.col(row_id).isNotNull())
    touched = touched.select(*[F.col(f"{row_id}.{quoted(k)}").alias(k) for k in spec.key])
    kept = merged_read(spark, plan.splits).join(touched, list(spec.key), "left_anti")
    for columns in written_unique_keys(plan.program):
        _check(plan, columns, brought, kept)


def _check(plan: StatementPlan, columns: Sequence[str], brought: DataFrame, kept: DataFrame) -> None:
    names = [quoted(c) for c in columns]
    known = " AND ".join(f"{name} IS NOT NULL" for name in names)
    values = brought.select(*names).where(known)
    same = kept.select(*names).join(values.distinct(), list(columns), "left_semi")
    twice = values.unionByName(same).groupBy(*names).count().where("count > 1").limit(1)
    for row in twice.collect():
        raise plan.duplicate_unique_error(columns, [row[c] for c in columns])
