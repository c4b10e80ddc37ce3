"""SQL UPDATE, DELETE and MERGE of tables that fold column by column (P1, E1), through the public API."""

from __future__ import annotations

import pytest

from tests.support.merge_engines import make
from tests.support.tables import put_dicts, spark_rows
from trinity import Session, Table, TrinityError


@pytest.fixture
def grouped(session: Session, tiered_fmt: str) -> Table:
    """Make a table with k, sequence groups (g; a, n = sum) and (h1, h2; b), and c NOT NULL and d without a group."""
    table = make(
        session,
        tiered_fmt,
        "k INT, g INT, a STRING, n INT, h1 INT, h2 INT, b STRING, c STRING NOT NULL, d STRING",
        **{
            "merge-engine": "partial-update",
            "fields.g.sequence-group": "a,n",
            "fields.n.aggregate-function": "sum",
            "fields.h1,h2.sequence-group": "b",
        },
    )
    full = {"g": 5, "a": "a", "n": 1, "h1": 1, "h2": 1, "b": "b", "c": "c", "d": "d"}
    put_dicts(table, {"k": 1, **full}, {"k": 2, **full}, {"k": 3, "c": "only c"})
    return table


def test_update_stores_the_changed_columns_alone(grouped: Table) -> None:
    grouped.update("k = 1", {"d": "NULL", "a": "'new'"})
    [stored] = grouped.log().where("d IS NULL AND k = 1").collect()
    assert (stored.g, stored.a, stored.n, stored.h1, stored.b) == (5, "new", None, None, None)
    assert spark_rows(grouped)[0] == (1, 5, "new", 1, 1, 1, "b", "c", None)
    put_dicts(grouped, {"k": 1, "g": 4, "a": "late", "n": 10, "c": "c2"})  # the group's sequence moved with the update
    assert spark_rows(grouped)[0] == (1, 5, "new", 11, 1, 1, "b", "c2", None)
    grouped.compact(full=True)
    assert spark_rows(grouped)[0] == (1, 5, "new", 11, 1, 1, "b", "c2", None)


@pytest.mark.full
def test_update_is_refused_where_it_would_have_no_effect(grouped: Table) -> None:
    before = spark_rows(grouped)
    changes = {
        "SET n = 3": "NOT_SUPPORTED",  # M11: a function other than the default
        "SET a = 'x' WHERE k = 3": "INVALID_ARGUMENTS",  # M11: the group was never written
        "SET b = 'x', h2 = 0 WHERE k = 1": "INVALID_ARGUMENTS",  # M9: would lose
        "SET c = NULL": "CONSTRAINT_VIOLATION",
    }
    for change, code in changes.items():
        with pytest.raises(TrinityError) as refused:
            grouped.session.sql(f"UPDATE {grouped.name} {change}")
        assert refused.value.code == code, change
    assert spark_rows(grouped) == before
    grouped.update("k = 3", {"a": "'x'", "g": "1"})
    assert spark_rows(grouped)[2][:3] == (3, 1, "x")


def test_delete_is_a_hard_delete(grouped: Table) -> None:
    assert grouped.delete([1, 2]).rows == 2
    assert [r[0] for r in spark_rows(grouped)] == [3]
    put_dicts(grouped, {"k": 1, "g": 1, "a": "blank", "n": 7, "c": "c"})  # an older sequence, and no row that beats it
    assert spark_rows(grouped)[0] == (1, 1, "blank", 7, None, None, None, "c", None)
    grouped.compact(full=True)
    assert spark_rows(grouped)[0] == (1, 1, "blank", 7, None, None, None, "c", None)


@pytest.mark.full
def test_merge_updates_inserts_deletes_and_moves_keys(grouped: Table) -> None:
    source = grouped.session.spark.createDataFrame([(1, 6, "m"), (2, 0, "x"), (9, 9, "i")], "k int, g int, a string")
    counts = (
        grouped.merge(source, "t.k = s.k")
        .when_matched_delete("s.k = 2")
        .when_matched_update({"a": "s.a", "g": "s.g"})
        .when_not_matched_insert({"k": "s.k", "a": "s.a", "g": "s.g", "n": "4", "c": "'new'"})
        .execute()
    )
    assert (counts.updated, counts.deleted, counts.inserted) == (1, 1, 1)
    moved = grouped.update("k IN (1, 9)", {"k": "10 - k"})  # both keys are vacated and filled
    assert moved.updated == 2
    assert spark_rows(grouped) == [
        (1, 9, "i", 4, None, None, None, "new", None),
        (3, None, None, None, None, None, None, "only c", None),
        (9, 6, "m", 1, 1, 1, "b", "c", "d"),
    ]
