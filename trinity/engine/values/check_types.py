"""Checks of a table's definition: of its types, DEFAULTs and CHECKs, by Spark where this process does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trinity.engine.not_local import NotLocal
from trinity.engine.values.local_checks import LocalChecks, no_zone
from trinity.spi import TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_types"]


def check_types(definition: TableDefinition, spark: Callable[[], SparkSession]) -> None:
    """Refuse types that this Spark lacks (NOT_SUPPORTED), DEFAULTs of a wrong type, and CHECKs it cannot evaluate."""
    if any("time" in c.type.replace("timestamp", "") for c in definition.columns):
        from trinity.engine.spark.types import check_time_type

        check_time_type(definition.columns, spark())
    if any(c.default is not None for c in definition.columns):
        from trinity.engine.values.defaults import check_defaults

        check_defaults(definition, spark)
    if definition.checks and isinstance(LocalChecks.of(definition, definition.full_name, no_zone), NotLocal):
        from trinity.engine.values.check_constraints import analyse_checks

        analyse_checks(spark(), definition)
