"""Other engines rewrite files, and no delete and no UPDATE is undone (L3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import trinity
from tests.support.files_of_others import COLUMNS, ENGINES
from tests.support.foreign import Other, shown
from tests.support.tables import keyed_table
from trinity import Column, Session, Table, TrinityError
from trinity.engine.appending import append
from trinity.spi import STAMP

pytestmark = pytest.mark.inner

KEYED = [engine for engine in ENGINES if engine != "plain"]
CASES = [(fmt, engine, by) for fmt in ("delta", "iceberg") for engine in KEYED for by in (None, "x")]
FORMATS = pytest.mark.parametrize("fmt", ["iceberg", pytest.param("delta", marks=pytest.mark.full)])
BOTH = pytest.mark.parametrize("fmt", ["delta", "iceberg"])


def batch(keys: list[int], w: int = 5, v: str = "") -> pa.Table:
    return pa.table(
        {
            "k": pa.array(keys, pa.int32()),
            "w": pa.array([w] * len(keys), pa.int64()),
            "n": pa.array(keys, pa.int64()),
            "v": [v or f"{k}.{w}" for k in keys],
            "x": [""] * len(keys),
            "gone": pa.array([False] * len(keys)),
        }
    )


def seen_by_duckdb(table: Table) -> list[str]:
    found = duckdb.sql(table.merge_view_sql("duckdb"))
    assert found is not None
    return sorted(map(repr, found.to_arrow_table().to_pylist()))


def table_of_engine(session: Session, fmt: str, engine: str, name: str = "t") -> Table:
    return keyed_table(session, fmt, COLUMNS, name=name, **ENGINES[engine])


@pytest.mark.parametrize(
    ("fmt", "engine"),
    [("iceberg", "tombstone"), pytest.param("delta", "sequence_group", marks=pytest.mark.full)],
    indirect=["fmt"],
)
def test_a_rewrite_undoes_nothing(session: Session, fmt: str, engine: str) -> None:
    table = table_of_engine(session, fmt, engine)
    table.upsert(batch([1, 2, 3, 4]))
    table.delete([2, 4])
    table.update("k = 3", {"x": "'zzz'"})
    table.upsert(batch([4]))
    expected = shown(table)
    Other(session, table).rewrite("x")
    assert shown(table) == expected
    assert {r.k: r.x for r in table.to_df().collect()} == {1: "", 3: "zzz", 4: ""}
    assert seen_by_duckdb(table) == expected


@pytest.mark.full
@pytest.mark.parametrize(("fmt", "engine", "by"), CASES, indirect=["fmt"])
def test_rewrites_undo_nothing(session: Session, fmt: str, engine: str, by: str | None) -> None:
    table, own = table_of_engine(session, fmt, engine), table_of_engine(session, "parquet", engine, "own")
    other = Other(session, table)

    def both(*steps: Callable[[Table], Any]) -> None:
        for step in steps:
            step(table)
            step(own)

    both(
        lambda t: t.upsert(batch([1, 2, 3, 4, 5])),
        lambda t: t.delete([2]),
        lambda t: t.update("k = 3", {"x": "'zzz'"}),
        lambda t: t.upsert(batch([6, 7])),
        lambda t: t.delete([6]),
        lambda t: t.upsert(batch([6])),
        lambda t: t.update("k = 4", {"x": "NULL"}),
    )
    expected = shown(table)
    other.rewrite(by)
    assert shown(table) == expected == shown(own)
    both(lambda t: t.delete([5]), lambda t: t.update("k = 1", {"x": "'more'"}))
    other.rewrite(by)
    table.compact()
    both(lambda t: t.upsert(batch([5], 5)), lambda t: t.delete([7]))
    other.rewrite(by)
    both(lambda t: t.compact(full=True), lambda t: t.upsert(batch([2, 8])), lambda t: t.delete([8]))
    other.rewrite(by)
    assert shown(table) == shown(own)


@FORMATS
@pytest.mark.parametrize("earlier", [False, pytest.param(True, marks=pytest.mark.full)])
def test_an_append_that_a_delete_overtakes(
    session: Session, fmt: str, earlier: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The append counts as later than the delete, even if the delete added the column that records the order."""
    table = table_of_engine(session, fmt, "arrival")
    table.upsert(batch([1, 2, 3]))
    if earlier:
        table.delete([3])
    write_rows = append.write_rows

    def overtaken(*arguments: Any) -> list[bytes]:
        fragments = write_rows(*arguments)
        table.delete([1, 2])
        return fragments

    monkeypatch.setattr(append, "write_rows", overtaken)
    table.upsert(batch([1], v="late"))
    monkeypatch.setattr(append, "write_rows", write_rows)
    live = {1: "late"} if earlier else {1: "late", 3: "3.5"}
    assert {r.k: r.v for r in table.to_df().collect()} == live
    Other(session, table).rewrite()
    assert {r.k: r.v for r in table.to_df().collect()} == live
    table.delete([1])
    Other(session, table).rewrite()
    assert 1 not in {r.k for r in table.to_df().collect()}
    table.compact(full=True)
    assert table.splits().order.late == {}


@pytest.mark.full
@BOTH
def test_rows_that_another_engine_added(session: Session, fmt: str) -> None:
    """Their order is known until another engine rewrites them; a read that then depends on it raises an error."""
    table = table_of_engine(session, fmt, "arrival")
    table.upsert(batch([1, 2, 3]))
    table.delete([1])
    Other(session, table).add(batch([1, 4], v="new"))
    table.update("k = 2", {"x": "'changed'"})
    expected = {1: "new", 2: "2.5", 3: "3.5", 4: "new"}
    assert {r.k: r.v for r in table.to_df().collect()} == expected
    Other(session, table).rewrite()
    assert {r.k: r.v for r in table.to_df(where="k > 1").collect()} == {k: v for k, v in expected.items() if k > 1}
    for failing in (lambda: table.to_df().toArrow(), lambda: table.compact(full=True)):
        with pytest.raises(Exception, match=r"row with key \(k = 1\).*UPDATE, a DELETE or a version that another"):
            failing()
    table.upsert(batch([1], v="anew"))
    assert {r.k: r.v for r in table.to_df().collect()} == expected | {1: "anew"}
    table.compact(full=True)
    Other(session, table).rewrite()
    table.delete([4])
    Other(session, table).rewrite()
    assert {r.k: r.v for r in table.to_df().collect()} == {1: "anew", 2: "2.5", 3: "3.5"}


@pytest.mark.full
def test_rows_that_another_engine_added_outlive_its_snapshots(session: Session, warehouse: Path) -> None:
    """An Iceberg file carries the commit of its rows; only between copies of the rows is the order unknown."""
    table = table_of_engine(session, "iceberg", "arrival")
    table.upsert(batch([1, 2, 3]))
    table.delete([2])
    other = Other(session, table)
    other.rewrite()
    other.add(batch([1, 2], v="new"))
    other.add(batch([4]))
    other("CALL iceberg.system.expire_snapshots(table => 'default.t', older_than => TIMESTAMP '2099-01-01 00:00:00')")
    with trinity.connect(warehouse) as fresh:
        read = fresh.table("iceberg.default.t").to_df
        assert {r.k: r.v for r in read(where="k <> 2").collect()} == {1: "new", 3: "3.5", 4: "4.5"}
        with pytest.raises(Exception, match=r"row with key \(k = 2\).*UPDATE, a DELETE or a version that another"):
            read().collect()


@pytest.mark.full
@BOTH
def test_a_minor_compaction_keeps_the_place_of_added_rows(session: Session, fmt: str) -> None:
    table = table_of_engine(session, fmt, "partial_update")
    table.upsert(batch([*range(40)]))
    table.compact(full=True)
    table.delete([1, 2])
    Other(session, table).add(batch([1], v="new"))
    table.compact()
    assert {f.tier.value for f in table.splits().files} == {"base", "log"}
    Other(session, table).rewrite()
    assert {r.k: r.v for r in table.to_df(where="k < 4").collect()} == {0: "0.5", 1: "new", 3: "3.5"}


@pytest.mark.full
@BOTH
def test_the_column_comes_with_the_first_row_change(session: Session, fmt: str) -> None:
    table = table_of_engine(session, fmt, "tombstone")
    table.upsert(batch([1, 2]))
    table.compact(full=True)
    before = table.splits().version
    assert STAMP not in [c.name for c in table.definition.columns]
    table.delete([9])  # selects nothing
    assert STAMP not in [c.name for c in table.definition.columns]
    table.delete([2])
    assert [c.name for c in table.definition.columns][-1] == STAMP
    assert table.splits().version == before + 1
    assert table.to_df().columns == [c.name for c in COLUMNS]
    assert len(table.to_df(version=before).collect()) == 2
    table.add_column(Column("more", "int"))
    table.upsert(pa.table({"k": pa.array([3], pa.int32()), "w": [1], "more": pa.array([7], pa.int32())}))
    Other(session, table).rewrite()
    assert sorted((r.k, r.more) for r in table.to_df().collect()) == [(1, None), (3, 7)]


def test_nobody_rewrites_parquet(session: Session) -> None:
    table = table_of_engine(session, "parquet", "tombstone")
    table.upsert(batch([1, 2]))
    table.delete([2])
    assert STAMP not in [c.name for c in table.definition.columns]
    with pytest.raises(TrinityError, match=STAMP):
        table.update("k = 1", {STAMP: "1"})
