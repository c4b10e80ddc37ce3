"""Delta's RESTORE by other engines: the state that Trinity keeps beside the rows is that of the restored version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import trinity
from tests.support.adapter import compact
from tests.support.delta_lake import commit_file, restore_by_others
from tests.support.tables import reopened
from trinity import Column, Table, TrinityError
from trinity.storage import ObjectStore
from trinity_delta.checkpoint import write_checkpoint

Rows = list[tuple[str, int, str]]
Restore = Callable[[Table, int], None]


def batch(*given: tuple[str, int, str]) -> pa.Table:
    names = ("id", "ts", "v")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in given])


def shown(table: Table, version: int | None = None) -> Rows:
    return sorted((r["id"], r["ts"], r["v"]) for r in table.to_arrow(version=version).to_pylist())


@pytest.fixture
def seats(warehouse: Path) -> Iterator[Table]:
    """Yield a table: version 1 has a and b, 2 deletes a, and 3, a compaction, has a's tombstone in the sidecar."""
    with trinity.connect(warehouse) as session:
        columns = [Column("id", "string"), Column("ts", "bigint"), Column("v", "string"), Column("gone", "boolean")]
        options = {"watermark-key": "ts", "tombstone-key": "gone"}
        table = session.create_table("delta.default.seats", columns, primary_key=["id"], properties=options)
        table.upsert(batch(("a", 5, "a"), ("b", 5, "b")))
        table.upsert(pa.table({"id": ["a"], "ts": [6], "gone": [True]}))
        fold(table, dead=("a", 6))
        assert shown(table) == [("b", 5, "b")]
        yield table


def fold(table: Table, *, dead: tuple[str, int]) -> None:
    """Compact in full by the adapter alone: write the live rows, and one tombstone to the sidecar."""
    tombstone = {"id": dead[0], "ts": dead[1], "gone": True}
    live = [{"id": key, "ts": ts, "v": v} for key, ts, v in shown(table)]
    compact(table.connector, table.handle, live, [tombstone])()


def checkpoint(table: Table, version: int) -> None:
    """Write a checkpoint with the newest domain metadata of the log, as other engines do."""
    store = ObjectStore(table.location)
    write_checkpoint(store, "t", version, 0, store.names("_delta_log"), {})


def by_number(table: Table, to: int) -> None:
    restore_by_others(table.handle, to)


def by_time(table: Table, to: int) -> None:
    restore_by_others(table.handle, to, timestamp="1999-12-31 in some time zone")


ways = pytest.mark.parametrize("restore", [by_number, by_time])
between = pytest.mark.parametrize("checkpointed", [False, True], ids=["commits", "checkpoint"])


@ways
@between
def test_rows_that_come_back_are_live_again(seats: Table, restore: Restore, checkpointed: bool) -> None:
    restore(seats, 1)
    if checkpointed:
        checkpoint(seats, 4)
    for table in (seats, reopened(seats)):
        assert shown(table) == [("a", 5, "a"), ("b", 5, "b")]
    seats.upsert(batch(("a", 3, "late"), ("c", 1, "c")))
    if checkpointed:  # Trinity's own commit has recorded the restored state
        checkpoint(seats, 5)
    wanted = [("a", 5, "a"), ("b", 5, "b"), ("c", 1, "c")]
    assert shown(seats) == wanted
    assert shown(reopened(seats)) == wanted
    fold(reopened(seats), dead=("nobody", 1))
    assert shown(seats) == wanted
    assert [shown(seats, v) for v in (1, 2, 3, 4)] == [wanted[:2], [("b", 5, "b")], [("b", 5, "b")], wanted[:2]]


@ways
@between
def test_a_tombstone_that_comes_back_holds_again(seats: Table, restore: Restore, checkpointed: bool) -> None:
    seats.connector.metadata.truncate(seats.handle)
    restore(seats, 3)
    if checkpointed:
        checkpoint(seats, 5)
    for number, table in enumerate((reopened(seats), seats)):
        table.upsert(batch(("a", 4, "late"), ("c", number, "c")))
        assert shown(table) == [("b", 5, "b"), ("c", number, "c")]
    if checkpointed:
        checkpoint(seats, 7)
        assert shown(reopened(seats)) == [("b", 5, "b"), ("c", 1, "c")]


def test_to_and_fro(seats: Table) -> None:
    """A RESTORE of a RESTORE, and a RESTORE of a commit that only altered the table."""
    by_number(seats, 1)
    by_number(seats, 3)
    by_number(seats, 4)
    assert shown(reopened(seats)) == [("a", 5, "a"), ("b", 5, "b")]
    by_time(seats, 5)
    checkpoint(seats, 7)
    late = reopened(seats)
    late.upsert(batch(("a", 4, "late")))
    assert shown(late) == [("b", 5, "b")]


def test_transactions_stay_recorded(seats: Table) -> None:
    """A transaction is written once, even if a RESTORE removes its rows, as in Delta itself."""
    assert not seats.upsert(batch(("t", 9, "t")), txn=("app", 7)).skipped
    by_number(seats, 3)
    assert shown(seats) == [("b", 5, "b")]
    assert reopened(seats).upsert(batch(("t", 9, "t")), txn=("app", 7)).skipped
    assert not seats.upsert(batch(("t", 9, "t")), txn=("app", 8)).skipped


@pytest.mark.usefixtures("spark")
def test_a_version_that_the_log_has_lost_is_refused(seats: Table) -> None:
    by_number(seats, 1)
    checkpoint(seats, 4)
    for version in range(4):
        commit_file(seats.handle, version).unlink()
    table = reopened(seats)
    for call in (lambda: shown(table), lambda: table.upsert(batch(("c", 1, "c"))), table.splits):
        with pytest.raises(TrinityError, match=r"the log was cleaned up.*RESTORE TABLE") as refused:
            call()
        assert refused.value.code == "NOT_SUPPORTED"
    assert len(list(Path(seats.location, "_delta_log").glob("*.json"))) == 1


@pytest.mark.full
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("to_a_time", [False, True])
def test_as_spark_restores(seats: Table, to_a_time: bool) -> None:
    spark, name = seats.session.spark, f"delta.`{seats.location}`"
    seats.connector.metadata.truncate(seats.handle)
    [at] = [r.timestamp for r in spark.sql(f"DESCRIBE HISTORY {name}").collect() if r.version == 3]
    to = f"TIMESTAMP AS OF '{at}'" if to_a_time else "VERSION AS OF 3"
    spark.sql(f"RESTORE TABLE {name} TO {to}")
    spark.sql(f"INSERT INTO {name} (id, ts, v) VALUES ('a', 4, 'late'), ('c', 1, 'c')")
    for table in (seats, reopened(seats)):
        assert shown(table) == [("b", 5, "b"), ("c", 1, "c")]
    seats.delete("id = 'c'")
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 1")
    assert shown(reopened(seats)) == [("a", 5, "a"), ("b", 5, "b")]
    seats.upsert(batch(("b", 6, "b2")))
    changes = seats.changes(3).collect()
    assert sorted((r.id, r.v, r._change_type) for r in changes if r._commit_version > 7) == [
        ("a", "a", "insert"),
        ("b", "b", "update_preimage"),
        ("b", "b2", "update_postimage"),
    ]
    seats.compact(full=True)
    assert shown(seats) == [("a", 5, "a"), ("b", 6, "b2")]


def test_a_version_with_numbered_columns_comes_back(seats: Table) -> None:
    """Another engine has restored a version without column mapping, and with it the settings of the mapping."""
    seats.rename_column("v", "w")
    renamed = seats.version
    assert renamed is not None
    seats.upsert(pa.table({"id": ["d"], "ts": [9], "w": ["d"]}))
    restore_by_others(seats.handle, 1)
    assert shown(seats) == [("a", 5, "a"), ("b", 5, "b")]
    seats.restore(renamed)
    seats.add_column(Column("x", "string"))
    for table in (seats, reopened(seats)):
        table.upsert(pa.table({"id": ["c"], "ts": [1], "w": ["c"], "x": ["new"]}))
        found = sorted((r["id"], r["w"], r["x"]) for r in table.to_arrow().to_pylist())
        assert found == [("b", "b", None), ("c", "c", "new")]
