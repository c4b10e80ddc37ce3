"""ALTER between compactions by Spark, where it changes whether compaction keeps row versions (E3)."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from pyspark.sql import SparkSession

import trinity
from tests.support.changed_functions import (
    FOLDED_IN_SIDECAR,
    OUT_OF_RANGE,
    REVIVED_AT_ONCE,
    SHAPES,
    STEPS,
    Step,
    make,
    merged,
    out_of_range_and_repaired,
    play,
)
from tests.support.histories import GENERATED
from trinity import Session, Table

CASES = [(shape, fmt) for shape in SHAPES for fmt in ("parquet", "delta", "iceberg")]


@pytest.mark.parametrize(
    ("shape", "catalog"), [CASES[0], *(pytest.param(*case, marks=pytest.mark.full) for case in CASES[1:])]
)
def test_both_executors_read_what_spark_compacts(
    warehouse: Path, spark: SparkSession, catalog: str, shape: str
) -> None:
    """Spark's reads, its merge view and feed are those of this process, and those of a table without compactions."""
    numbers = count()
    with (
        trinity.connect(warehouse, spark=spark, engine="spark") as session,
        trinity.connect(warehouse, engine="local") as here,
    ):

        def read(table: Table) -> list[dict[str, Any]]:
            """Return the rows as this process reads them; Spark has to read the same in every way."""
            mine = here.table(table.name)
            found = merged(mine)
            assert merged(table) == found
            view = [row.asDict() for row in spark.sql(table.merge_view_sql("spark")).collect()]
            shown = [{name: row[name] for name in row if name != "kind"} for row in view]
            assert sorted(shown, key=lambda row: row["k"]) == found
            start = mine.connector.metadata.history(mine.handle)[-2:][0].version
            changes = [one.changes(start).collect() for one in (table, mine)]
            one, other = (sorted(repr(row.asDict()) for row in rows) for rows in changes)
            assert one == other
            return found

        @settings(GENERATED, max_examples=1)
        @given(STEPS)
        @example(FOLDED_IN_SIDECAR)
        @example(REVIVED_AT_ONCE)
        def some(steps: list[Step]) -> None:
            name = f"{catalog}.default.t{next(numbers)}"
            play(make(session, name, shape), make(here, f"{name}_twin", shape), steps, read)

        some()


def test_spark_leaves_a_delete_in_its_place_where_a_value_is_out_of_range(session: Session) -> None:
    out_of_range_and_repaired(session.create_table("parquet.default.t", **OUT_OF_RANGE))
