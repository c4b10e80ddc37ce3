"""ALTER between compactions, where it changes whether compaction keeps row versions (E3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from pyiceberg.types import StringType

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
    rows_for,
)
from tests.support.histories import GENERATED
from tests.support.iceberg import pyiceberg
from trinity import Column, Session

FORMATS = ("parquet", "delta", "iceberg")


@pytest.mark.parametrize("catalog", ["memory", *(pytest.param(f, marks=pytest.mark.full) for f in FORMATS)])
@pytest.mark.parametrize("shape", SHAPES)
def test_compactions_change_no_read_whatever_the_columns_are(local: Session, catalog: str, shape: str) -> None:
    numbers = count()

    @settings(GENERATED, max_examples=15)
    @given(STEPS)
    @example(FOLDED_IN_SIDECAR)
    @example(REVIVED_AT_ONCE)
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


@pytest.mark.parametrize("catalog", FORMATS)
def test_a_new_column_with_a_default_leaves_totals_as_they_are(local: Session, catalog: str) -> None:
    table = make(local, f"{catalog}.default.t", "sums")
    table.upsert(rows_for(table, [(1, 1, 10, None, False), (2, 1, 20, None, False)]))
    table.compact("full")
    table.add_column(Column("note", "string", default="'x'"))
    assert merged(table) == [{"k": 1, "ts": 1, "v": 10, "note": "x"}, {"k": 2, "ts": 1, "v": 20, "note": "x"}]
    table.compact("full")
    table.upsert(pa.table({"k": [1], "ts": [2], "v": [1], "note": ["y"]}))
    assert merged(table) == [{"k": 1, "ts": 2, "v": 11, "note": "y"}, {"k": 2, "ts": 1, "v": 20, "note": "x"}]


def test_a_column_that_pyiceberg_added_leaves_totals_as_they_are(local: Session) -> None:
    """Its function depends on the order of rows, so that compaction keeps row versions from then on."""
    table = make(local, "iceberg.default.t", "sums")
    table.upsert(rows_for(table, [(1, 1, 10, None, False), (2, 1, 20, None, False)]))
    table.compact("full")
    with pyiceberg(table).update_schema() as schema:
        schema.add_column("note", StringType())
    table = local.table(table.name)
    table.upsert(pa.table({"k": [1], "ts": [2], "v": [1], "note": ["y"]}))
    expected = [{"k": 1, "ts": 2, "v": 11, "note": "y"}, {"k": 2, "ts": 1, "v": 20, "note": None}]
    assert merged(table) == expected
    table.compact("full")
    assert merged(table) == expected
    table.upsert(pa.table({"k": [2], "ts": [2], "v": [2], "note": ["z"]}))
    assert merged(table)[1] == {"k": 2, "ts": 2, "v": 22, "note": "z"}
    with pyiceberg(table).update_schema() as schema:
        schema.delete_column("note")
    table = local.table(table.name)
    assert merged(table) == [{"k": 1, "ts": 2, "v": 11}, {"k": 2, "ts": 2, "v": 22}]
    table.upsert(rows_for(table, [(1, 3, 1, None, False)]))
    assert merged(table) == [{"k": 1, "ts": 3, "v": 12}, {"k": 2, "ts": 2, "v": 22}]


@pytest.mark.parametrize("catalog", FORMATS)
def test_a_restore_to_before_an_alter_leaves_totals_as_they_are(local: Session, catalog: str) -> None:
    table = make(local, f"{catalog}.default.t", "sums")
    table.upsert(rows_for(table, [(1, 1, 10, None, False), (2, 1, 20, None, False)]))
    table.compact("full")
    before = table.version
    table.add_column(Column("last", "string"))
    table.upsert(rows_for(table, [(1, 2, 5, 1, False)]))
    table.compact("full")
    table.restore(before)
    assert table.definition.history_changed  # a compaction that began before the restore may commit after it
    table.upsert(rows_for(table, [(1, 3, 1, None, False)]))
    assert merged(table) == [{"k": 1, "ts": 3, "v": 11}, {"k": 2, "ts": 1, "v": 20}]
    table.compact("full")
    assert merged(table) == [{"k": 1, "ts": 3, "v": 11}, {"k": 2, "ts": 1, "v": 20}]


@pytest.mark.parametrize("catalog", FORMATS)
def test_a_value_out_of_range_leaves_a_delete_in_its_place(local: Session, catalog: str) -> None:
    """The delete is in the sidecar, and came before the compacted row of the same sequence (A4, E3)."""
    out_of_range_and_repaired(local.create_table(f"{catalog}.default.t", **OUT_OF_RANGE))
