"""``trinity.apply_changes``: events into rows (SCD type 1) or histories (SCD type 2), in whatever order they come."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import trinity
from tests.support.applied import Target, arrow, delete, upsert
from tests.support.edges import AFTER_9999
from tests.support.events import Event
from tests.support.tables import arrow_rows
from trinity import CommitResult, Session, TrinityError


def versions(session: Session, fmt: str, **words: Any) -> Target:
    """Make a target of SCD type 2 with the columns id, name, city and the interval, without those of the sequence."""
    words = {"except_columns": ["op", "n", "m"], **words}
    return Target(session, f"{fmt}.default.versions", stored_as_scd_type=2, **words)


# -- SCD type 2 -----------------------------------------------------------------------------------------------


def test_each_event_ends_the_version_before(applying: Session, fmt: str) -> None:
    target = versions(applying, fmt)
    target.apply(upsert(1, 10, "a"), upsert(1, 20, "b"), delete(1, 30), upsert(2, 15, "x"))
    target.apply(upsert(1, 40, "c"))
    expected = [(1, "a", 10, 20), (1, "b", 20, 30), (1, "c", 40, None), (2, "x", 15, None)]
    assert arrow_rows(target.table, "id", "name", "__START_AT", "__END_AT") == expected


@pytest.mark.parametrize(
    "came",
    [
        [upsert(1, 10, "a"), upsert(1, 30, "a"), upsert(1, 20, "b")],
        [upsert(1, 30, "a"), upsert(1, 20, "b"), upsert(1, 10, "a")],
        [upsert(1, 20, "b"), upsert(1, 30, "a"), upsert(1, 10, "a"), upsert(1, 20, "b")],
    ],
    ids=["late between equal ones", "downwards", "repeated"],
)
def test_late_events_take_their_place(applying: Session, came: list[Event]) -> None:
    """An event that changed nothing counts once a late event is ordered before it."""
    target = versions(applying, "parquet")
    for event in came:
        target.apply(event)
    expected = [("a", 10, 20), ("a", 30, None), ("b", 20, 30)]
    assert arrow_rows(target.table, "name", "__START_AT", "__END_AT") == expected


def test_a_delete_that_came_first_ends_what_comes_late(applying: Session, tiered_fmt: str) -> None:
    """A compaction keeps the delete. Events that no version needs are written once."""
    target = versions(applying, tiered_fmt)
    target.apply(delete(1, 20), delete(1, 40))
    assert arrow_rows(target.table) == []
    target.table.compact(full=True)
    late = upsert(1, 30, "b"), upsert(1, 10, "a")
    target.apply(*late)
    assert arrow_rows(target.table, "name", "__START_AT", "__END_AT") == [("a", 10, 20), ("b", 30, 40)]
    assert target.apply(*late, delete(1, 40)).rows == 0


def test_of_one_sequence_the_event_that_came_last_counts(applying: Session) -> None:
    """It replaces the earlier event of its sequence, be that a version, the end of one, or hidden (K4)."""
    target = versions(applying, "parquet")
    target.apply(upsert(1, 10, "a"), upsert(1, 20, "b"), upsert(1, 30, "b"), delete(1, 40))
    target.apply(delete(1, 20), upsert(1, 20, "x"), delete(1, 20), upsert(1, 40, "d"))
    assert arrow_rows(target.table, "name", "__START_AT", "__END_AT") == [("a", 10, 20), ("b", 30, 40), ("d", 40, None)]
    assert target.apply(delete(1, 20)).rows == 0
    target.apply(delete(1, 10), upsert(1, 20, "e"))
    expected = [("b", 30, 40), ("d", 40, None), ("e", 20, 30)]
    assert arrow_rows(target.table, "name", "__START_AT", "__END_AT") == expected


def test_what_is_not_tracked_shows_its_newest_value(applying: Session, fmt: str) -> None:
    """A late event may split the version; then each part shows the newest values within it."""
    words = {"except_columns": ["op", "m"], "track_history_except_column_list": ["city"]}
    target = versions(applying, fmt, **words)
    target.apply(upsert(1, 10, "a", "x"), upsert(1, 20, "a", "y"), upsert(1, 40, "a", "z"))
    assert arrow_rows(target.table, "city", "n", "__START_AT", "__END_AT") == [("z", 40, 10, None)]
    target.table.compact(full=True)
    target.apply(upsert(1, 30, "b", "late"))
    expected = [("late", 30, 30, 40), ("y", 20, 10, 30), ("z", 40, 40, None)]
    assert arrow_rows(target.table, "city", "n", "__START_AT", "__END_AT") == expected


def test_a_forgotten_event_leaves_the_versions_as_they_are(applying: Session) -> None:
    """Under ``tombstone.retention`` only events later than a forgotten one may end the wrong version."""
    words = {"except_columns": ["op", "m"], "track_history_except_column_list": ["city"]}
    target = versions(applying, "parquet", **words)
    target.table.set_properties({"tombstone.retention": "0 seconds"})
    target.apply(upsert(1, 10, "a", "x"), upsert(1, 20, "a", "y"), delete(1, 30))
    target.table.compact(full=True)
    target.apply(upsert(2, 1, "b"))
    target.table.compact(full=True)  # their retention counts from the previous compaction
    assert {*target.table.log().to_arrow()["_tier"].to_pylist()} == {"base"}
    target.apply(upsert(1, 40, "c"))
    expected = [("a", "y", 10, 30), ("b", None, 1, None), ("c", None, 40, None)]
    assert arrow_rows(target.table, "name", "city", "__START_AT", "__END_AT") == expected


def test_a_version_that_was_deleted_by_hand_stays_away(applying: Session) -> None:
    target = versions(applying, "parquet")
    target.apply(upsert(1, 10, "a"), upsert(1, 20, "b"))
    target.table.delete("name = 'a'")
    target.apply(upsert(1, 30, "c"))
    assert arrow_rows(target.table, "name", "__START_AT", "__END_AT") == [("b", 20, 30), ("c", 30, None)]


def test_two_appliers_at_once_have_an_order(applying: Session, fmt: str) -> None:
    """An attempt that has lost runs again on top of the other's versions (L7)."""
    target = versions(applying, fmt)
    target.apply(upsert(1, 1, "first"))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda at: target.apply(upsert(1, at, str(at))), [10, 20, 30]))
    starts = [(row[0], row[1]) for row in arrow_rows(target.table, "__START_AT", "__END_AT")]
    assert starts == [(1, 10), (10, 20), (20, 30), (30, None)]


def test_a_key_of_text_and_a_sequence_of_times(applying: Session, fmt: str) -> None:
    at = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)]
    given = pa.table(
        {"k": pa.array(["b", "a", "b"]), "at": at, "v": [{"x": 1}, {"x": 2}, {"x": 3}], "w": [[1], [2], None]}
    )
    made = trinity.apply_changes(
        given, f"{fmt}.default.t", ["k"], "at", stored_as_scd_type=2, except_columns=["at"], session=applying
    )
    assert isinstance(made, CommitResult)
    found = applying.table(f"{fmt}.default.t").to_arrow(where="__END_AT IS NULL", columns=["k", "v", "w"])
    assert sorted(map(tuple, (row.values() for row in found.to_pylist())), key=str) == [
        ("a", {"x": 2}, [2]), ("b", {"x": 3}, None)
    ]  # fmt: skip


def test_keys_of_which_spark_stores_more_than_python_has(applying: Session, tiered_fmt: str) -> None:
    """They are compared with the bounds of files as they are stored: a CHAR padded, a day after 9999 not at all."""
    name = f"{tiered_fmt}.default.t"
    columns = "k CHAR(3), d DATE, n INT, __START_AT INT, __END_AT INT, PRIMARY KEY (k, d, n)"
    applying.sql(f"CREATE TABLE {name} ({columns}) TBLPROPERTIES ('tombstone.keep-values' = 'true')")
    for n, key in enumerate(("a", "a ", "a  ")):
        event = pa.table({"k": [key], "d": pa.array([AFTER_9999], pa.date32()), "n": pa.array([n], pa.int32())})
        done = trinity.apply_changes(event, name, ["k", "d"], "n", stored_as_scd_type=2, session=applying)
        assert isinstance(done, CommitResult)
        assert done.rows == 1 + (n > 0)


# -- SCD type 1 -----------------------------------------------------------------------------------------------


@pytest.mark.tiered
def test_the_row_is_that_of_the_largest_sequence(session: Session, fmt: str) -> None:
    target = Target(session, f"{fmt}.default.t", except_columns=["op", "m"])
    target.apply(upsert(1, 20, "b"), upsert(2, 10, "x"), delete(2, 30))
    target.apply(upsert(1, 10, "late"), upsert(2, 20, "late"))
    assert arrow_rows(target.table, "id", "name", "n") == [(1, "b", 20)]


@pytest.mark.full
def test_null_leaves_a_value_as_it_was(session: Session, fmt: str) -> None:
    target = Target(session, f"{fmt}.default.t", except_columns=["op", "m"], ignore_null_updates=True)
    target.apply(upsert(1, 30, None, "c"), upsert(2, 10, "x", "y"), delete(2, 20))
    target.apply(upsert(1, 20, "b", None), upsert(2, 30, None, "z"))
    assert arrow_rows(target.table, "id", "name", "city", "n") == [(1, "b", "c", 30), (2, None, "z", 30)]


@pytest.mark.full
def test_a_tombstone_column_is_filled(session: Session) -> None:
    """The target has a tombstone column, and was made for another purpose, too."""
    session.sql(
        "CREATE TABLE t (id INT, n BIGINT, name STRING, gone BOOLEAN, PRIMARY KEY (id)) "
        "TBLPROPERTIES ('watermark-key' = 'n', 'tombstone-key' = 'gone')"
    )
    words: dict[str, Any] = {"apply_as_deletes": F.col("op") == "D", "column_list": ["id", "n", "name"]}
    trinity.apply_changes(arrow([upsert(1, 1, "a"), delete(2, 1)]), session.table("t"), ["id"], "n", **words)
    found = sorted((r.id, r.gone) for r in session.table("t").log().collect())
    assert found == [(1, None), (2, True)]


def test_events_of_arrow_without_deletes_need_no_spark(session: Session) -> None:
    given = pa.table({"id": [1, 1], "n": [2, 1], "v": ["b", "a"]})
    made = trinity.apply_changes(given, "t", ["id"], "n", session=session, txn=("app", 1))
    assert isinstance(made, CommitResult)
    assert made.rows == 2
    again = trinity.apply_changes(given, session.table("t"), ["id"], "n", txn=("app", 1))
    assert isinstance(again, CommitResult)
    assert again.skipped
    with pytest.raises(TrinityError, match="'n'") as refused:
        trinity.apply_changes(given.set_column(1, "n", pa.array([None, 1])), session.table("t"), ["id"], "n")
    assert refused.value.code == "CONSTRAINT_VIOLATION"
