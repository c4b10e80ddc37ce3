"""Play tables on real Paimon, in an environment of its own with pyspark 3.5 and without Trinity.

Usage: ``python driver.py FOLDER``. ``FOLDER/plan.json`` is a list of tables, each with its ``name``, its ``ddl`` and
its ``steps``: the name of a Parquet file with the rows of one commit, or ``compact``. For each table it writes the
merged read to ``FOLDER/<name>.rows`` (Parquet), or what went wrong to ``FOLDER/<name>.error``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

PACKAGE = "org.apache.paimon:paimon-spark-3.5:0.9.0"


def started(folder: Path) -> SparkSession:
    """Start a local Spark whose catalog ``paimon`` is in the folder; Ivy fetches the JAR once."""
    settings = {
        "spark.jars.packages": PACKAGE,
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.paimon.warehouse": f"file:{folder / 'warehouse'}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        # many small tables: compiling costs more than running
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[1]").appName("paimon")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("CREATE DATABASE IF NOT EXISTS paimon.d")
    return spark


def play(spark: SparkSession, folder: Path, table: dict[str, Any]) -> None:
    """Make a table, write its commits and read it."""
    name = f"paimon.d.{table['name']}"
    spark.sql(table["ddl"].format(table=name))
    for step in table["steps"]:
        if step == "compact":
            spark.sql(f"CALL paimon.sys.compact(table => 'd.{table['name']}')")
        else:  # one file with one row group is one partition, so rows keep their order
            spark.read.parquet(str(folder / step)).writeTo(name).append()
    spark.table(name).coalesce(1).write.parquet(str(folder / f"{table['name']}.rows"))


def reason(error: Exception) -> str:
    """Return the causes of an error, one a line."""
    causes, cause = [f"{type(error).__name__}: {error}"], getattr(error, "java_exception", None)
    while cause is not None:
        causes.append(str(cause.toString()).splitlines()[0])
        cause = cause.getCause()
    return "\n".join(dict.fromkeys(causes))


def main(folder: Path) -> None:
    """Play the plan."""
    spark = started(folder)
    for table in json.loads((folder / "plan.json").read_text()):
        try:
            play(spark, folder, table)
        except Exception as error:  # every error of Paimon is an answer
            (folder / f"{table['name']}.error").write_text(reason(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
