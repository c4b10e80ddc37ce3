"""Rows that Spark deletes by position in tables of Trinity: they are deleted for Trinity, too (R1, L3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.foreign import Other
from tests.support.tables import add
from trinity import Column, Session, Table
from trinity.spi import Tier

COLUMNS = [Column("k", "int", nullable=False), Column("w", "bigint"), Column("v", "string")]
KINDS = {
    "deduplicate": {"watermark-key": "w", "bucket": "1"},
    "plain": None,
    "partial-update": {"merge-engine": "partial-update", "fields.w.sequence-group": "v", "bucket": "1"},
}
BY_POSITION = {
    "delta": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    # a delete file then applies to several data files
    "iceberg": "ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = "
    "'merge-on-read', 'write.merge.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition')",
}


def with_other(session: Session, fmt: str, kind: str) -> tuple[Table, Other]:
    """Make a table, and return it with a Spark that deletes its rows by position."""
    properties = KINDS[kind]
    key = [] if properties is None else ["k"]
    table = session.create_table(f"{fmt}.default.t", COLUMNS, primary_key=key, properties=properties or {})
    other = Other(session, table)
    other(BY_POSITION[fmt])
    return table, other


def shown(table: Table, version: int | None = None) -> list[tuple[Any, ...]]:
    return sorted((r["k"], r["v"]) for r in table.to_df(version).toArrow().to_pylist())


def deleted(table: Table, tier: Tier) -> int:
    return sum(f.deletes.rows for f in table.splits().files if f.deletes and f.tier is tier)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["deduplicate", "partial-update"])
@pytest.mark.parametrize("fmt", BY_POSITION)
def test_row_versions_that_others_deleted_are_no_candidates(session: Session, fmt: str, kind: str) -> None:
    table, other = with_other(session, fmt, kind)
    add(table, (1, 1, "a"), (2, 1, "b"), (3, 1, "c"), (4, 1, "d"))
    add(table, (1, 2, "a2"), (5, 2, "e"))
    before = table.splits().version
    other("DELETE FROM {t} WHERE k = 2")
    other("DELETE FROM {t} WHERE k = 1 AND w = 2")  # the row version that it beat is visible again
    other("UPDATE {t} SET v = 'theirs' WHERE k = 3")
    assert deleted(table, Tier.LOG) == 3
    assert shown(table) == [(1, "a"), (3, "theirs"), (4, "d"), (5, "e")]
    assert shown(table, before) == [(1, "a2"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    assert table.log().count() == 4
    add(table, (4, 2, "d2"), (2, 1, "again"))
    table.compact()
    table.compact(full=True)
    assert not any(f.deletes for f in table.splits().files)
    live = [(1, "a"), (2, "again"), (3, "theirs"), (4, "d2"), (5, "e")]
    assert shown(table) == live
    # rows of the base
    before = table.splits().version
    other("DELETE FROM {t} WHERE k IN (1, 5)")
    assert deleted(table, Tier.BASE) == 2
    assert shown(table) == live[1:-1]
    changes = {(r.k, r._change_type) for r in table.changes(before).collect()}
    assert changes == {(1, "delete"), (5, "delete")}
    add(table, (5, 1, "late"), (3, 2, "newer"))  # there is no tombstone that would beat it
    live = [(2, "again"), (3, "newer"), (4, "d2"), (5, "late")]
    assert shown(table) == live
    if kind == "deduplicate":
        table.compact("resolve")
        assert deleted(table, Tier.BASE) == 3
        assert shown(table) == live
        assert sorted((r.k, r.v) for r in other("SELECT k, v FROM {t}")) == live
    table.compact(full=True)
    table.vacuum("0 seconds")
    assert shown(table) == live
    assert sorted((r.k, r.v) for r in other("SELECT k, v FROM {t}")) == live


@pytest.mark.full
@pytest.mark.parametrize("fmt", BY_POSITION)
def test_rows_of_plain_tables_that_others_deleted_stay_deleted(session: Session, fmt: str) -> None:
    table, other = with_other(session, fmt, "plain")
    add(table, (1, 1, "a"), (2, 1, "b"), (3, 1, "c"), (4, 1, "d"))
    other("DELETE FROM {t} WHERE k = 2")
    assert shown(table) == [(1, "a"), (3, "c"), (4, "d")]
    table.update("k = 3", {"v": "'mine'"})  # rewrites the file
    assert shown(table) == [(1, "a"), (3, "mine"), (4, "d")]
    other("DELETE FROM {t} WHERE k = 4")
    assert deleted(table, Tier.LOG) == 1
    before = table.splits().version
    table.compact(full=True)
    assert deleted(table, Tier.LOG) == 0
    other("UPDATE {t} SET v = 'theirs' WHERE k = 1")
    assert shown(table) == [(1, "theirs"), (3, "mine")]
    changes = sorted((r.v, r._change_type) for r in table.changes(before).collect())
    assert changes == [("a", "delete"), ("theirs", "insert")]
    [counts] = session.sql(f"DELETE FROM {table.name}").collect()
    assert counts.num_deleted_rows == 2
    assert shown(table) == []
