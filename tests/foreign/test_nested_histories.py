"""Generated histories in which another engine changes nested fields of an Iceberg table (U7)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.nested_histories import Nested, drawn


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("external", [False, True])
def test_nested_values_belong_to_the_ids_of_their_fields(
    spark: SparkSession, tmp_path: Path, seed: int, external: bool
) -> None:
    Nested(spark, tmp_path, external).play(drawn(seed))
