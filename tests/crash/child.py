"""The program that is killed: one append, one compaction or one SQL statement.

Usage: python child.py append WAREHOUSE TABLE ROWS.parquet
       python child.py compact WAREHOUSE TABLE
       python child.py resolve WAREHOUSE TABLE
       python child.py sql WAREHOUSE TABLE STATEMENT
"""

from __future__ import annotations

import sys

import pyarrow.parquet as pq

import trinity


def main(action: str, warehouse: str, name: str, what: str | None = None) -> None:
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        # most of a child's life is the start of Spark, which a thorough compiler only delays
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    with trinity.connect(warehouse, spark_settings=settings, allow_code=True) as session:  # it reads rows by path
        table = session.table(name)
        if action == "append":
            table.upsert(pq.read_table(what), txn=("crash", 1))
        elif action == "sql":
            session.sql(str(what))
        else:
            table.compact("resolve" if action == "resolve" else "full")


if __name__ == "__main__":
    main(*sys.argv[1:])
