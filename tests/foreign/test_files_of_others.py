"""Iceberg tables of Trinity that PyIceberg writes, too: Spark and this process read the same rows (L1, L3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import trinity
from tests.support.files_of_others import ENGINES, play, shown
from tests.support.foreign import shown as shown_by_spark
from trinity import Table, TrinityError
from trinity.engine.reading.hidden_rows import LEAST_ROWS

pytestmark = pytest.mark.inner

BY_PLACE = pytest.mark.parametrize("by_place", [False, True], ids=["joined", "by-place"])


def read_by_both(table: Table) -> None:
    """Read the rows by both executors; check that they agree, or both refuse."""
    found = []
    for read in (shown, shown_by_spark):
        try:
            found.append(read(table))
        except (TrinityError, PySparkException) as error:
            found.append(["not known"] if "it is not known any more" in str(error) else [repr(error)])
    assert found[0] == found[1]


@pytest.mark.full
@BY_PLACE
@pytest.mark.parametrize("engine", ENGINES)
def test_both_executors_read_rows_of_others(spark: SparkSession, tmp_path: Path, engine: str, by_place: bool) -> None:
    for seed in range(6):
        folder, least = tmp_path / str(seed), 0 if by_place else LEAST_ROWS.value
        with LEAST_ROWS.set_to(least), trinity.connect(folder, spark=spark) as session:
            play(session, folder, engine, seed, read_by_both)
