"""Temporary views that :meth:`trinity.Session.publish` has made, by the tables that they read.

Spark's own settings keep them: they live as long as its views do, and every session of Trinity on one Spark sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from trinity.names import TableName
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.spark_names import DataFrame, SparkSession

_SETTING: Final = "spark.trinity.published."


def published_table(spark: SparkSession, view: str) -> tuple[TableName, str] | None:
    """Return the name and location of the table that a published view reads; None for other views."""
    value = spark.conf.get(_SETTING + view.lower(), None)
    if not value:
        return None
    catalog, schema, table, location = value.split("\n")
    return TableName(catalog, schema, table), location


def published_tables(spark: SparkSession) -> Iterator[tuple[str, TableName]]:
    """Yield the published views, with the names of their tables."""
    for setting in list(spark.conf.getAll):
        view = setting.removeprefix(_SETTING)
        if view != setting and (found := published_table(spark, view)):
            yield view, found[0]


def publish_view(spark: SparkSession, rows: DataFrame, name: TableName, location: str) -> None:
    """Make the rows of a table the temporary view of its name."""
    rows.createOrReplaceTempView(quoted(name.table))
    spark.conf.set(_SETTING + name.table.lower(), "\n".join([*name.parts, location]))


def drop_view(spark: SparkSession, view: str) -> None:
    """Drop a published view."""
    spark.catalog.dropTempView(view)
    spark.conf.unset(_SETTING + view)
