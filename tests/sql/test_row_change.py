"""Row-change processors and the guard, on pages alone: no Spark, no format (S1-S4, M2, M4, M5, M7)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from trinity import TrinityError
from trinity.engine.changing.match_checks import MergeGuard
from trinity.engine.changing.processors import RowChangeProcessor, processor_for
from trinity.spi import RowChangeParadigm

pytestmark = pytest.mark.inner

INSERT, DELETE, UPDATE, UPDATE_INSERT, UPDATE_DELETE = 1, 2, 3, 4, 5
BOTH = tuple(RowChangeParadigm)
COLUMNS = pa.schema([("region", pa.string()), ("id", pa.int64()), ("tags", pa.list_(pa.string()))])
ROW_ID = pa.struct([("file", pa.string()), ("pos", pa.int64())])
MERGE_ROW = pa.struct([*COLUMNS, ("present", pa.bool_()), ("operation", pa.int8()), ("case_number", pa.int32())])


def processor(
    paradigm: RowChangeParadigm, *, layout: tuple[str, ...] = (), key: tuple[str, ...] = ()
) -> RowChangeProcessor:
    return processor_for(paradigm, COLUMNS.names, layout, "row_id", key)


def row(region: str | None, id_: int | None, tags: list[str] | None, operation: int, case: int) -> dict[str, Any]:
    present = None if operation == INSERT else True
    return {
        "region": region, "id": id_, "tags": tags, "present": present, "operation": operation, "case_number": case
    }  # fmt: skip


def page(rows: list[tuple[Any, Any, Any]]) -> pa.RecordBatch:
    """Return a page of the join's rows: (old region, row id, merge row)."""
    regions, row_ids, merge_rows = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.record_batch(
        [pa.array(regions, pa.string()), pa.array(row_ids, ROW_ID), pa.array(merge_rows, MERGE_ROW)],
        names=["old_region", "row_id", "merge_row"],
    )


def place(pos: int) -> dict[str, Any]:
    return {"file": "f", "pos": pos}


def changes(of: RowChangeProcessor, rows: list[tuple[Any, Any, Any]]) -> list[tuple[Any, ...]]:
    found = of.transform_page(page(rows))
    assert found.schema.names == ["region", "id", "tags", "operation", "case_number", "row_id", "insert_from_update"]
    assert [f.type for f in found.schema][3:] == [pa.int8(), pa.int32(), ROW_ID, pa.int8()]
    return [tuple(r.values()) for r in found.to_pylist()]


def test_s2_an_update_is_deleted_and_inserted() -> None:
    found = changes(
        processor(RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW, layout=("region",)),
        [("eu", place(1), row("us", 7, ["a"], UPDATE, 2))],
    )
    assert found == [
        ("eu", None, None, UPDATE_DELETE, 2, place(1), 0),  # the layout column with its old value, no other data (S3)
        ("us", 7, ["a"], UPDATE_INSERT, 2, place(1), 1),  # the old row id is kept with it (S3)
    ]


def test_s2_an_update_stays_one_row() -> None:
    found = changes(
        processor(RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS, layout=("region",)),
        [("eu", place(1), row("us", 7, ["a"], UPDATE, 2))],
    )
    assert found == [("us", 7, ["a"], UPDATE, 2, place(1), 0)]


def test_m7_an_update_that_moves_a_key_is_no_change_of_one_row() -> None:
    found = changes(
        processor(RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS, layout=("region",), key=("region",)),
        [("eu", place(1), row("us", 7, None, UPDATE, 0)), ("eu", place(2), row("eu", 8, None, UPDATE, 0))],
    )
    assert found == [
        ("eu", None, None, DELETE, 0, place(1), 0),
        ("us", 7, None, INSERT, 0, None, 1),
        ("eu", 8, None, UPDATE, 0, place(2), 0),
    ]


@pytest.mark.parametrize("paradigm", BOTH)
def test_inserts_and_deletes_are_the_same_in_both(paradigm: RowChangeParadigm) -> None:
    found = changes(
        processor(paradigm, layout=("region",)),
        [("eu", place(3), row(None, None, None, DELETE, 0)), (None, None, row("us", 9, [], INSERT, 1))],
    )
    assert found == [("eu", None, None, DELETE, 0, place(3), 0), ("us", 9, [], INSERT, 1, None, 0)]


@pytest.mark.parametrize("paradigm", BOTH)
def test_s3_rows_that_no_case_selected_are_gone(paradigm: RowChangeParadigm) -> None:
    assert changes(processor(paradigm, layout=("region",)), [("eu", place(1), None), (None, None, None)]) == []
    assert changes(processor(paradigm, layout=("region",)), []) == []  # S4: an empty page does nothing


# -- the guard ----------------------------------------------------------------------------------------------


def watched(of: RowChangeProcessor, rows: list[tuple[Any, Any, Any]], *, keyed: bool = False) -> dict[str, int]:
    guard = MergeGuard("t", ("file", "pos"), (1,) if keyed else (), ("id",) if keyed else ())
    watch = guard.watch()
    for one in rows:  # several pages
        watch.take(of.transform_page(page([one])), len(COLUMNS))
    watch.finish()
    return watch.counts()


@pytest.mark.parametrize("paradigm", BOTH)
def test_m5_an_update_counts_once(paradigm: RowChangeParadigm) -> None:
    found = watched(
        processor(paradigm, layout=("region",), key=("region",)),
        [
            ("eu", place(1), row("us", 1, None, UPDATE, 0)),  # moves
            ("eu", place(2), row("eu", 2, None, UPDATE, 0)),
            ("eu", place(3), row(None, None, None, DELETE, 1)),
            (None, None, row("us", 4, None, INSERT, 2)),
            ("eu", place(5), None),
        ],
    )
    assert found == {"updated": 2, "deleted": 1, "inserted": 1}


@pytest.mark.parametrize("paradigm", BOTH)
@pytest.mark.parametrize("second", [UPDATE, DELETE])
def test_m2_one_target_row_twice(paradigm: RowChangeParadigm, second: int) -> None:
    """Different cases count, too; Trino's plan does not notice them."""
    rows = [
        ("eu", place(1), row("eu", 1, None, UPDATE, 0)),
        ("eu", place(1), row("eu" if second == UPDATE else None, 1, None, second, 1)),
    ]
    with pytest.raises(TrinityError) as caught:
        watched(processor(paradigm, layout=("region",)), rows)
    assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    assert "pos = 1" in caught.value.message


@pytest.mark.parametrize("paradigm", BOTH)
def test_m2_rows_that_no_case_selects_are_no_match(paradigm: RowChangeParadigm) -> None:
    """Trino's plan fails here."""
    rows: list[tuple[Any, Any, Any]] = [
        ("eu", place(1), None),
        ("eu", place(1), None),
        ("eu", place(1), row(None, None, None, DELETE, 0)),
    ]
    assert watched(processor(paradigm, layout=("region",)), rows)["deleted"] == 1


@pytest.mark.parametrize("paradigm", BOTH)
def test_m3_m4_equal_inserts(paradigm: RowChangeParadigm) -> None:
    rows = [(None, None, row("us", 4, None, INSERT, 2))] * 2
    assert watched(processor(paradigm, layout=("region",)), rows)["inserted"] == 2
    with pytest.raises(TrinityError) as caught:
        watched(processor(paradigm, layout=("region",)), rows, keyed=True)
    assert caught.value.code == "CONSTRAINT_VIOLATION"
    assert "id = 4" in caught.value.message
