"""partial-update, aggregation and first-row through the public API (P1, E1, E2), on every format."""

from __future__ import annotations

import datetime as dt
import random
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame

from trinity import Column, Session, TrinityError
from trinity.merge.functions.registry import others
from trinity.spi import Tier
from trinity.table import Table

SEED = (Path(__file__).parent / "seeds" / "002_partial_update.txt").read_text()


def seed_examples() -> list[list[tuple[str, str | None]]]:
    """The SQL examples of tests/seeds as printed: (statement, the output that a comment promises)."""
    examples = []
    for text in SEED.split("CREATE TABLE")[1:]:
        lines = ("CREATE TABLE" + text).splitlines()
        last = max(n for n, line in enumerate(lines) if "-- output" in line)
        examples.append(list(_statements(lines[: last + 1])))
    return examples


def _statements(lines: list[str]) -> Iterator[tuple[str, str | None]]:
    pending, finished = "", ""
    for line in lines:
        sql, _, comment = line.partition("--")
        if comment.strip().startswith("output"):
            if sql.strip():
                finished = pending + sql
                pending = ""
            yield finished, comment.strip().removeprefix("output ")
            finished = ""
            continue
        if finished and sql.strip():
            yield finished, None
            finished = ""
        pending += sql + "\n" if sql.strip() else ""
        if pending.rstrip().endswith(";"):
            finished, pending = pending, ""
    assert not pending.strip()


def shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in table.to_df().collect()), key=str)


def run_example(session: Session, example: list[tuple[str, str | None]], compact: bool) -> None:
    name = re.match(r"CREATE TABLE (\w+)", example[0][0])
    assert name
    for sql, output in example:
        if sql.startswith("INSERT") and compact:
            session.table(name[1]).compact(full=True)
        found = session.sql(sql)
        if output is not None:
            [row] = found.collect()
            assert ", ".join(map(shown, row)) == output, sql
    session.sql(f"DROP TABLE {name[1]}")


@pytest.mark.parametrize("compact", [False, pytest.param(True, marks=pytest.mark.full)])
def test_seed_002_prints_what_it_promises(session: Session, tiered_fmt: str, compact: bool) -> None:
    session.sql(f"USE {tiered_fmt}.default")
    examples = seed_examples()
    assert [sum(output is not None for _, output in e) for e in examples] == [2, 2, 1, 2, 1]
    for example in examples:
        run_example(session, example, compact)


def test_seed_002_three_records(session: Session, tiered_fmt: str) -> None:
    records = re.findall(r"<(1, [^<>]*)>", SEED)
    *given, expected = dict.fromkeys(records)
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.books (k INT, price DOUBLE, n INT, title STRING, PRIMARY KEY (k)) "
        "TBLPROPERTIES ('merge-engine' = 'partial-update')"
    )
    for record in given:
        session.sql(f"INSERT INTO {tiered_fmt}.default.books VALUES ({record})")
    assert len(given) == 3
    assert rows(session.table(f"{tiered_fmt}.default.books")) == [(1, 25.2, 10, "This is a book")]
    assert expected == "1, 25.2, 10, 'This is a book'"


def make(session: Session, fmt: str, columns: str, **options: str) -> Table:
    given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    session.sql(f"CREATE TABLE {fmt}.default.t ({columns}, PRIMARY KEY (k)) TBLPROPERTIES ({given})")
    return session.table(f"{fmt}.default.t")


GROUPS = {
    "merge-engine": "partial-update",
    "rowkind.field": "kind",
    "fields.g.sequence-group": "a,n",
    "fields.n.aggregate-function": "sum",
    "fields.h.sequence-group": "b",
    "partial-update.remove-record-on-sequence-group": "g",
}
GROUP_COLUMNS = "k INT, kind STRING, g INT, a STRING, n INT, h INT, b STRING, c STRING"


def put(table: Table, *versions: dict[str, Any]) -> None:
    names = [c.name for c in table.definition.visible]
    kinds = [c.to_arrow() for c in table.definition.visible]
    table.upsert(pa.Table.from_pylist([{n: v.get(n) for n in names} for v in versions], pa.schema(kinds)))


@pytest.mark.full
@pytest.mark.parametrize("compact", [True, False])
def test_a_delete_of_a_listed_group_removes_the_row_and_leaves_a_threshold(
    session: Session, tiered_fmt: str, compact: bool
) -> None:
    table = make(session, tiered_fmt, GROUP_COLUMNS, **GROUPS)

    def step(*versions: dict[str, Any]) -> list[tuple[Any, ...]]:
        put(table, *versions)
        if compact:
            table.compact(full=True)
        return [tuple(r) for r in table.to_df().select("g", "a", "n", "h", "b", "c").collect()]

    step({"k": 1, "kind": "+I", "g": 5, "a": "a5", "n": 5, "h": 1, "b": "b1", "c": "c1"})
    older = step({"k": 1, "kind": "-D", "g": 4, "n": 2, "a": "x"})
    assert older == [(5, "a5", 3, 1, "b1", "c1")]  # D4: smaller, so aggregates only
    assert step({"k": 1, "kind": "-D", "g": 6, "h": 9}) == []
    assert step({"k": 1, "kind": "+I", "g": 5, "a": "late", "n": 1, "h": 9, "b": "b"}) == []
    assert step({"k": 1, "kind": "+I", "h": 10, "b": "no group g"}) == []
    assert step({"k": 1, "kind": "-U", "g": 7, "n": 1}) == []  # raises the threshold
    assert step({"k": 1, "kind": "+I", "g": 6, "a": "late"}) == []
    assert step({"k": 1, "kind": "+U", "g": 7, "a": "new", "n": 4}) == [(7, "new", 4, None, None, None)]


@pytest.mark.tiered
def test_a_threshold_has_no_values_not_even_of_a_not_null_column(session: Session, fmt: str) -> None:
    """D5, E3: what compaction keeps of a removed row; Iceberg's files say which columns have no NULL."""
    session.sql(
        f"""CREATE TABLE {fmt}.default.t (k INT PRIMARY KEY, kind STRING, v INT NOT NULL, g INT, a STRING)
            TBLPROPERTIES ('merge-engine' = 'partial-update', 'rowkind.field' = 'kind', 'fields.g.sequence-group' = 'a',
                           'partial-update.remove-record-on-sequence-group' = 'g')"""
    )
    table = session.table(f"{fmt}.default.t")
    session.sql(f"INSERT INTO {table.name} VALUES (1, '+I', 7, 1, 'a1'), (2, '+I', 8, 1, 'b1')")
    session.sql(f"INSERT INTO {table.name} VALUES (1, '-D', 7, 2, NULL)")
    table.compact(full=True)
    session.sql(f"INSERT INTO {table.name} VALUES (1, '+I', 9, 1, 'late')")
    assert [(r.k, r.v, r.a) for r in table.to_df().collect()] == [(2, 8, "b1")]
    session.sql(f"INSERT INTO {table.name} VALUES (1, '+I', 9, 2, 'again')")
    table.compact(full=True)
    assert sorted((r.k, r.v, r.a) for r in table.to_df().collect()) == [(1, 9, "again"), (2, 8, "b1")]


def test_late_rows_meet_their_order_after_compaction(session: Session, tiered_fmt: str) -> None:
    table = make(
        session,
        tiered_fmt,
        "k INT, g INT, l STRING, f STRING",
        **{
            "merge-engine": "partial-update",
            "fields.g.sequence-group": "l,f",
            "fields.l.aggregate-function": "listagg",
            "fields.f.aggregate-function": "first_non_null_value",
        },
    )
    for g, text in ((1, "a"), (3, "c"), (2, "b"), (0, "z")):
        put(table, {"k": 1, "g": g, "l": text, "f": text})
        table.compact(full=True)
        assert {f.tier for f in table.splits().files} == {Tier.BASE}
    assert rows(table) == [(1, 3, "z,a,b,c", "z")]


def test_sequence_field_with_a_late_delete(session: Session, tiered_fmt: str) -> None:
    options = {
        "merge-engine": "aggregation", "sequence.field": "s", "rowkind.field": "kind",
        "fields.n.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true",
    }  # fmt: skip
    table = make(session, tiered_fmt, "k INT, s INT, kind STRING, n INT, v STRING", **options)
    put(table, {"k": 1, "s": 10, "kind": "+I", "n": 1, "v": "ten"}, {"k": 1, "s": 20, "kind": "+I", "n": 2})
    table.compact(full=True)
    put(table, {"k": 1, "s": 15, "kind": "-D"})
    assert rows(table) == [(1, 20, "+I", 2, None)]
    table.compact(full=True)
    put(table, {"k": 1, "s": 12, "kind": "+I", "n": 100, "v": "before the delete"})
    put(table, {"k": 1, "s": 16, "kind": "-U", "n": 5})  # D3: ignored
    assert rows(table) == [(1, 20, "+I", 2, None)]


def test_a_sum_out_of_range_is_an_error_of_the_read_that_later_rows_repair(session: Session, tiered_fmt: str) -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = make(session, tiered_fmt, "k STRING, n BIGINT, v STRING", **options)
    most = 2**63 - 1
    put(table, {"k": "big", "n": most, "v": "a"}, {"k": "big", "n": most}, {"k": "small", "n": 1})
    table.compact(full=True)
    with pytest.raises(Exception, match=r"NUMERIC_VALUE_OUT_OF_RANGE: column 'n' .*k = big.*18446744073709551614"):
        table.to_df().collect()
    assert [tuple(r) for r in table.to_df(where="k = 'small'").collect()] == [("small", 1, None)]
    put(table, {"k": "big", "n": -most})
    assert rows(table) == [("big", most, "a"), ("small", 1, None)]
    table.compact(full=True)
    assert {f.tier for f in table.splits().files} == {Tier.BASE}
    assert rows(table) == [("big", most, "a"), ("small", 1, None)]


@pytest.mark.full
def test_a_sum_of_more_digits_than_spark_has_is_no_null(session: Session, tiered_fmt: str) -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = make(session, tiered_fmt, "k STRING, n DECIMAL(38,0)", **options)
    put(table, {"k": "big", "n": Decimal("6e37")}, {"k": "small", "n": Decimal(1)}, {"k": "none"})
    table.compact(full=True)
    put(table, {"k": "big", "n": Decimal("6e37")}, {"k": "small", "n": Decimal(2)})
    for _ in range(2):
        with pytest.raises(Exception, match=r"NUMERIC_VALUE_OUT_OF_RANGE: column 'n' .*k = big.*of many digits"):
            table.to_df().collect()
        read = table.to_df(where="k <> 'big'").collect()
        assert {tuple(r) for r in read} == {("small", Decimal(3)), ("none", None)}
        table.compact(full=True)


def test_first_row_keeps_what_came_first(session: Session, tiered_fmt: str) -> None:
    table = make(session, tiered_fmt, "k INT, v STRING", **{"merge-engine": "first-row"})
    put(table, {"k": 1, "v": "first"}, {"k": 1, "v": "second"}, {"k": 2, "v": None})
    table.compact(full=True)
    put(table, {"k": 1, "v": "third"}, {"k": 2, "v": "late"}, {"k": 3, "v": "new"})
    assert rows(table) == [(1, "first"), (2, None), (3, "new")]
    merged = session.sql(
        f"MERGE INTO {table.name} t USING (VALUES (3, 'x'), (4, 'y')) AS s(k, v) ON t.k = s.k "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert merged.first()["num_inserted_rows"] == 1  # type: ignore[index]
    for statement in (
        f"UPDATE {table.name} SET v = 'x'",
        f"DELETE FROM {table.name}",
        f"MERGE INTO {table.name} t USING (VALUES (1)) AS s(k) ON t.k = s.k WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(TrinityError, match="first-row") as refused:
            session.sql(statement)
        assert refused.value.code == "NOT_SUPPORTED"
    assert rows(table) == [(1, "first"), (2, None), (3, "new"), (4, "y")]


@pytest.mark.parametrize("partition", ["", "PARTITIONED BY (p) "])
def test_versions_stay_in_order_when_the_log_is_compacted_by_itself(
    session: Session, tiered_fmt: str, partition: str
) -> None:
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.t (p INT, k INT, v STRING, w STRING, PRIMARY KEY (p, k)) {partition}"
        "TBLPROPERTIES ('merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'listagg', "
        "'fields.w.aggregate-function' = 'last_value')"
    )
    table = session.table(f"{tiered_fmt}.default.t")
    put(table, *({"p": k % 2, "k": k} for k in range(200)))
    table.compact(full=True)
    for n in range(12):
        put(table, {"p": 1, "k": 1, "v": str(n), "w": str(n)}, {"p": 0, "k": 2, "v": str(n), "w": None})
    table.compact()
    assert {f.tier for f in table.splits().files} == {Tier.BASE, Tier.LOG}
    listed = ",".join(map(str, range(12)))
    found = [tuple(r) for r in table.to_df(where="k IN (1, 2)").collect()]
    assert sorted(found) == [(0, 2, listed, None), (1, 1, listed, "11")]


# -- SQL UPDATE, DELETE and MERGE ------------------------------------------------------------------------


@pytest.fixture
def grouped(session: Session, tiered_fmt: str) -> Table:
    """k, a group (g; a, n = sum), a group (h1, h2; b), and c NOT NULL, d outside."""
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
    put(table, {"k": 1, **full}, {"k": 2, **full}, {"k": 3, "c": "only c"})
    return table


def test_update_stores_the_changed_columns_alone(grouped: Table) -> None:
    grouped.update("k = 1", {"d": "NULL", "a": "'new'"})
    [stored] = grouped.log().where("d IS NULL AND k = 1").collect()
    assert (stored.g, stored.a, stored.n, stored.h1, stored.b) == (5, "new", None, None, None)
    assert rows(grouped)[0] == (1, 5, "new", 1, 1, 1, "b", "c", None)
    put(grouped, {"k": 1, "g": 4, "a": "late", "n": 10, "c": "c2"})  # the group's sequence moved with the update
    assert rows(grouped)[0] == (1, 5, "new", 11, 1, 1, "b", "c2", None)
    grouped.compact(full=True)
    assert rows(grouped)[0] == (1, 5, "new", 11, 1, 1, "b", "c2", None)


def test_update_is_refused_where_it_would_have_no_effect(grouped: Table) -> None:
    before = rows(grouped)
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
    assert rows(grouped) == before
    grouped.update("k = 3", {"a": "'x'", "g": "1"})
    assert rows(grouped)[2][:3] == (3, 1, "x")


def test_delete_is_a_hard_delete(grouped: Table) -> None:
    assert grouped.delete([1, 2]).rows == 2
    assert [r[0] for r in rows(grouped)] == [3]
    put(grouped, {"k": 1, "g": 1, "a": "blank", "n": 7, "c": "c"})  # an older sequence, and nothing to lose against
    assert rows(grouped)[0] == (1, 1, "blank", 7, None, None, None, "c", None)
    grouped.compact(full=True)
    assert rows(grouped)[0] == (1, 1, "blank", 7, None, None, None, "c", None)


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
    assert rows(grouped) == [
        (1, 9, "i", 4, None, None, None, "new", None),
        (3, None, None, None, None, None, None, "only c", None),
        (9, 6, "m", 1, 1, 1, "b", "c", "d"),
    ]


# -- functions of others ---------------------------------------------------------------------------------

PLUGIN = """
from trinity.merge.functions import ListFunction

class Longest(ListFunction):
    name = "longest"

    def problem(self, kind, options):
        return None if kind.name == "string" else "needs a string column"

    def fold(self, field, rows):
        longer = "IF(length(x.v) > length(a), x.v, a)"
        return f"aggregate({rows}, '', (a, x) -> {longer})"
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with a function of its own."""
    (tmp_path / "longest_plugin.py").write_text(PLUGIN)
    info = tmp_path / "longest_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: longest-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[trinity.aggregate_functions]\nlongest = longest_plugin:Longest\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    others.cache_clear()
    yield
    others.cache_clear()


@pytest.mark.usefixtures("plugin")
def test_a_function_comes_by_entry_point(session: Session, tiered_fmt: str) -> None:
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "longest"}
    table = make(session, tiered_fmt, "k INT, v STRING", **options)
    put(table, {"k": 1, "v": "aa"}, {"k": 1, "v": "bbb"})
    table.compact(full=True)
    put(table, {"k": 1, "v": "cc"})
    assert rows(table) == [(1, "bbb")]
    assert session.spark.sql(table.merge_view_sql("spark")).collect() == [(1, "bbb")]
    with pytest.raises(TrinityError, match="column 'v' folds by longest"):
        table.merge_view_sql("duckdb")
    with pytest.raises(TrinityError, match=r"longest.*needs a string column"):
        session.sql(
            f"CREATE TABLE {tiered_fmt}.default.bad (k INT, v INT, PRIMARY KEY (k)) TBLPROPERTIES "
            "('merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'longest')"
        )


def test_a_base_in_several_buckets_meets_the_log(session: Session, tiered_fmt: str) -> None:
    options = {"merge-engine": "aggregation", "fields.default-aggregate-function": "sum", "bucket": "2"}
    table = make(session, tiered_fmt, "k INT, n BIGINT", **options)
    put(table, *({"k": k, "n": 1} for k in range(20)))
    table.compact(full=True)
    put(table, *({"k": k, "n": 10} for k in range(15, 25)))
    expected = {**dict.fromkeys(range(15), 1), **dict.fromkeys(range(15, 20), 11), **dict.fromkeys(range(20, 25), 10)}
    assert rows(table) == sorted(expected.items(), key=str)


GROUPED = pa.schema(
    [("k", pa.int32()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("a", pa.int32()), ("n", pa.int64())]
)
NARROW = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 7)]
WIDE = [*NARROW, dt.datetime(1582, 10, 15), dt.datetime(9999, 12, 31)]


@pytest.mark.tiered
@pytest.mark.parametrize(("times", "sorts"), [(NARROW, False), (WIDE, True)], ids=["narrow", "wide"])
def test_a_group_folds_in_a_hash_table_where_its_bounds_let_it(
    session: Session, fmt: str, times: list[dt.datetime], sorts: bool
) -> None:
    """G1, G2, K4: NULL is the smallest part, rows without a sequence count for nothing, the later of two equal wins."""
    table = session.create_table(
        f"{fmt}.default.narrow",
        [
            Column("k", "int"),
            Column("day", "date"),
            Column("at", "timestamp"),
            Column("a", "int"),
            Column("n", "bigint"),
        ],
        primary_key=["k"],
        properties={
            "merge-engine": "partial-update",
            "fields.day,at.sequence-group": "a,n",
            "fields.n.aggregate-function": "sum",
        },
    )
    chosen, newest, sums = random.Random(7), dict[int, tuple[Any, ...]](), dict[int, int]()
    days = [dt.date(1969, 12, 30), dt.date(1970, 1, 2), None]
    for commit in range(4):
        rows = [
            (chosen.randrange(5), chosen.choice(days), chosen.choice([*times, None]), chosen.choice([commit, None]), 3)
            for _ in range(40)
        ]
        table.upsert(pa.table(list(map(list, zip(*rows, strict=True))), GROUPED))
        for k, day, at, a, n in rows:
            if day or at:
                order = (day or dt.date.min, at or dt.datetime.min)
                sums[k] = sums.get(k, 0) + n
                if k not in newest or order >= newest[k][0]:
                    newest[k] = order, (k, day, at, a)
        if commit == 2:
            table.compact(full=True)
    read = table.to_df()
    assert ("SortAggregate" in plan_of(read)) == sorts
    found = read.selectExpr("k", "day", "CAST(at AS TIMESTAMP_NTZ)", "a", "n").collect()
    assert {tuple(r) for r in found} == {(*row, sums[k]) for k, (_, row) in newest.items()}


def test_a_sum_is_narrow_only_where_bounds_prove_it(session: Session, fmt: str) -> None:
    """A4: values that might leave BIGINT on the way are summed in a wider type, and may come back."""
    table = session.create_table(
        f"{fmt}.default.sums",
        [Column("k", "int"), Column("n", "bigint")],
        primary_key=["k"],
        properties={"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    )
    most = 2**63 - 1
    table.upsert(pa.table({"k": pa.array([1, 1, 2], pa.int32()), "n": [5, -7, None]}))
    assert "shiftright" not in plan_of(table.to_df())
    table.upsert(pa.table({"k": pa.array([1, 1, 1], pa.int32()), "n": [most, most, -most]}))
    assert "shiftright" in plan_of(table.to_df())
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "n": [3]}))
    with pytest.raises(SparkRuntimeException, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        table.to_df().collect()
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "n": [-most]}))
    assert {(r.k, r.n) for r in table.to_df().collect()} == {(1, 1), (2, None)}


def plan_of(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())
