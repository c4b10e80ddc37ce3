"""Generated histories in which others put the table back: RESTORE, rollback, backups and copies (U4, L3, C7)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.restored_histories import Restored, drawn


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_a_table_that_was_put_back_is_as_it_was_then(spark: SparkSession, fmt: str, tmp_path: Path, seed: int) -> None:
    Restored(fmt, spark, tmp_path).play(drawn(seed))
