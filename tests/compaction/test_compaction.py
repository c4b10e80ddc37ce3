"""Compaction changes no read and no later fold (L3, K6), and gives plain files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.resolve import fill, numbers_table
from trinity import Column, Session, Table, TrinityError
from trinity.spi import Tier


@pytest.fixture
def numbers(session: Session, fmt: str) -> Table:
    return numbers_table(session, fmt)


def contents(table: Table) -> set[tuple[int, str]]:
    return {(r.k, r.v) for r in table.to_df().collect()}


def plan(table: Table, **options: str) -> str:
    frame = table.to_df(**options)  # type: ignore[arg-type]
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_compacted_table_is_a_plain_scan(numbers: Table) -> None:
    fill(numbers, 0, 100, 1, "a")
    fill(numbers, 50, 150, 2, "b")
    numbers.compact(full=True)
    text = plan(numbers)
    operators = [line.strip(" :+-*()1234567890").split(" ")[0] for line in text.splitlines()]
    assert set(operators) <= {"Project", "ColumnarToRow", "FileScan", ""}
    assert "FileScan" in operators
    files = numbers.splits().files
    assert {f.tier for f in files} == {Tier.BASE}
    assert sorted(f.bucket.index for f in files if f.bucket) == [0, 1, 2, 3]


@pytest.mark.parametrize("exchange", [1, pytest.param(2, marks=pytest.mark.full), 4])
def test_a_base_file_has_the_rows_of_its_bucket(session: Session, tiered_fmt: str, exchange: int) -> None:
    """Spark merges small tasks of an exchange that it has planned itself; this one has as many as there are buckets."""
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.t (k BIGINT, ts INT, v STRING, PRIMARY KEY (k)) "
        "TBLPROPERTIES ('watermark-key' = 'ts', 'bucket' = '2')"
    )
    table, before = (
        session.table(f"{tiered_fmt}.default.t"),
        str(session.spark.conf.get("spark.sql.shuffle.partitions")),
    )
    session.spark.conf.set("spark.sql.shuffle.partitions", exchange)
    try:
        session.sql(f"INSERT INTO {table.name} SELECT id, 1, 'a' FROM range(50)")
        table.compact(full=True)
        session.sql(f"INSERT INTO {table.name} SELECT id, 2, 'b' FROM range(25)")
        table.compact(full=True)
    finally:
        session.spark.conf.set("spark.sql.shuffle.partitions", before)
    files = {f.path: f.bucket.index for f in table.splits().files if f.bucket}
    hashed = table.log().selectExpr("_file", "pmod(hash(k), 2) AS bucket").distinct().collect()
    assert sorted((r._file, r.bucket) for r in hashed) == sorted(files.items())
    assert rows_by_key(table) == [(k, "b" if k < 25 else "a") for k in range(50)]


def rows_by_key(table: Table) -> list[tuple[int, str]]:
    return sorted((r.k, r.v) for r in table.to_df().collect())


@pytest.mark.tiered
def test_merge_with_a_base_neither_exchanges_nor_sorts_it(numbers: Table) -> None:
    fill(numbers, 0, 100, 1, "a")
    numbers.compact(full=True)
    fill(numbers, 90, 110, 2, "b")
    text = plan(numbers)
    base = text[text.index("SortMergeJoin") : text.index("Window")].splitlines()[1]
    assert "FileScan" in base
    assert "Bucketed: true" in base
    assert contents(numbers) == {(k, "a") for k in range(90)} | {(k, "b") for k in range(90, 110)}


@pytest.mark.tiered
@pytest.mark.parametrize("full", [True, pytest.param(False, marks=pytest.mark.full)])
def test_compaction_keeps_every_later_fold(numbers: Table, full: bool) -> None:
    fill(numbers, 0, 20, 10, "a")
    fill(numbers, 0, 10, 20, "b")
    fill(numbers, 15, 20, 20, "", gone=True)
    before = contents(numbers)
    assert not numbers.compact(full=full).skipped
    assert contents(numbers) == before
    fill(numbers, 5, 18, 10, "late tie")  # ties with 10..14, loses to 5..9 and to the tombstones 15..17
    assert contents(numbers) == {(k, "b") for k in range(10)} | {(k, "late tie") for k in range(10, 15)}
    numbers.compact(full=full)
    assert contents(numbers) == {(k, "b") for k in range(10)} | {(k, "late tie") for k in range(10, 15)}


@pytest.mark.tiered
def test_a_compaction_tells_what_it_wrote_and_counts_no_tombstone_for_a_row(numbers: Table) -> None:
    fill(numbers, 0, 20, 10, "a")
    fill(numbers, 15, 20, 20, "", gone=True)
    done = numbers.compact(full=True)
    splits = numbers.splits()
    assert sum(f.rows for f in splits.sidecar) == 5
    written = (*splits.files, *splits.sidecar)
    assert (done.rows, done.files, done.bytes) == (15, len(written), sum(f.size for f in written))


@pytest.mark.tiered
def test_k6_a_concurrent_append_counts_as_later(numbers: Table) -> None:
    fill(numbers, 0, 5, 10, "a")
    fill(numbers, 0, 5, 10, "b")
    metadata = numbers.connector.metadata
    begin = metadata.begin_rewrite

    def append_meanwhile(*arguments: object, **options: object) -> object:
        found = begin(*arguments, **options)  # type: ignore[arg-type]
        fill(numbers, 0, 2, 10, "meanwhile")
        return found

    metadata.begin_rewrite = append_meanwhile  # type: ignore[method-assign, assignment]
    numbers.compact(full=True)
    assert contents(numbers) == {(0, "meanwhile"), (1, "meanwhile"), (2, "b"), (3, "b"), (4, "b")}


@pytest.mark.tiered
def test_two_compactions_of_the_same_files_conflict(numbers: Table) -> None:
    fill(numbers, 0, 5, 10, "a")
    fill(numbers, 0, 5, 11, "b")
    metadata = numbers.connector.metadata
    begin = metadata.begin_rewrite

    def compact_meanwhile(*arguments: object, **options: object) -> object:
        found = begin(*arguments, **options)  # type: ignore[arg-type]
        metadata.begin_rewrite = begin  # type: ignore[method-assign]
        numbers.compact(full=True)
        return found

    metadata.begin_rewrite = compact_meanwhile  # type: ignore[method-assign, assignment]
    with pytest.raises(TrinityError) as caught:
        numbers.compact(full=True)
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert contents(numbers) == {(k, "b") for k in range(5)}


@pytest.mark.tiered
def test_compacting_twice_or_nothing_makes_no_commit(numbers: Table) -> None:
    assert numbers.compact(full=True).skipped
    fill(numbers, 0, 5, 10, "a")
    version = numbers.compact(full=True).version
    again = numbers.compact(full=True)
    assert (again.skipped, again.version) == (True, version)


@pytest.mark.tiered
def test_everything_deleted_compacts_to_nothing(numbers: Table) -> None:
    fill(numbers, 0, 5, 10, "a")
    fill(numbers, 0, 5, 20, "", gone=True)
    numbers.compact(full=True)
    assert contents(numbers) == set()
    assert numbers.splits().files == ()
    fill(numbers, 0, 5, 15, "late")
    fill(numbers, 4, 6, 25, "new")
    assert contents(numbers) == {(4, "new"), (5, "new")}


@pytest.mark.tiered
def test_tombstone_retention_forgets(session: Session, fmt: str) -> None:
    columns = [Column("k", "bigint"), Column("ts", "bigint"), Column("gone", "boolean"), Column("v", "string")]
    options = {"watermark-key": "ts", "tombstone-key": "gone", "tombstone.retention": "0 seconds"}
    table = session.create_table(f"{fmt}.default.short", columns, primary_key=["k"], properties=options)
    fill(table, 0, 2, 10, "a")
    fill(table, 0, 1, 20, "", gone=True)
    table.compact(full=True)  # moves the tombstone to the sidecar
    table.compact(full=True)  # its retention has expired
    fill(table, 0, 1, 15, "forgotten")
    assert contents(table) == {(0, "forgotten"), (1, "a")}


@pytest.mark.tiered
def test_l9_key_predicates_leave_files_out(numbers: Table) -> None:
    numbers.set_properties({"bucket": "1"})
    fill(numbers, 0, 100, 1, "a")
    numbers.compact(full=True)
    for start in range(100, 500, 100):
        fill(numbers, start, start + 100, 1, "a")
    found = numbers.to_df(where="k >= 450 and k < 460")
    assert len(found.inputFiles()) == 1
    assert sorted(r.k for r in found.collect()) == list(range(450, 460))
    assert numbers.to_df(where="k = 42").count() == 1


@pytest.mark.tiered
def test_plain_tables_concatenate(session: Session, fmt: str) -> None:
    table = session.create_table(f"{fmt}.default.plain", [Column("a", "int")])
    for n in range(4):
        table.append(pa.table({"a": [n, n]}))
    assert len(table.splits().files) == 4
    table.compact()
    assert len(table.splits().files) == 1
    assert sorted(r.a for r in table.to_df().collect()) == [0, 0, 1, 1, 2, 2, 3, 3]
