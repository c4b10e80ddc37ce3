"""``trinity.apply_changes`` without Spark against its model: batches cut anywhere, in any order, repeated (H1-H5)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.support.events import Event
from tests.support.histories import GENERATED, KINDS, check, deliveries
from trinity import Session

FORMATS = ("parquet", "delta", "iceberg")


@pytest.mark.parametrize("catalog", ["memory", *(pytest.param(f, marks=pytest.mark.full) for f in FORMATS)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_arrival_does_not_matter(local: Session, catalog: str, kind: str) -> None:
    """Batches are cut anywhere, delivered twice, and compacted; the rows are the model's (H1, H2, H3, H4, H5)."""

    @settings(GENERATED, max_examples=4)
    @given(deliveries(4))
    def some(batches: list[tuple[list[Event], str]]) -> None:
        check([local], catalog, kind, batches)

    some()
