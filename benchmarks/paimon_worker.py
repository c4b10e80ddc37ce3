"""The process of :class:`benchmarks.paimon.Paimon`: pyspark 3.5, nothing of Trinity's."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

PACKAGE = "org.apache.paimon:paimon-spark-3.5:0.9.0"
TABLE = "paimon.d.bench"
DDL = f"""CREATE TABLE {TABLE} (id BIGINT, ts TIMESTAMP, del BOOLEAN, s STRING, a BIGINT, b DOUBLE, c INT, d DOUBLE,
          kind STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '8', 'rowkind.field' = 'kind',
          'sequence.field' = 'ts')"""


def started(folder: Path) -> SparkSession:
    """Start a local Spark with the catalog ``paimon`` and the settings that ours has; Ivy fetches the JAR once."""
    settings = {
        "spark.jars.packages": PACKAGE,
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.paimon.warehouse": f"file:{folder / 'warehouse'}",
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("paimon")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("CREATE DATABASE IF NOT EXISTS paimon.d")
    return spark


def write(spark: SparkSession, path: str) -> None:
    """Write one commit; a deleted row has the row kind of a delete."""
    rows: DataFrame = spark.read.parquet(path)
    rows.selectExpr("*", "IF(del, '-D', '+I') AS kind").writeTo(TABLE).append()


def answer(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request."""
    if request["do"] == "create":
        spark.sql(DDL)
        write(spark, request["path"])
        return {}
    if request["do"] == "count":
        return {"rows": spark.table(TABLE).count()}
    start = time.perf_counter()
    write(spark, request["path"])
    spark.table(TABLE)._jdf.queryExecution().toRdd().count()
    return {"seconds": time.perf_counter() - start}


def main(folder: Path) -> None:
    """Answer requests until the input ends."""
    spark = started(folder)
    for line in sys.stdin:
        try:
            found = answer(spark, json.loads(line))
        except Exception as error:  # whatever Paimon says is an answer
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
