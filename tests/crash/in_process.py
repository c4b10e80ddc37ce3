"""The program that is killed, without Spark: one upsert, one statement or one maintenance call.

Usage: python in_process.py upsert WAREHOUSE TABLE ROWS.parquet
       python in_process.py sql WAREHOUSE TABLE STATEMENT
       python in_process.py compact|resolve|vacuum WAREHOUSE TABLE
"""

from __future__ import annotations

import sys

import pyarrow.parquet as pq

import trinity


def main(action: str, warehouse: str, name: str, what: str = "") -> None:
    with trinity.connect(warehouse, engine="local") as session:
        table = session.table(name)
        if action == "upsert":
            table.upsert(pq.read_table(what), txn=("crash", 1))
        elif action == "sql":
            session.sql(what)
        elif action == "vacuum":
            table.vacuum("0 seconds")
        else:
            table.compact("resolve" if action == "resolve" else "full")


if __name__ == "__main__":
    main(*sys.argv[1:])
