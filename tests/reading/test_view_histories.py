"""Generated histories of the merge engines, in which every read of the newest version uses a merge view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from trinity.calls import spark_errors
from trinity.errors import TrinityError
from trinity_conformance.generate.engine_histories import engine_histories
from trinity_conformance.generate.engine_profiles import LANES, engine_rota
from trinity_conformance.generate.histories import sample
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.tables import Row
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.subject import TrinitySubject
from trinity_conformance.playing.traces import History

UNSAID = {
    "duckdb": {
        "merge_map", "merge_map_with_keytime", "nested_update", "nested_partial_update", "hll_sketch", "theta_sketch",
        "rbm32", "rbm64",
    },
    "spark": {"rbm32", "rbm64"},
}  # fmt: skip
"""Dialect -> functions that a view refuses."""


class Viewed(TrinitySubject):
    """A table that Trinity writes, and another engine reads through its merge view.

    Args:
        connector, spark, folder: as for the subject.
        dialect: the engine.
    """

    def __init__(self, connector: str, spark: SparkSession, folder: Path, dialect: str) -> None:
        self.dialect = dialect
        self.reader = spark
        self.seen: Counter[str] = Counter()
        super().__init__(connector, spark, folder)

    def read(
        self,
        version: Any = None,
        timestamp: datetime | None = None,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        if version is not None or timestamp is not None or condition is not None:
            return super().read(version, timestamp, condition, columns)
        try:
            view = self._table.merge_view_sql(self.dialect)
        except TrinityError as error:
            if error.code != "NOT_SUPPORTED" or "folds by product" not in error.message:
                raise
            self.seen["refused"] += 1
            return super().read(columns=columns)
        self.seen["log" if "_trinity_arrival" in view else "compacted"] += 1
        return self.answer(view, columns or self._shape.names)

    def answer(self, view: str, columns: Sequence[str]) -> list[Row]:
        if self.dialect == "spark":
            with spark_errors():
                rows: list[Row] = self.reader.sql(view).select(*columns).toArrow().to_pylist()
            return rows
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            try:
                rows = connection.sql(f"SELECT {', '.join(columns)} FROM ({view})").to_arrow_table().to_pylist()
            except duckdb.InvalidInputException as error:
                if "NUMERIC_VALUE_OUT_OF_RANGE" in str(error):
                    raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", str(error)) from error
                raise
        return rows


def drawn(number: int, dialect: str) -> History:
    """Return a history of a table whose aggregate functions the dialect's view supports."""
    profile = engine_rota(number)
    functions = tuple(f for f in profile.functions if f not in UNSAID[dialect])
    return sample(engine_histories(replace(profile, functions=functions)), number)


def played(connector: str, spark: SparkSession, folder: Path, dialect: str, numbers: Iterable[int]) -> Counter[str]:
    subject = Viewed(connector, spark, folder, dialect)
    for number in numbers:
        play(subject, drawn(number, dialect), every_step=True)
    subject.close()
    return subject.seen


@pytest.mark.full
@pytest.mark.parametrize(("dialect", "number"), [("duckdb", 1), ("spark", 2)])
def test_views_read_as_the_model_says(spark: SparkSession, tmp_path: Path, dialect: str, number: int) -> None:
    assert played("parquet", spark, tmp_path, dialect, [number])["log"] > 0


@pytest.mark.full
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_views_read_as_the_model_says_in_many_histories(
    spark: SparkSession, fmt: str, tmp_path: Path, dialect: str
) -> None:
    """Every merge engine and way to delete, with other histories for each format."""
    first = {"parquet": 100, "delta": 200, "iceberg": 300}[fmt]
    assert played(fmt, spark, tmp_path, dialect, range(first, first + len(LANES)))["log"] > len(LANES)
