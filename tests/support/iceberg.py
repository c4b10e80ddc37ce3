"""Trinity's Iceberg tables, opened by Iceberg's own engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.sql import SqlCatalog

from trinity import Session, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # tests without Spark load this module, too


def iceberg_spark(session: Session) -> SparkSession:
    """Return a Spark session with the session's catalog ``iceberg``, whose name may already have another warehouse."""
    spark = session.spark.newSession()
    for key, value in session.catalogs["iceberg"].spark_catalog_settings("iceberg").items():  # type: ignore[attr-defined]
        spark.conf.set(key, value)
    return spark


def pyiceberg(table: Table) -> Any:
    """Return the table as PyIceberg loads it."""
    folder = Path(table.location).parents[1]
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    return catalog.load_table(f"default.{table.name.table}")
