"""R1 of engines that fold by column: the run holds the fold of base and log, and later folds stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.support.iceberg import iceberg_spark, pyiceberg
from tests.support.merge_engines import make
from tests.support.tables import put_dicts, spark_rows
from trinity import Session, Table
from trinity.spi import DataFile, Tier

SUMS: Final = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "bucket": "4"}
GROUPS: Final = {
    "merge-engine": "partial-update",
    "fields.s.sequence-group": "a",
    "fields.t.sequence-group": "b",
    "partial-update.remove-record-on-sequence-group": "t",
    "rowkind.field": "kind",
}


def files(table: Table) -> dict[str, DataFile]:
    return {f.path: f for f in table.splits().files}


def counts(table: Table, *versions: tuple[int, int]) -> None:
    keys, numbers = zip(*versions, strict=True)
    table.upsert(pa.table({"k": pa.array(keys, pa.int32()), "n": pa.array(numbers, pa.int64())}))


def test_r1_totals_are_resolved_and_no_base_file_is_rewritten(session: Session, tiered_fmt: str) -> None:
    table = make(session, tiered_fmt, "k INT, n BIGINT", **SUMS)
    counts(table, *((k, 1) for k in range(100)))
    table.compact("full")
    before = files(table)
    wanted = dict.fromkeys(range(100), 1)
    for start in (90, 85):  # the second one folds the small run of the first, and adds to the deleted rows
        counts(table, *((k, k) for k in range(start, start + 20)), (start, 5))
        for k in range(start, start + 20):
            wanted[k] = wanted.get(k, 0) + k + 5 * (k == start)
        assert dict(spark_rows(table)) == wanted
        assert not table.compact("resolve").skipped
        found = files(table)
        assert before.keys() <= found.keys()
        assert {f.tier for f in found.values()} == {Tier.BASE}
        assert sum(f.deletes.rows for f in found.values() if f.deletes) == 100 - start
        [run] = [f for path, f in found.items() if path not in before]
        assert run.rows == 110 - start
        assert dict(spark_rows(table)) == wanted == dict(native(session, table))
    assert table.to_df().where("k = 95").collect() == [(95, 1 + 2 * 95)]
    counts(table, (0, 3), (95, -1))  # a log on top
    wanted[0], wanted[95] = 4, 2 * 95
    assert dict(spark_rows(table)) == wanted
    assert dict(spark_rows(table.session.table(str(table.name)))) == wanted
    table.compact("full")
    assert dict(spark_rows(table)) == wanted
    assert not any(f.deletes for f in files(table).values())


@pytest.mark.full
def test_c3_a_resolve_changes_nothing(session: Session) -> None:
    table = make(session, "parquet", "k INT, n BIGINT", **SUMS)
    counts(table, *((k, 1) for k in range(10)))
    table.compact("full")
    counts(table, (3, 5), (10, 1))
    resolved = table.compact("resolve").version
    counts(table, (3, 7))
    found = table.changes(resolved - 2).orderBy("_commit_version", "k", "n").collect()
    assert [(r._commit_version - resolved, r._change_type, r.k, r.n) for r in found] == [
        (-1, "update_preimage", 3, 1),
        (-1, "update_postimage", 3, 6),
        (-1, "insert", 10, 1),
        (1, "update_preimage", 3, 6),
        (1, "update_postimage", 3, 13),
    ]
    assert dict(spark_rows(table.session.table(str(table.name)))) == {**dict.fromkeys(range(11), 1), 3: 13}


def native(session: Session, table: Table) -> list[tuple[int, int]]:
    """Return the rows that the format's own reader returns; for Parquet, those of the merge view."""
    readers: dict[str, Callable[[], Any]] = {
        "parquet": lambda: session.spark.sql(table.merge_view_sql("spark")).toArrow(),
        "delta": lambda: pa.table(
            QueryBuilder().register("t", DeltaTable(table.location)).execute("SELECT k, n FROM t").read_all()
        ),
        "iceberg": lambda: pyiceberg(table).scan().to_arrow(),
    }
    found = readers[table.name.catalog]().select(["k", "n"]).to_pylist()
    by_spark = {
        "delta": lambda: session.spark.read.format("delta").load(table.location),
        "iceberg": lambda: iceberg_spark(session).table("iceberg.default.t"),
    }
    if table.name.catalog in by_spark:
        own = by_spark[table.name.catalog]().select("k", "n").collect()
        assert sorted(map(tuple, own)) == sorted((r["k"], r["n"]) for r in found)
    return [(r["k"], r["n"]) for r in found]


@pytest.mark.full
def test_r1_sequence_groups_go_on_and_removed_rows_stay_removed(session: Session, tiered_fmt: str) -> None:
    table = make(session, tiered_fmt, "k INT, s INT, a STRING, t INT, b STRING, kind STRING", **GROUPS)
    put_dicts(table, *({"k": k, "s": 5, "a": "a5", "t": 5, "b": "b5", "kind": "+I"} for k in range(6)))
    table.compact("full")
    put_dicts(table, {"k": 1, "s": 9, "a": "a9", "kind": "+I"}, {"k": 2, "t": 9, "kind": "-D"})
    put_dicts(table, {"k": 7, "s": 1, "a": "new", "kind": "+I"})
    wanted = spark_rows(table)
    table.compact("resolve")
    assert spark_rows(table) == wanted
    assert [r[0] for r in wanted] == [0, 1, 3, 4, 5, 7]
    put_dicts(
        table, {"k": 1, "s": 7, "a": "late", "t": 6, "b": "b6", "kind": "+I"}
    )  # late in one group, not in the other
    put_dicts(table, {"k": 2, "t": 8, "b": "late", "kind": "+I"}, {"k": 3, "s": 6, "a": "a6", "kind": "+I"})
    found = {r[0]: r[1:5] for r in spark_rows(table)}
    assert (found[1], found[3]) == ((9, "a9", 6, "b6"), (6, "a6", 5, "b5"))
    after = spark_rows(table)
    for strength in ("resolve", "full"):
        table.compact(strength)
        assert spark_rows(table) == after


@pytest.mark.full
def test_a4_what_does_not_fit_stays_in_the_log(session: Session, tiered_fmt: str) -> None:
    table = make(session, tiered_fmt, "k INT, n TINYINT", **SUMS)
    put_dicts(table, {"k": 1, "n": 100}, {"k": 2, "n": 1}, {"k": 3, "n": 1})
    table.compact("full")
    put_dicts(table, {"k": 1, "n": 100}, {"k": 2, "n": 1})
    table.compact("resolve")
    assert table.to_df(where="k > 1").where("k > 1").orderBy("k").collect() == [(2, 2), (3, 1)]
    with pytest.raises(Exception, match=r"NUMERIC_VALUE_OUT_OF_RANGE: column 'n' .*k = 1"):
        table.to_df().collect()
    put_dicts(table, {"k": 1, "n": -100})
    assert spark_rows(table) == [(1, 100), (2, 2), (3, 1)]
    table.compact("resolve")
    assert spark_rows(table) == [(1, 100), (2, 2), (3, 1)]
    assert {f.tier for f in files(table).values()} == {Tier.BASE}


@pytest.mark.full
def test_with_versions_kept_aside_it_is_a_full_compaction(session: Session) -> None:
    options = {"merge-engine": "partial-update", "sequence.field": "s"}
    table = make(session, "parquet", "k INT, s INT, n INT", **options)
    put_dicts(table, {"k": 1, "s": 5, "n": 5}, {"k": 2, "s": 5, "n": 5})
    table.compact("full")
    put_dicts(table, {"k": 1, "s": 4, "n": 4})
    table.compact("resolve")
    assert not any(f.deletes for f in files(table).values())
    assert spark_rows(table) == [(1, 5, 5), (2, 5, 5)]


@pytest.mark.full
def test_partitions_get_a_run_each(session: Session, tiered_fmt: str) -> None:
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.t (p STRING, k INT, n BIGINT, PRIMARY KEY (p, k)) PARTITIONED BY (p) "
        "TBLPROPERTIES ('merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum')"
    )
    table = session.table(f"{tiered_fmt}.default.t")
    put_dicts(table, *({"p": p, "k": k, "n": 1} for p in "abc" for k in range(10)))
    table.compact("full")
    before = files(table)
    put_dicts(table, *({"p": p, "k": k, "n": 5} for p in "ab" for k in (0, 10)))
    wanted = spark_rows(table)
    table.compact("resolve")
    assert spark_rows(table) == wanted
    new = [f for path, f in files(table).items() if path not in before]
    assert sorted((f.partition["p"], f.rows) for f in new) == [("a", 2), ("b", 2)]
    assert sum(f.deletes.rows for f in files(table).values() if f.deletes) == 2
