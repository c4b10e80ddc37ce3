"""``trinity.apply_changes`` without Spark: events of SCD type 1 that delete nothing. The rest is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

import trinity
from tests.support.refusals import refused
from trinity import Session

EVENTS = [
    {"id": 1, "city": "Oslo", "op": "INSERT", "seq": 10},
    {"id": 1, "city": "Bergen", "op": "UPDATE", "seq": 30},
    {"id": 1, "city": "Paris", "op": "UPDATE", "seq": 20},
]
TYPE_1: dict[str, Any] = {"keys": ["id"], "sequence_by": "seq", "except_columns": ["op"]}


@pytest.mark.parametrize("catalog", ["parquet", "delta", "iceberg"])
def test_the_event_with_the_largest_sequence_is_the_row(local: Session, catalog: str) -> None:
    name = f"{catalog}.default.customers"
    trinity.apply_changes(EVENTS, name, session=local, **TYPE_1)
    assert local.table(name).to_arrow().to_pylist() == [{"id": 1, "city": "Bergen", "seq": 30}]


@pytest.mark.parametrize(
    ("words", "named"),
    [({"apply_as_deletes": "op = 'DELETE'"}, "apply_as_deletes"), ({"stored_as_scd_type": 2}, "SCD type 2")],
)
def test_what_needs_spark_is_named_and_no_table_is_made(local: Session, words: dict[str, Any], named: str) -> None:
    with refused("NOT_SUPPORTED", named, "needs Spark"):
        trinity.apply_changes(EVENTS, "customers", session=local, **TYPE_1, **words)
    assert local.tables() == []
