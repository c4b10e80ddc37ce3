"""The program that is killed at a request to its store: one SQL statement, or one compaction.

Usage: python in_bucket.py SETTINGS sql STATEMENT
       python in_bucket.py SETTINGS compact STRENGTH

SETTINGS is the JSON of the catalog's settings; keys and endpoint come from the environment.
"""

from __future__ import annotations

import json
import sys

import trinity


def main(settings: str, action: str, what: str) -> None:
    spark = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    with trinity.connect(catalogs={"lake": json.loads(settings)}, spark_settings=spark) as session:
        if action == "sql":
            session.sql(what)
        else:
            session.table("t").compact(what)


if __name__ == "__main__":
    main(*sys.argv[1:])
