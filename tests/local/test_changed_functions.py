"""ALTER between compactions, where it changes whether compaction keeps row versions (E3)."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings

from tests.support.changed_functions import SHAPES, STEPS, Step, make, merged, play
from tests.support.histories import GENERATED
from trinity import Session

FORMATS = ("parquet", "delta", "iceberg")


@pytest.mark.parametrize("catalog", ["memory", *(pytest.param(f, marks=pytest.mark.full) for f in FORMATS)])
@pytest.mark.parametrize("shape", SHAPES)
def test_compactions_change_no_read_whatever_the_columns_are(local: Session, catalog: str, shape: str) -> None:
    numbers = count()

    @settings(GENERATED, max_examples=20)
    @given(STEPS)
    def some(steps: list[Step]) -> None:
        name = f"{catalog}.default.t{next(numbers)}"
        play(make(local, name, shape), make(local, f"{name}_twin", shape), steps, merged)

    some()
