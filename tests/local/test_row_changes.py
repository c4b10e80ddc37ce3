"""DELETE, UPDATE and MERGE in this process, on every format: rows, counts, errors; no Spark."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.tables import ordered_rows
from trinity import Column, Session, Table, TrinityError

COLUMNS = [Column("k", "int"), Column("part", "string"), Column("v", "string"), Column("n", "smallint")]
ROWS = pa.table(
    {
        "k": pa.array(range(8), pa.int32()),
        "part": ["a", "a", "a", "a", "b", "b", "b", "b"],
        "v": ["v0", "v1", None, "v3", "v4", "v5", "v6", "v7"],
        "n": pa.array([0, 1, 2, 3, 4, 5, 6, None], pa.int16()),
    }
)


@pytest.fixture(params=["keyed", "plain", "changed columns"])
def table(request: pytest.FixtureRequest, local: Session, local_fmt: str) -> Table:
    """Make a table of the rows above, in two files."""
    kind = str(request.param)
    keyed = kind != "plain"
    made = local.create_table(
        f"{local_fmt}.default.t",
        COLUMNS,
        primary_key=["k"] if keyed else [],
        properties={"row-change-paradigm": "change_only_updated_columns"} if kind == "changed columns" else {},
    )
    for rows in (ROWS.slice(0, 5), ROWS.slice(5)):
        (made.upsert if keyed else made.append)(rows)
    return made


def read(table: Table, *names: str) -> dict[int, Any]:
    """Return key -> the values of some columns."""
    rows = table.to_arrow(columns=["k", *names]).to_pylist()
    found = {row["k"]: tuple(row[name] for name in names) for row in rows}
    assert len(found) == len(rows)
    return found


def test_a_predicate_deletes_rows(table: Table) -> None:
    done = table.delete("n >= 3 AND v <> 'v4' OR v IS NULL")
    assert done.rows == 4
    assert read(table, "v") == {0: ("v0",), 1: ("v1",), 4: ("v4",), 7: ("v7",)}


def test_nothing_deleted_is_no_commit(table: Table) -> None:
    before = table.splits().version
    assert table.delete("k > 100").rows == 0
    assert table.splits().version == before


def test_all_rows_go_without_a_predicate(table: Table) -> None:
    assert table.delete().rows == 8
    assert read(table) == {}


def test_an_update_sets_literals_and_columns_of_the_old_row(table: Table) -> None:
    counts = table.update("k IN (1, 5)", {"v": "part", "n": "k"})
    assert (counts.updated, counts.deleted, counts.inserted) == (2, 0, 0)
    found = read(table, "v", "n")
    assert (found[1], found[5], found[0]) == (("a", 1), ("b", 5), ("v0", 0))


def test_a_merge_takes_the_first_clause_that_holds(table: Table) -> None:
    source = pa.table({"id": pa.array([1, 2, 3, 9, 10], pa.int64()), "v": ["x", "y", "z", "new", None]})
    merge = table.merge(source, "t.k = s.id").when_matched_delete("s.v = 'y'").when_matched_update({"v": "s.v"})
    merge = merge.when_not_matched_insert({"k": "s.id", "v": "s.v", "part": "'c'"}, condition="s.v IS NOT NULL")
    merge = merge.when_not_matched_by_source_update({"n": "-1"}, condition="t.part = 'b'")
    counts = merge.execute()
    assert (counts.updated, counts.deleted, counts.inserted) == (6, 1, 1)
    found = read(table, "v", "part", "n")
    assert 2 not in found
    assert 10 not in found
    assert found[1] == ("x", "a", 1)
    assert found[9] == ("new", "c", None)
    assert [found[k][2] for k in (4, 5, 6, 7)] == [-1] * 4
    assert found[0] == ("v0", "a", 0)


def test_on_may_say_more_than_equality(table: Table) -> None:
    source = pa.table({"k": pa.array([1, 6], pa.int32()), "v": ["x", "y"]})
    merge = table.merge(source, "t.k = s.k AND t.part = 'a'").when_matched_update({"v": "s.v"})
    assert merge.execute().updated == 1
    assert read(table, "v")[6] == ("v6",)


def test_a_row_that_matches_twice_is_refused(table: Table) -> None:
    source = pa.table({"k": pa.array([1, 1], pa.int32()), "v": ["x", "y"]})
    merge = table.merge(source, "t.k = s.k")
    check_refused(table, "MERGE_TARGET_ROW_MULTIPLE_MATCHES", merge.when_matched_update({"v": "s.v"}).execute)
    assert merge.when_matched_delete().execute().deleted == 1


def check_refused(table: Table, code: str, statement: Any) -> None:
    """Check that a statement fails with a code, and leaves the table unchanged."""
    before = read(table, "part", "v", "n")
    with pytest.raises(TrinityError) as raised:
        statement()
    assert raised.value.code == code
    assert read(table, "part", "v", "n") == before


def test_values_that_do_not_fit_are_refused(table: Table) -> None:
    check_refused(table, "NUMERIC_VALUE_OUT_OF_RANGE", lambda: table.update("k = 1", {"n": "40000"}))
    check_refused(table, "TYPE_MISMATCH", lambda: table.update("k = 1", {"n": "'one'"}))
    check_refused(table, "COLUMN_NOT_FOUND", lambda: table.update("k = 1", {"m": "1"}))
    check_refused(table, "COLUMN_NOT_FOUND", lambda: table.delete("m = 1"))
    check_refused(table, "TYPE_MISMATCH", lambda: table.delete("k"))


def test_a_retry_with_its_txn_does_nothing(table: Table) -> None:
    assert table.delete("k = 1", txn=("job", 1)).rows == 1
    assert table.delete("k = 2", txn=("job", 1)).skipped
    assert 2 in read(table)


def test_statements_that_race_all_take_effect(table: Table) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda k: table.delete(f"k = {k}").rows, range(4)))
    assert done == [1, 1, 1, 1]
    assert sorted(read(table)) == [4, 5, 6, 7]


@pytest.fixture
def keyed(local: Session, local_fmt: str) -> Table:
    """Make a keyed table with a watermark and a NOT NULL column."""
    made = local.create_table(
        f"{local_fmt}.default.t",
        [Column("k", "int"), Column("ts", "bigint"), Column("part", "string"), Column("v", "string", nullable=False)],
        primary_key=["k"],
        properties={"watermark-key": "ts"},
        checks={} if local_fmt == "memory" else {"short": "v <> 'long'"},
    )
    made.upsert(pa.table({"k": [1, 2, 3], "ts": [10, 10, 10], "part": ["a", "b", "c"], "v": ["x", "y", "z"]}))
    return made


def fails(table: Table, statement: Any) -> str:
    """Return the code of a statement's error; check that the table is unchanged."""
    before = ordered_rows(table)
    with pytest.raises(TrinityError) as raised:
        statement()
    assert ordered_rows(table) == before
    return raised.value.code


def test_keys_are_deleted(keyed: Table) -> None:
    assert keyed.delete([1, 7]).rows == 1
    assert keyed.delete([{"k": 2}]).rows == 1
    assert keyed.delete(pa.table({"K": pa.array([3, 3], pa.int64())})).rows == 1
    assert ordered_rows(keyed) == []
    keyed.upsert(pa.table({"k": [1], "ts": [9], "part": ["late"], "v": ["late"]}))
    assert ordered_rows(keyed) == []


def test_a_moved_row_leaves_its_key(keyed: Table) -> None:
    assert keyed.update("k = 1", {"k": "11"}).updated == 1
    assert [row[0] for row in ordered_rows(keyed)] == [2, 3, 11]
    swap = pa.table({"a": [2, 3], "b": [3, 2]})
    assert keyed.merge(swap, "t.k = s.a").when_matched_update({"k": "s.b"}).execute().updated == 2
    assert [(row[0], row[2]) for row in ordered_rows(keyed)] == [(2, "c"), (3, "b"), (11, "a")]


def test_a_key_that_is_live_is_refused(keyed: Table) -> None:
    assert fails(keyed, lambda: keyed.update("k = 1", {"k": "2"})) == "CONSTRAINT_VIOLATION"
    assert fails(keyed, lambda: keyed.update("k > 1", {"k": "9"})) == "CONSTRAINT_VIOLATION"
    source = pa.table({"p": ["q"], "k": [3]})
    insert = keyed.merge(source, "t.part = s.p").when_not_matched_insert({"k": "s.k", "v": "'n'"})
    assert fails(keyed, insert.execute) == "CONSTRAINT_VIOLATION"


def test_a_key_is_left_and_filled_by_two_clauses(keyed: Table) -> None:
    source = pa.table({"p": ["a", "q"], "k": [11, 1]})
    merge = keyed.merge(source, "t.part = s.p").when_matched_update({"k": "s.k"})
    merge = merge.when_not_matched_insert({"k": "s.k", "ts": "11L", "v": "'n'"})
    assert merge.execute().affected == 2
    assert ordered_rows(keyed)[0] == (1, 11, None, "n")
    twice = keyed.merge(pa.table({"p": ["b", "q"], "k": [20, 20]}), "t.part = s.p").when_matched_update({"k": "s.k"})
    insert = twice.when_not_matched_insert({"k": "s.k", "v": "'n'"})
    assert fails(keyed, insert.execute) == "CONSTRAINT_VIOLATION"


def test_a_key_that_is_dead_may_be_inserted(keyed: Table) -> None:
    keyed.delete([3])
    source = pa.table({"p": ["q"], "k": [3]})
    insert = keyed.merge(source, "t.part = s.p").when_not_matched_insert({"k": "s.k", "ts": "10L", "v": "'n'"})
    assert insert.execute().inserted == 1
    assert (3, 10, None, "n") in ordered_rows(keyed)


def test_a_version_that_would_lose_is_refused(keyed: Table) -> None:
    assert fails(keyed, lambda: keyed.update("k = 1", {"ts": "9"})) == "INVALID_ARGUMENTS"
    keyed.delete([3])
    assert fails(keyed, lambda: keyed.update("k = 1", {"k": "3", "ts": "9"})) == "INVALID_ARGUMENTS"
    source = pa.table({"k": [1], "ts": [9], "part": ["late"], "v": ["late"]})
    late = keyed.merge(source, "t.k = s.k").when_matched_update_all().when_not_matched_insert_all()
    before = ordered_rows(keyed)
    assert late.execute().updated == 1
    assert ordered_rows(keyed) == before


def test_constraints_hold_for_rows_that_a_clause_selects(keyed: Table, local_fmt: str) -> None:
    if local_fmt != "memory":
        assert fails(keyed, lambda: keyed.update("k = 1", {"v": "'long'"})) == "CONSTRAINT_VIOLATION"
    assert fails(keyed, lambda: keyed.update("k = 1", {"v": "NULL"})) == "CONSTRAINT_VIOLATION"
    assert keyed.update("k = 1 AND v = 'w'", {"v": "NULL"}).updated == 0


def test_whole_partitions_go_unread(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.p", COLUMNS, partition_by=["part"])
    table.append(ROWS)
    for file in table.splits().files:
        if local_fmt != "memory" and file.partition["part"] == "a":
            Path(file.path).write_bytes(b"")
    assert table.delete("part = 'a'").rows == 4
    assert sorted(read(table)) == [4, 5, 6, 7]


def test_what_only_spark_evaluates_is_named(keyed: Table) -> None:
    with pytest.raises(TrinityError, match="needs Spark") as raised:
        keyed.delete("soundex(v) = 'x'")
    assert raised.value.code == "NOT_SUPPORTED"


def test_no_statement_loads_pyspark(tmp_path: Path) -> None:
    code = f"""
import sys, pyarrow as pa, trinity
sys.modules["pyspark"] = None
session = trinity.connect({str(tmp_path)!r})
for catalog in ("parquet", "delta", "iceberg"):
    columns = [trinity.Column("k", "int"), trinity.Column("v", "int")]
    table = session.create_table(catalog + ".default.t", columns, primary_key=["k"])
    table.upsert(pa.table({{"k": [1, 2, 3], "v": [1, 2, 3]}}))
    table.delete([1])
    table.delete("v = 2")
    table.update("k = 3", {{"v": "4"}})
    source = pa.table({{"k": [3, 5], "v": [7, 8]}})
    table.merge(source, "t.k = s.k").when_matched_update_all().when_not_matched_insert_all().execute()
    print(sorted(table.to_arrow().to_pydict()["v"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split("\n")[:3] == ["[7, 8]"] * 3


@pytest.mark.parametrize(
    ("ts", "found"), [(3, None), (None, None), (5, "new"), (7, "new")], ids=["late", "NULL", "equal", "fresh"]
)
@pytest.mark.parametrize("moves", [True, False], ids=["moved", "deleted"])
def test_m7_a_row_that_leaves_its_key_stays_away_though_a_late_one_comes(
    local: Session, local_fmt: str, moves: bool, ts: int | None, found: str | None
) -> None:
    """A late insert loses; it does not restore a row that the statement has moved to another key or deleted."""
    columns = [Column("id", "int"), Column("ts", "bigint"), Column("v", "string")]
    table = local.create_table(
        f"{local_fmt}.default.t", columns, primary_key=["id"], properties={"watermark-key": "ts"}
    )
    table.upsert({"id": 1, "ts": 5, "v": "old"})
    source = [{"k": 1, "id": 2, "ts": 6, "v": "moved"}, {"k": 9, "id": 1, "ts": ts, "v": "new"}]
    merge = table.merge(source, "t.id = s.k")
    values = {"id": "s.id", "ts": "s.ts", "v": "s.v"}
    merge = merge.when_matched_update(values) if moves else merge.when_matched_delete()
    merge.when_not_matched_insert(values).execute()
    expected = {**({2: "moved"} if moves else {}), **({1: found} if found else {})}
    for _ in range(2):
        assert {row["id"]: row["v"] for row in table.to_arrow().to_pylist()} == expected
        table.compact(full=True)


def test_k1_a_source_row_without_a_key_matches_no_row(local: Session, local_fmt: str) -> None:
    columns = [Column("a", "int", nullable=False), Column("b", "int", nullable=False), Column("v", "string")]
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["a", "b"])
    table.upsert([{"a": 1, "b": 1, "v": "x"}, {"a": 2, "b": 2, "v": "y"}])
    merge = f"""MERGE INTO {table.name} t USING (VALUES (1, 1), (2, CAST(NULL AS INT))) s(a, b)
                ON t.a = s.a AND t.b = s.b WHEN MATCHED THEN DELETE"""
    assert local.sql(merge).first().num_deleted_rows == 1
    assert [row["v"] for row in table.to_arrow(where="a IN (1, 2, NULL) AND b IN (2, NULL)").to_pylist()] == ["y"]


def test_m9_a_late_update_by_merge_leaves_the_row_as_it_was(local: Session, local_fmt: str) -> None:
    columns = [Column("id", "int"), Column("ts", "bigint"), Column("v", "string")]
    table = local.create_table(
        f"{local_fmt}.default.t", columns, primary_key=["id"], properties={"watermark-key": "ts"}
    )
    table.upsert([{"id": 1, "ts": 5, "v": "old"}, {"id": 2, "ts": 5, "v": "old"}])
    source = [{"id": 1, "ts": 4, "v": "late"}, {"id": 2, "ts": 6, "v": "new"}]
    merge = table.merge(source, "t.id = s.id").when_matched_update({"ts": "s.ts", "v": "concat(s.v, '')"})
    assert merge.execute().updated == 2
    assert {row["id"]: row["v"] for row in table.to_arrow().to_pylist()} == {1: "old", 2: "new"}
