"""ALTER between compactions, where it changes whether compaction keeps row versions (E3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings

from tests.support.changed_functions import SHAPES, STEPS, Step, make, merged, play, rows_for
from tests.support.histories import GENERATED
from trinity import Session

FORMATS = ("parquet", "delta", "iceberg")


@pytest.mark.parametrize("catalog", ["memory", *(pytest.param(f, marks=pytest.mark.full) for f in FORMATS)])
@pytest.mark.parametrize("shape", SHAPES)
def test_compactions_change_no_read_whatever_the_columns_are(local: Session, catalog: str, shape: str) -> None:
    numbers = count()

    @settings(GENERATED, max_examples=15)
    @given(STEPS)
    def some(steps: list[Step]) -> None:
        name = f"{catalog}.default.t{next(numbers)}"
        play(make(local, name, shape), make(local, f"{name}_twin", shape), steps, merged)

    some()


@pytest.mark.parametrize("catalog", FORMATS)
def test_a_table_from_before_last_values_were_kept_reads_as_it_did_until_an_alter(local: Session, catalog: str) -> None:
    table = make(local, f"{catalog}.default.old", "states")
    table.connector.metadata.alter_table(table.handle, lambda d: replace(d, keeps_last_values=False))
    table = local.table(table.name)

    def value_after(ts: int, v: int, *, retract: bool = False) -> int:
        table.upsert(rows_for(table, [(1, ts, v, None, retract)]))
        found: int = merged(table)[0]["v"]
        table.compact("full")
        assert merged(table)[0]["v"] == found
        return found

    assert value_after(1, 10) == 10
    assert value_after(5, 10, retract=True) == 10
    assert value_after(3, 30) == 10  # the base row has the retract's place
    table.rename_column("v", "w")
    table.rename_column("w", "v")
    assert value_after(6, 60) == 60
    assert value_after(9, 60, retract=True) == 60
    assert value_after(8, 80) == 80
    assert value_after(7, 70) == 80
