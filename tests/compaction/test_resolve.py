"""R1: compact("resolve") deletes superseded rows by position, rewrites no base file, and changes no read."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import trinity
from tests.support.resolve import base, expected, fill, numbers_table, values_by_key
from trinity import Session, Table, TrinityError
from trinity.engine.reading import data_files
from trinity.engine.reading.spark import deleted_rows
from trinity.spi import Tier

pytestmark = pytest.mark.inner


@pytest.fixture(params=["parquet", *(pytest.param(fmt, marks=pytest.mark.full) for fmt in ("delta", "iceberg"))])
def numbers(session: Session, request: pytest.FixtureRequest) -> Table:
    """Make a table in each format that deletes rows by position."""
    return numbers_table(session, request.param)


def plan(table: Table) -> str:
    return str(table.to_df()._jdf.queryExecution().executedPlan().toString())


def operators(text: str) -> set[str]:
    lines = text.split("Subquery")[0].splitlines()
    return {re.sub(r"^[\s:+\-*()\d]*", "", line).split(" ")[0] for line in lines} - {""}


def test_r1_a_resolved_table_is_a_scan_that_leaves_rows_out(numbers: Table) -> None:
    fill(numbers, 0, 100, 10, "a")
    numbers.compact(full=True)
    before = {f.path for f in base(numbers)}
    fill(numbers, 50, 120, 20, "b")
    fill(numbers, 0, 10, 20, "", gone=True)
    fill(numbers, 10, 20, 5, "late")
    wanted = expected((range(10, 50), "a"), (range(50, 120), "b"))
    assert values_by_key(numbers) == wanted
    done = numbers.compact("resolve")
    assert values_by_key(numbers) == wanted
    assert operators(plan(numbers)) <= {"AdaptiveSparkPlan", "Project", "Filter", "ColumnarToRow", "FileScan"}
    files = numbers.splits()
    assert {f.tier for f in files.files} == {Tier.BASE}
    assert before < {f.path for f in files.files}  # nothing of the base is rewritten
    [run] = [f for f in files.files if f.path not in before]
    assert (run.rows, sum(f.deletes.rows for f in files.files if f.deletes)) == (70, 60)
    assert sum(f.rows for f in files.sidecar) == 10
    deletes = [f for f in files.files if f.deletes]
    written = {path for f in deletes if f.deletes for path in f.deletes.paths}
    assert (done.rows, done.files) == (70, len(written) + 1 + len(files.sidecar))
    assert numbers.history().collect()[0].operation == "resolve"
    assert {r._tier for r in numbers.log().where("k BETWEEN 10 AND 99").collect()} == {"base"}
    assert numbers.log().count() == 40 + 70 + 10


def test_a_resolve_keeps_every_later_fold_and_the_base_is_not_exchanged(numbers: Table) -> None:
    fill(numbers, 0, 40, 10, "a")
    numbers.compact(full=True)
    fill(numbers, 0, 10, 20, "b")
    fill(numbers, 15, 20, 20, "", gone=True)
    numbers.compact("resolve")
    fill(numbers, 5, 18, 10, "late tie")  # ties with 10..14, loses to 5..9 and to the tombstones 15..17
    kept = expected((range(10), "b"), (range(10, 15), "late tie"), (range(20, 40), "a"))
    assert values_by_key(numbers) == kept
    text = plan(numbers)
    assert "Bucketed: true" in text[text.index("SortMergeJoin") : text.index("Window")]
    numbers.compact("resolve")
    assert values_by_key(numbers) == kept
    assert sum(f.live_rows for f in base(numbers)) == len(kept)
    fill(numbers, 0, 20, 15, "later")
    assert values_by_key(numbers) == {**kept, **expected((range(10, 15), "later"))}
    assert not numbers.compact(full=True).skipped
    assert values_by_key(numbers) == {**kept, **expected((range(10, 15), "later"))}
    assert not any(f.deletes for f in base(numbers))
    assert numbers.compact("resolve").skipped


@pytest.mark.full
def test_small_runs_are_folded_and_large_ones_stay(numbers: Table) -> None:
    fill(numbers, 0, 400, 1, "a")
    numbers.compact(full=True)
    fill(numbers, 0, 100, 2, "b")
    numbers.compact("resolve")
    [large] = [f for f in base(numbers) if not f.bucket]
    wanted = expected((range(100), "b"), (range(100, 400), "a"))
    for start in (90, 95):
        fill(numbers, start, start + 10, 3, f"c{start}")
        numbers.compact("resolve")
        wanted.update(expected((range(start, start + 10), f"c{start}")))
        assert values_by_key(numbers) == wanted
    runs = {f.path: f for f in base(numbers) if not f.bucket}
    assert len(runs) == 2  # the second small run replaced the first
    kept = runs[large.path].deletes
    assert kept is not None
    assert kept.rows == 10
    assert sum(f.live_rows for f in base(numbers)) == 400


@pytest.mark.full
def test_versions_of_before_read_as_they_did_and_nothing_has_changed(numbers: Table) -> None:
    fill(numbers, 0, 20, 1, "a")
    numbers.compact(full=True)
    fill(numbers, 5, 10, 2, "b")
    numbers.compact("resolve")
    at = [numbers.history().collect()[n].version for n in (2, 1, 0)]
    fill(numbers, 0, 3, 3, "c")
    numbers.compact("resolve")
    resolved = expected((range(20), "a"), (range(5, 10), "b"))
    assert values_by_key(numbers, at[0]) == expected((range(20), "a"))
    assert values_by_key(numbers, at[1]) == values_by_key(numbers, at[2]) == resolved
    assert values_by_key(numbers) == {**resolved, **expected((range(3), "c"))}
    changed = {(r.k, r._change_type) for r in numbers.changes(at[0]).collect()}
    images = ("update_preimage", "update_postimage")
    assert changed == {(k, image) for k in [*range(5, 10), *range(3)] for image in images}


def test_statements_see_and_change_resolved_rows(session: Session, numbers: Table) -> None:
    fill(numbers, 0, 10, 1, "a")
    numbers.compact(full=True)
    fill(numbers, 3, 6, 2, "b")
    numbers.compact("resolve")
    session.sql(f"UPDATE {numbers.name} SET v = concat(v, '!') WHERE k IN (2, 3)")
    session.sql(f"DELETE FROM {numbers.name} WHERE v = 'b' AND k = 4")
    session.sql(
        f"MERGE INTO {numbers.name} t "
        "USING (SELECT * FROM VALUES (5, 7, 'm'), (50, 7, 'n') AS s (k, ts, v)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v, ts = s.ts "
        "WHEN NOT MATCHED THEN INSERT (k, ts, v) VALUES (s.k, s.ts, s.v)"
    )
    wanted = {**expected((range(10), "a")), 2: "a!", 3: "b!", 5: "m", 50: "n"}
    del wanted[4]
    assert values_by_key(numbers) == wanted
    numbers.compact("resolve")
    assert values_by_key(numbers) == wanted
    assert {r.k for r in numbers.to_df(where="k = 5 OR k = 4").collect()} == {5}


@contextmanager
def meanwhile(table: Table, what: str, work: str) -> Iterator[None]:
    """Run something right before a resolve begins to write, or to commit."""
    metadata = table.connector.metadata
    method = getattr(metadata, what)

    def slipped_in(*arguments: object) -> object:
        setattr(metadata, what, method)
        if work == "append":
            fill(table, 0, 2, 20, "meanwhile")
        else:
            table.compact(work)
        return method(*arguments)

    setattr(metadata, what, slipped_in)
    try:
        yield
    finally:
        setattr(metadata, what, method)


def test_k6_rows_that_come_during_a_resolve_are_later(numbers: Table) -> None:
    fill(numbers, 0, 5, 10, "a")
    numbers.compact(full=True)
    fill(numbers, 0, 4, 20, "b")
    with meanwhile(numbers, "finish_resolve", "append"):
        numbers.compact("resolve")
    wanted = {0: "meanwhile", 1: "meanwhile", 2: "b", 3: "b", 4: "a"}
    assert values_by_key(numbers) == wanted
    numbers.compact("resolve")
    assert values_by_key(numbers) == wanted


@pytest.mark.full
@pytest.mark.parametrize("other", ["resolve", "minor", "full"])
def test_two_compactions_of_one_log_conflict(numbers: Table, other: str) -> None:
    fill(numbers, 0, 50, 10, "a")
    numbers.compact(full=True)
    fill(numbers, 0, 2, 20, "b")
    fill(numbers, 1, 3, 20, "c")
    wanted = values_by_key(numbers)
    with meanwhile(numbers, "finish_resolve", other), pytest.raises(TrinityError) as caught:
        numbers.compact("resolve")
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert values_by_key(numbers) == wanted


def test_vacuum_keeps_positions_as_long_as_a_version_needs_them(numbers: Table) -> None:
    fill(numbers, 0, 20, 1, "a")
    numbers.compact(full=True)
    for n in (2, 3):
        fill(numbers, 0, 5, n, f"b{n}")
        numbers.compact("resolve")
    folder, pattern = Path(numbers.location, "_trinity", "deletes"), "*-*"  # older releases used other names
    orphan = folder / f"{'0' * 32}-000000-00000000-000000.parquet"
    if numbers.name.catalog == "delta":
        folder, pattern = Path(numbers.location), "*.bin"
        orphan = folder / f"deletion_vector_{uuid.uuid4()}.bin"
    orphan.write_bytes(b"of a resolve that failed")
    needed = {path for f in base(numbers) if f.deletes for path in f.deletes.paths}
    assert {str(p) for p in folder.glob(pattern)} >= needed | {str(orphan)}
    numbers.vacuum(retain="0 seconds")
    assert {str(p) for p in folder.glob(pattern)} == needed
    assert values_by_key(numbers) == expected((range(20), "a"), (range(5), "b3"))
    numbers.compact(full=True)
    numbers.vacuum(retain="0 seconds")
    assert list(folder.glob(pattern)) == []


def test_another_process_reads_what_checkpoints_say_and_a_lost_file_is_named(warehouse: Path, session: Session) -> None:
    catalogs = {"p": {"connector": "parquet", "warehouse": str(warehouse), "checkpoint-interval": 2}}
    with trinity.connect(warehouse, catalogs=catalogs) as other:
        table = numbers_table(other, "p")
        fill(table, 0, 20, 1, "a")
        table.compact(full=True)
        for n in (2, 3, 4):
            fill(table, 0, n, n, f"b{n}")
            table.compact("resolve")
        wanted = values_by_key(table)
    with trinity.connect(warehouse, catalogs=catalogs) as other:
        table = other.table("p.default.numbers")
        assert values_by_key(table) == wanted == expected((range(20), "a"), (range(4), "b4"))
        [path, *_] = [path for f in base(table) if f.deletes for path in f.deletes.paths]
    Path(path).rename(f"{path}.lost")
    with trinity.connect(warehouse, catalogs=catalogs) as other:
        data_files._deleted.drop(lambda key: True)
        with pytest.raises(TrinityError, match=re.escape(path)) as caught:
            other.table("p.default.numbers").to_df()
        assert caught.value.code == "BAD_DATA"


@pytest.mark.full
def test_the_first_row_of_a_key_stays(session: Session) -> None:
    table = numbers_table(session, "parquet", merge_engine="first-row", watermark_key="", tombstone_key="")
    fill(table, 0, 10, 1, "a")
    table.compact(full=True)
    fill(table, 5, 15, 2, "b")
    table.compact("resolve")
    wanted = expected((range(5, 15), "b"), (range(10), "a"))
    assert values_by_key(table) == wanted
    assert not any(f.deletes for f in base(table))
    fill(table, 12, 20, 3, "c")
    wanted = {**expected((range(12, 20), "c")), **wanted}
    assert values_by_key(table) == wanted
    table.compact("resolve")
    assert values_by_key(table) == wanted


@pytest.mark.full
@pytest.mark.parametrize("options", [{"watermark_key": ""}, {"watermark_key": "", "tombstone_key": ""}], ids=str)
def test_without_a_watermark_the_later_row_wins(session: Session, options: dict[str, str]) -> None:
    table = numbers_table(session, "parquet", **options)
    fill(table, 0, 10, 9, "a")
    table.compact(full=True)
    fill(table, 5, 15, 1, "b")
    table.delete("k IN (0, 6, 14)")
    table.compact("resolve")
    wanted = expected((range(1, 5), "a"), (range(5, 14), "b"))
    del wanted[6]
    assert values_by_key(table) == wanted
    fill(table, 0, 7, 1, "c")
    wanted.update(expected((range(7), "c")))
    assert values_by_key(table) == wanted
    table.compact("resolve")
    assert values_by_key(table) == wanted


@pytest.mark.full
def test_partitions_of_the_log_alone_are_looked_at(session: Session) -> None:
    session.sql(
        "CREATE TABLE regions (region STRING, id INT, ts BIGINT, v STRING, PRIMARY KEY (region, id)) "
        "PARTITIONED BY (region) TBLPROPERTIES ('watermark-key' = 'ts')"
    )
    table = session.table("regions")

    def put(region: str, ids: range, ts: int, v: str) -> None:
        session.sql(
            f"INSERT INTO regions SELECT '{region}', CAST(id AS INT), {ts}, '{v}' FROM range({ids.start}, {ids.stop})"
        )

    for region in ("east", "west"):
        put(region, range(10), 5, "a")
    table.compact(full=True)
    for n in range(2):
        put("east", range(n, n + 4), 6, f"b{n}")
        put("east", range(7, 9), 4, "late")
        table.compact("resolve")
    found = {(r.region, r.id): r.v for r in table.to_df().collect()}
    wanted = {(region, n): "a" for region in ("east", "west") for n in range(10)}
    assert found == {**wanted, **{("east", n): f"b{min(n, 1)}" for n in range(5)}}
    assert {f.partition["region"] for f in base(table) if f.deletes} == {"east"}
    table.compact(full=True)
    assert {(r.region, r.id): r.v for r in table.to_df().collect()} == found


def test_files_of_one_size_are_told_by_name(numbers: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(numbers, 0, 40, 1, "a")
    numbers.compact(full=True)
    fill(numbers, 0, 7, 2, "b")
    numbers.compact("resolve")
    told, lengths = deleted_rows._Table.of, [1 << 10]

    def no_size_tells(numbers: np.ndarray, _: Sequence[int]) -> deleted_rows._Table:
        if numbers.dtype != np.int64:  # hashes of names
            return told(numbers, lengths)
        return deleted_rows._Table(np.zeros_like(numbers), 1, np.ones(len(numbers), bool))

    monkeypatch.setattr(deleted_rows._Table, "of", no_size_tells)
    assert values_by_key(numbers) == expected((range(40), "a"), (range(7), "b"))
    assert "hash(" in plan(numbers)
    lengths[:] = [1]
    assert values_by_key(numbers) == expected((range(40), "a"), (range(7), "b"))
    assert "CASE" in plan(numbers)


def test_a_format_that_cannot_says_what_to_use_instead(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    table = numbers_table(session, "parquet")
    fill(table, 0, 2, 1, "a")
    monkeypatch.setattr(type(table.connector.metadata), "keeps_deletes", False)
    with pytest.raises(TrinityError, match=r"compact\(full=True\)") as caught:
        table.compact("resolve")
    assert caught.value.code == "NOT_SUPPORTED"


@pytest.mark.full
def test_a_delta_table_whose_owner_wants_no_deletion_vectors(session: Session) -> None:
    table = numbers_table(session, "delta", **{"delta.enableDeletionVectors": "false"})
    fill(table, 0, 2, 1, "a")
    with pytest.raises(TrinityError, match=r"delta\.enableDeletionVectors") as caught:
        table.compact("resolve")
    assert caught.value.code == "NOT_SUPPORTED"
    session.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    fill(table, 0, 1, 2, "b")
    table.compact("resolve")
    assert values_by_key(table) == {0: "b", 1: "a"}


def test_strengths_have_names(numbers: Table) -> None:
    with pytest.raises(TrinityError, match="Did you mean 'resolve'") as caught:
        numbers.compact("resolv")
    assert caught.value.code == "INVALID_ARGUMENTS"
    with pytest.raises(TrinityError, match="two strengths"):
        numbers.compact("minor", full=True)
    assert numbers.compact("full").skipped
    assert numbers.compact("resolve").skipped
    fill(numbers, 0, 3, 1, "a")
    assert not numbers.compact("resolve").skipped  # without a base it makes one
    assert {f.bucket is not None for f in base(numbers)} == {True}
