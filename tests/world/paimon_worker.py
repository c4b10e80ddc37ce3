"""The process of :class:`tests.world.paimon_players.PaimonMerge`: Apache Paimon in pyspark 3.5."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.paimon.driver import started
from tests.world.answering import answer_all


def main(folder: Path) -> None:
    """Answer requests until the input ends."""
    spark = started(folder)

    def run(text: str) -> None:
        spark.sql(text)

    def append(table: str, path: str) -> None:
        # one file with one row group is one partition, so rows keep their order
        spark.read.parquet(path).writeTo(table).append()

    def rows(text: str, path: str) -> None:
        spark.sql(text).coalesce(1).write.parquet(path)

    def number(text: str) -> int:
        return int(spark.sql(text).collect()[0][0])

    answer_all({"run": run, "append": append, "rows": rows, "number": number}, _why)
    spark.stop()


def _why(error: Exception) -> str:
    """Return the first line of an error, of the Java error if there is one."""
    return str(getattr(error, "java_exception", None) or error).splitlines()[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
