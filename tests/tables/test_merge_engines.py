"""partial-update, aggregation and first-row through the public API (P1, E1, E2), on every format."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.merge_engines import make
from tests.support.paths import TESTS
from tests.support.tables import put_dicts, spark_rows
from trinity import Session, TrinityError
from trinity.merge.functions import others
from trinity.spi import Tier

SEED = (TESTS / "seeds" / "002_partial_update.txt").read_text()


def seed_examples() -> list[list[tuple[str, str | None]]]:
    """Return the SQL examples of tests/seeds: (statement, the output in its comment)."""
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
    assert spark_rows(session.table(f"{tiered_fmt}.default.books")) == [(1, 25.2, 10, "This is a book")]
    assert expected == "1, 25.2, 10, 'This is a book'"


GROUPS = {
    "merge-engine": "partial-update",
    "rowkind.field": "kind",
    "fields.g.sequence-group": "a,n",
    "fields.n.aggregate-function": "sum",
    "fields.h.sequence-group": "b",
    "partial-update.remove-record-on-sequence-group": "g",
}
GROUP_COLUMNS = "k INT, kind STRING, g INT, a STRING, n INT, h INT, b STRING, c STRING"


@pytest.mark.full
@pytest.mark.parametrize("compact", [True, False])
def test_a_delete_of_a_listed_group_removes_the_row_and_leaves_a_threshold(
    session: Session, tiered_fmt: str, compact: bool
) -> None:
    table = make(session, tiered_fmt, GROUP_COLUMNS, **GROUPS)

    def step(*versions: dict[str, Any]) -> list[tuple[Any, ...]]:
        put_dicts(table, *versions)
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


@pytest.mark.full
@pytest.mark.tiered
def test_a_threshold_has_no_values_not_even_of_a_not_null_column(session: Session, fmt: str) -> None:
    """D5, E3: compaction keeps it of a removed row; Iceberg's files record which columns have no NULL."""
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


@pytest.mark.full
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
        put_dicts(table, {"k": 1, "g": g, "l": text, "f": text})
        table.compact(full=True)
        assert {f.tier for f in table.splits().files} == {Tier.BASE}
    assert spark_rows(table) == [(1, 3, "z,a,b,c", "z")]


def test_sequence_field_with_a_late_delete(session: Session, tiered_fmt: str) -> None:
    options = {
        "merge-engine": "aggregation", "sequence.field": "s", "rowkind.field": "kind",
        "fields.n.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true",
    }  # fmt: skip
    table = make(session, tiered_fmt, "k INT, s INT, kind STRING, n INT, v STRING", **options)
    put_dicts(table, {"k": 1, "s": 10, "kind": "+I", "n": 1, "v": "ten"}, {"k": 1, "s": 20, "kind": "+I", "n": 2})
    table.compact(full=True)
    put_dicts(table, {"k": 1, "s": 15, "kind": "-D"})
    assert spark_rows(table) == [(1, 20, "+I", 2, None)]
    table.compact(full=True)
    put_dicts(table, {"k": 1, "s": 12, "kind": "+I", "n": 100, "v": "before the delete"})
    put_dicts(table, {"k": 1, "s": 16, "kind": "-U", "n": 5})  # D3: ignored
    assert spark_rows(table) == [(1, 20, "+I", 2, None)]


def test_a_sum_out_of_range_is_an_error_of_the_read_that_later_rows_repair(session: Session, tiered_fmt: str) -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = make(session, tiered_fmt, "k STRING, n BIGINT, v STRING", **options)
    most = 2**63 - 1
    put_dicts(table, {"k": "big", "n": most, "v": "a"}, {"k": "big", "n": most}, {"k": "small", "n": 1})
    table.compact(full=True)
    with pytest.raises(Exception, match=r"NUMERIC_VALUE_OUT_OF_RANGE: column 'n' .*k = big.*18446744073709551614"):
        table.to_df().collect()
    assert [tuple(r) for r in table.to_df(where="k = 'small'").collect()] == [("small", 1, None)]
    put_dicts(table, {"k": "big", "n": -most})
    assert spark_rows(table) == [("big", most, "a"), ("small", 1, None)]
    table.compact(full=True)
    assert {f.tier for f in table.splits().files} == {Tier.BASE}
    assert spark_rows(table) == [("big", most, "a"), ("small", 1, None)]


@pytest.mark.full
def test_a_sum_of_more_digits_than_spark_has_is_no_null(session: Session, tiered_fmt: str) -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = make(session, tiered_fmt, "k STRING, n DECIMAL(38,0)", **options)
    put_dicts(table, {"k": "big", "n": Decimal("6e37")}, {"k": "small", "n": Decimal(1)}, {"k": "none"})
    table.compact(full=True)
    put_dicts(table, {"k": "big", "n": Decimal("6e37")}, {"k": "small", "n": Decimal(2)})
    for _ in range(2):
        with pytest.raises(Exception, match=r"NUMERIC_VALUE_OUT_OF_RANGE: column 'n' .*k = big.*of many digits"):
            table.to_df().collect()
        read = table.to_df(where="k <> 'big'").collect()
        assert {tuple(r) for r in read} == {("small", Decimal(3)), ("none", None)}
        table.compact(full=True)


def test_first_row_keeps_what_came_first(session: Session, tiered_fmt: str) -> None:
    table = make(session, tiered_fmt, "k INT, v STRING", **{"merge-engine": "first-row"})
    put_dicts(table, {"k": 1, "v": "first"}, {"k": 1, "v": "second"}, {"k": 2, "v": None})
    table.compact(full=True)
    put_dicts(table, {"k": 1, "v": "third"}, {"k": 2, "v": "late"}, {"k": 3, "v": "new"})
    assert spark_rows(table) == [(1, "first"), (2, None), (3, "new")]
    merged = session.sql(
        f"MERGE INTO {table.name} t USING (VALUES (3, 'x'), (4, 'y')) AS s(k, v) ON t.k = s.k "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert merged.first()["num_inserted_rows"] == 1
    for statement in (
        f"UPDATE {table.name} SET v = 'x'",
        f"DELETE FROM {table.name}",
        f"MERGE INTO {table.name} t USING (VALUES (1)) AS s(k) ON t.k = s.k WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(TrinityError, match="first-row") as refused:
            session.sql(statement)
        assert refused.value.code == "NOT_SUPPORTED"
    assert spark_rows(table) == [(1, "first"), (2, None), (3, "new"), (4, "y")]


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
    put_dicts(table, *({"p": k % 2, "k": k} for k in range(200)))
    table.compact(full=True)
    for n in range(12):
        put_dicts(table, {"p": 1, "k": 1, "v": str(n), "w": str(n)}, {"p": 0, "k": 2, "v": str(n), "w": None})
    table.compact()
    assert {f.tier for f in table.splits().files} == {Tier.BASE, Tier.LOG}
    listed = ",".join(map(str, range(12)))
    found = [tuple(r) for r in table.to_df(where="k IN (1, 2)").collect()]
    assert sorted(found) == [(0, 2, listed, None), (1, 1, listed, "11")]


# -- functions of others --------------------------------------------------------------------------------


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
    """Install a package with an aggregate function."""
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
    put_dicts(table, {"k": 1, "v": "aa"}, {"k": 1, "v": "bbb"})
    table.compact(full=True)
    put_dicts(table, {"k": 1, "v": "cc"})
    assert spark_rows(table) == [(1, "bbb")]
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
    put_dicts(table, *({"k": k, "n": 1} for k in range(20)))
    table.compact(full=True)
    put_dicts(table, *({"k": k, "n": 10} for k in range(15, 25)))
    expected = {**dict.fromkeys(range(15), 1), **dict.fromkeys(range(15, 20), 11), **dict.fromkeys(range(20, 25), 10)}
    assert spark_rows(table) == sorted(expected.items(), key=str)
