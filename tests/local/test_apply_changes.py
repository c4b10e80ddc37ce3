"""``trinity.apply_changes`` without Spark: both SCD types. Options that need Spark are refused by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
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


@pytest.mark.parametrize("catalog", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("further", [{}, {"ignore_null_updates": True}])
def test_events_delete_rows_until_a_later_one_comes(local: Session, catalog: str, further: dict[str, Any]) -> None:
    name = f"{catalog}.default.customers"
    words: dict[str, Any] = {"session": local, **TYPE_1, **further, "apply_as_deletes": "op = 'DELETE' AND seq > 0"}
    gone = {"id": 1, "city": None, "op": "DELETE", "seq": 40}
    trinity.apply_changes([gone, *EVENTS, {"id": 2, "city": "Rome", "op": None, "seq": 1}], name, **words)
    found = local.table(name).to_arrow(columns=["id", "city", "seq"])
    assert found.to_pylist() == [{"id": 2, "city": "Rome", "seq": 1}]
    back = {"id": 1, "city": "Lima", "op": "INSERT", "seq": 50}
    trinity.apply_changes([back, {"id": 2, "city": None, "op": "DELETE", "seq": 2}], local.table(name), **TYPE_1,
                          **further, apply_as_deletes="op = 'DELETE'")  # fmt: skip
    found = local.table(name).to_arrow(columns=["id", "city", "seq"])
    assert found.to_pylist() == [{"id": 1, "city": "Lima", "seq": 50}]


@pytest.mark.parametrize("properties", [{"tombstone-key": "gone"}, {"rowkind.field": "gone"}])
def test_the_mark_of_a_delete_may_be_among_the_events(local: Session, properties: dict[str, str]) -> None:
    """In another case, too."""
    columns = [trinity.Column("id", "bigint"), trinity.Column("seq", "bigint"), trinity.Column("gone", "string")]
    table = local.create_table("t", columns, primary_key=["id"], properties={"watermark-key": "seq", **properties})
    events = pa.table({"ID": [1, 2], "Seq": [1, 1], "GONE": pa.array([None, None], pa.string())})
    trinity.apply_changes(events, table, keys=["id"], sequence_by="seq", apply_as_deletes="ID = 2")
    assert table.to_arrow().to_pylist() == [{"id": 1, "seq": 1, "gone": None}]


NESTED = pa.map_(pa.struct([("a", pa.int32())]), pa.int32())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ({"apply_as_deletes": "soundex(op) = 'D430'"}, "apply_as_deletes"),
        ({"apply_as_deletes": "soundex(op) = 'D430'", "stored_as_scd_type": 2}, "apply_as_deletes"),
        ({"stored_as_scd_type": 2, "except_columns": []}, "'op'"),
        ({"stored_as_scd_type": 2, "sequence_by": "list"}, "array<int>"),
    ],
)
def test_what_needs_spark_is_named_and_no_table_is_made(local: Session, words: dict[str, Any], named: str) -> None:
    events = pa.table({"id": [1], "city": ["Oslo"], "seq": [1], "list": pa.array([[1]], pa.list_(pa.int32()))})
    events = events.append_column("op", pa.array([None], NESTED if "except_columns" in words else pa.string()))
    with refused("NOT_SUPPORTED", named, "needs Spark"):
        trinity.apply_changes(events, "customers", session=local, **{**TYPE_1, **words})
    assert local.tables() == []
