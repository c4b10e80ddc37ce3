"""Temporary views that :meth:`trinity.Session.publish` has made, and the tables that they read.

Which table a view reads is kept in a setting of Spark: settings live as long as views do, and every session of Trinity
on one Spark sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trinity.names import TableName
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.spark_names import DataFrame, SparkSession

_SETTING: Final = "spark.trinity.published."


@dataclass(frozen=True)
class Published:
    """The table that a published view reads.

    Attributes:
        name: the table's name.
        location: its location.
        warehouse: its catalog's warehouse, which tells catalogs of one name apart; empty if only a service knows it.
    """

    name: TableName
    location: str
    warehouse: str


def published_table(spark: SparkSession, view: str) -> Published | None:
    """Return the table that a published view reads; None for other views."""
    value = spark.conf.get(_SETTING + view.lower(), None)
    if not value:
        return None
    catalog, schema, table, location, warehouse = value.split("\n")
    return Published(TableName(catalog, schema, table), location, warehouse)


def published_tables(spark: SparkSession) -> Iterator[tuple[str, Published]]:
    """Yield the published views, with their tables."""
    for setting in list(spark.conf.getAll):
        view = setting.removeprefix(_SETTING)
        if view != setting and (found := published_table(spark, view)):
            yield view, found


def publish_view(spark: SparkSession, rows: DataFrame, table: Published) -> None:
    """Make the rows of a table the temporary view of its name."""
    rows.createOrReplaceTempView(quoted(table.name.table))
    value = "\n".join([*table.name.parts, table.location, table.warehouse])
    spark.conf.set(_SETTING + table.name.table.lower(), value)


def drop_view(spark: SparkSession, view: str) -> None:
    """Drop a published view."""
    spark.catalog.dropTempView(view)
    spark.conf.unset(_SETTING + view)
