"""SQL in this process: definitions, INSERT and queries, without Spark."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.support.refusals import refused
from tests.support.without_spark import run_without_spark
from trinity import Column, Session, TrinityError


def answer(session: Session, text: str) -> list[tuple[object, ...]]:
    found = session.sql(text)
    assert found.engine == "local"
    return [tuple(row) for row in found.collect()]


@pytest.fixture
def bought(local: Session, local_fmt: str) -> str:
    """Make the orders of two customers in each format, one of them in two versions."""
    name = f"{local_fmt}.default.orders"
    local.sql(
        f"CREATE TABLE {name} (id INT, who STRING, amount DECIMAL(9,2), day DATE, n BIGINT, PRIMARY KEY (id)) "
        "COMMENT 'of customers'"
    )
    local.sql(
        f"INSERT INTO {name} VALUES (1, 'ann', 1.50, DATE '2024-01-31', 10), (2, 'bob', 2, DATE '2024-02-01', NULL), "
        "(3, 'ann', 3.25, NULL, 30)"
    )
    local.sql(f"INSERT INTO {name} (id, who, n) VALUES (2, 'bob', 20)")
    return name


def test_definitions(local: Session, local_fmt: str) -> None:
    local.sql(f"CREATE SCHEMA {local_fmt}.sales")
    local.sql(f"USE {local_fmt}.sales")
    local.sql("CREATE TABLE t (k INT, v STRING DEFAULT 'x', PRIMARY KEY (k)) TBLPROPERTIES ('bucket' = '2')")
    assert answer(local, "SHOW TABLES") == [("sales", "t", False)]
    assert ("sales",) in answer(local, f"SHOW SCHEMAS IN {local_fmt}")
    assert answer(local, "DESCRIBE t")[0][:2] == ("k", "int")
    assert answer(local, "SHOW COLUMNS IN t") == [("k",), ("v",)]
    assert ("bucket", "2") in answer(local, "SHOW TBLPROPERTIES t")
    made = str(answer(local, "SHOW CREATE TABLE t")[0][0])
    local.sql("DROP TABLE t")
    assert answer(local, "SHOW TABLES") == []
    local.sql(made)
    assert local.table("t").definition.primary_key == ("k",)
    local.sql("INSERT INTO t (k) VALUES (1)")
    assert answer(local, "SELECT * FROM t") == [(1, "x")]
    assert answer(local, "TRUNCATE TABLE t")[0][2] == 1


def test_an_insert_counts_its_rows(local: Session, bought: str) -> None:
    assert answer(local, f"INSERT INTO {bought} SELECT * FROM {bought} WHERE who = 'ann'") == [(2, 0, 0, 2)]
    assert answer(local, f"SELECT count(*) FROM {bought}") == [(3,)]


@pytest.mark.parametrize(
    ("values", "code", "message"),
    [
        ("(3000000000, 'x')", "NUMERIC_VALUE_OUT_OF_RANGE", "column 'id'"),
        ("('a', 'x')", "TYPE_MISMATCH", "column 'id'"),
        ("(1)", "TYPE_MISMATCH", "fills 2 columns"),
        ("(NULL, 'x')", "CONSTRAINT_VIOLATION", "id"),
        ("(hash(1), 'x')", "NOT_SUPPORTED", "only Spark evaluates"),
    ],
)
def test_an_insert_that_is_refused_changes_nothing(
    local: Session, bought: str, values: str, code: str, message: str
) -> None:
    before = local.table(bought).splits().version
    with pytest.raises(TrinityError, match=f"(?i){message}") as refused:
        local.sql(f"INSERT INTO {bought} (id, who) VALUES {values}")
    assert refused.value.code == code
    assert local.table(bought).splits().version == before


def test_an_insert_meets_checks(local: Session, local_fmt: str) -> None:
    local.sql(f"CREATE TABLE {local_fmt}.default.c (k INT, CONSTRAINT small CHECK (k < 10))")
    local.sql(f"INSERT INTO {local_fmt}.default.c VALUES (1)")
    with pytest.raises(TrinityError, match="small") as refused:
        local.sql(f"INSERT INTO {local_fmt}.default.c VALUES (2), (11)")
    assert refused.value.code == "CONSTRAINT_VIOLATION"
    assert answer(local, f"SELECT * FROM {local_fmt}.default.c") == [(1,)]


QUERIES = [
    ("SELECT id, who FROM {t} WHERE n > 10 ORDER BY id DESC", [(3, "ann"), (2, "bob")]),
    ("SELECT * FROM {t} WHERE day = DATE '2024-01-31'", [(1, "ann", Decimal("1.50"), dt.date(2024, 1, 31), 10)]),
    ("SELECT who, count(*) AS c, sum(n) AS s, max(amount) AS m FROM {t} GROUP BY who ORDER BY who",
     [("ann", 2, 40, Decimal("3.25")), ("bob", 1, 20, None)]),
    ("SELECT who AS w FROM {t} GROUP BY 1 HAVING count(*) > 1", [("ann",)]),
    ("SELECT count(*), count(amount), count(DISTINCT who), min(day) FROM {t}", [(3, 2, 2, dt.date(2024, 1, 31))]),
    ("SELECT count(*) FROM {t} WHERE id > 5", [(0,)]),
    ("SELECT who, sum(n) FROM {t} WHERE id > 5 GROUP BY who", []),
    ("SELECT DISTINCT who FROM {t} UNION ALL SELECT 'zoe' ORDER BY who LIMIT 2", [("ann",), ("bob",)]),
    ("WITH b AS (SELECT id, n FROM {t} WHERE n > 10) SELECT o.id, b.n FROM {t} o LEFT JOIN b ON o.id = b.id ORDER BY 1",
     [(1, None), (2, 20), (3, 30)]),
    ("SELECT a.id FROM {t} a JOIN {t} b ON a.who = b.who WHERE b.id = 1 AND a.n > 10", [(3,)]),
    ("SELECT who, a.id, b.* FROM {t} a LEFT JOIN VALUES (1, 'ann'), (9, '') AS b(id, who) USING (who, id) ORDER BY 2",
     [("ann", 1, "ann", 1), ("bob", 2, None, None), ("ann", 3, None, None)]),
    ("SELECT * FROM (SELECT id, who FROM {t}) a FULL JOIN VALUES (3, 'x'), (9, 'y') AS b(id, v) USING (id) ORDER BY id",
     [(1, "ann", None), (2, "bob", None), (3, "ann", "x"), (9, None, "y")]),
    ("SELECT a.id, b.id AS other FROM {t} a, {t} b WHERE a.who = b.who AND a.id < b.id", [(1, 3)]),
    ("SELECT count(*) FROM {t} CROSS JOIN VALUES (1), (2) AS v(k)", [(6,)]),
    ("SELECT o.id, v.k FROM {t} o CROSS JOIN VALUES (1), (2), (9) AS v(k) ON o.id = v.k ORDER BY 1", [(1, 1), (2, 2)]),
    ("SELECT o.id FROM {t} o CROSS JOIN VALUES (2) AS v(k) ON o.id > v.k AND o.who = 'ann'", [(3,)]),
    ("SELECT x.c FROM (SELECT who, count(*) AS c FROM {t} GROUP BY who) AS x ORDER BY x.c LIMIT 1 OFFSET 1", [(2,)]),
    ("SELECT id FROM {t} ORDER BY amount NULLS LAST, id", [(1,), (3,), (2,)]),
    ("SELECT * FROM VALUES (1, 'a'), (2.5, NULL) AS v(k, t)", [(Decimal("1.0"), "a"), (Decimal("2.5"), None)]),
    ("SELECT 1 AS one, 'a' AS a", [(1, "a")]),
    ("SELECT id, posexplode(array(n, id)) FROM {t} WHERE id > 1 ORDER BY 1, pos DESC",
     [(2, 1, 2), (2, 0, 20), (3, 1, 3), (3, 0, 30)]),
    ("SELECT explode(map('a', 1, 'b', 2)) AS (k, v) ORDER BY v DESC", [("b", 2), ("a", 1)]),
    ("SELECT v.n, count(*) FROM {t} LATERAL VIEW explode(sequence(1, id)) v AS n WHERE v.n > 1 GROUP BY 1 ORDER BY 1",
     [(2, 2), (3, 1)]),
    ("SELECT id, x FROM {t} LATERAL VIEW OUTER explode(sequence(day, DATE'2024-02-01')) v AS x WHERE id < 3 ORDER BY 2",
     [(2, None), (1, dt.date(2024, 1, 31)), (1, dt.date(2024, 2, 1))]),
    ("SELECT who, count(*) AS c, grouping(who) AS g FROM {t} GROUP BY ROLLUP(who) ORDER BY g, who",
     [("ann", 2, 0), ("bob", 1, 0), (None, 3, 1)]),
    ("SELECT who, id, sum(n) AS s, grouping_id() AS i FROM {t} GROUP BY CUBE(who, id) HAVING s > 30 ORDER BY s, i",
     [("ann", None, 40, 1), (None, None, 60, 3)]),
    ("SELECT who, day FROM {t} WHERE id = 1 GROUP BY GROUPING SETS ((who, day), day, ()) ORDER BY 1 DESC, 2 DESC",
     [("ann", dt.date(2024, 1, 31)), (None, dt.date(2024, 1, 31)), (None, None)]),
    ("SELECT who FROM {t} WHERE id > 9 GROUP BY ROLLUP(who)", []),
    ("SELECT max_by(who, n), min_by(n, id) FILTER (WHERE id > 3) AS d, collect_set(day) AS l FROM {t} WHERE id > 2",
     [("ann", None, [])]),
    ("SELECT who, collect_set(who) AS s FROM {t} GROUP BY who ORDER BY who", [("ann", ["ann"]), ("bob", ["bob"])]),
    ("SELECT x.k FROM (SELECT NULL AS k, id FROM {t}) AS x WHERE x.k IS NULL AND x.id > 2 ORDER BY x.id", [(None,)]),
    # no row evaluates the day after the last TIMESTAMP
    ("SELECT id FROM {t} WHERE COALESCE(TIMESTAMP'2024-01-01 00:00:00', DATE_ADD(day, 2147460000)) > day", []),
    ("SELECT DATE_FORMAT(TO_DATE(v, 'yyyy-MM-dd'), 'yyyy') AS y FROM VALUES ('-0045-12-31'), ('+10000-01-01') t(v)",
     [("-0045",), ("+10000",)]),
    ("SELECT DATE_FORMAT(TO_DATE(v, 'yyyyMMdd'), 'dd.MM.yyyy') AS y FROM VALUES ('+100000102') AS t(v)",
     [("02.01.+10000",)]),
]  # fmt: skip


def test_queries(local: Session, bought: str) -> None:
    for text, rows in QUERIES:
        assert answer(local, text.format(t=bought)) == rows, text


def test_max_by_keeps_the_sign_of_zero(local: Session) -> None:
    ((value,),) = answer(local, "SELECT max_by(v, k) AS m FROM VALUES (-0.0D, 1) AS t(v, k)")
    assert repr(value) == "-0.0"


def test_names_and_types_of_a_result_are_sparks(local: Session, bought: str) -> None:
    found = local.sql(f"SELECT ID, count(*), sum(n), count(DISTINCT who), sum(amount) FROM {bought} GROUP BY id")
    assert found.columns == ["ID", "count(1)", "sum(n)", "count(DISTINCT who)", "sum(amount)"]
    assert found.schema.types == [pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.decimal128(19, 2)]


def test_a_result_keeps_its_version(local: Session, bought: str) -> None:
    version = local.table(bought).splits().version
    found = local.sql(f"SELECT count(*) FROM {bought}")
    local.sql(f"INSERT INTO {bought} (id) VALUES (4)")
    assert found.collect() == [(3,)]
    assert answer(local, f"SELECT count(*) FROM {bought} VERSION AS OF {version}") == [(3,)]


def test_the_log_has_each_version(local: Session, bought: str) -> None:
    rows = local.table(bought).log().collect()
    assert {(row.n, row["_pos"]) for row in rows if row.who == "bob"} == {(20, 0), (None, 1)}
    assert {row["_tier"] for row in rows} == {"log"}
    assert len({row["_commit_version"] for row in rows}) == len({row["_file"] for row in rows}) == 2


def test_a_table_is_made_of_a_query(local: Session, bought: str, local_fmt: str) -> None:
    made = f"{local_fmt}.default.totals"
    assert answer(local, f"CREATE TABLE {made} (w, s) AS SELECT who, sum(n) AS n FROM {bought} GROUP BY who")[0][0] == 2
    assert answer(local, f"SELECT * FROM {made} ORDER BY w") == [("ann", 40), ("bob", 20)]


def test_explain_names_the_executor(local: Session, bought: str) -> None:
    (text,) = answer(local, f"EXPLAIN SELECT who, count(*) AS c FROM {bought} GROUP BY who")[0]
    assert "executor: this process" in str(text)
    assert str(text).endswith("the query is run by this process, and DuckDB in it")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("SELECT nope FROM {t}", "COLUMN_NOT_FOUND", "nope"),
        ("SELECT * FROM {t} WHERE who", "TYPE_MISMATCH", "BOOLEAN"),
        ("SELECT * FROM {t}s", "TABLE_NOT_FOUND", "orders"),
        ("SELECT * FROM {t} a JOIN {t} b USING (nope)", "COLUMN_NOT_FOUND", "nope"),
        ("SELECT * FROM {t} a NATURAL JOIN {t} b", "NOT_SUPPORTED", "'method' of JOIN"),
        ("SELECT id + 1 AS i, i * 2 AS j FROM {t}", "NOT_SUPPORTED", "'i' is a column of the same SELECT"),
        ("SELECT * FROM (SELECT id AS i, n AS I FROM {t}) q", "NOT_SUPPORTED", "two columns of one name"),
        ("SELECT who, id FROM {t} GROUP BY who", "NOT_SUPPORTED", "'id' has a column that is no key of the groups"),
        ("SELECT transform(array(1), x -> x) AS a FROM {t}", "NOT_SUPPORTED", "only Spark evaluates 'TRANSFORM"),
        ("SELECT stddev(n) OVER () AS s FROM {t}", "NOT_SUPPORTED", "only Spark"),
        ("SELECT max_by(array(v), 1) AS m FROM VALUES (1.0D) AS t(v)", "NOT_SUPPORTED", "makes -0.0 within"),
        ("SELECT TIMESTAMP'2024-01-01 00:00:00+18:01' AS t", "NOT_SUPPORTED", "no plain text"),
        ("SELECT corr(n, n) AS s FROM {t}", "NOT_SUPPORTED", "only Spark computes"),
        ("SELECT count(DISTINCT *) AS c FROM {t}", "NOT_SUPPORTED", "only Spark evaluates"),
        ("SELECT count(* EXCEPT (id)) AS c FROM {t}", "NOT_SUPPORTED", "only Spark evaluates"),
        ("SELECT count(DISTINCT *) FILTER (WHERE id > 1) AS c FROM {t}", "NOT_SUPPORTED", "only Spark evaluates"),
        ("SELECT count(* EXCEPT (id)) FILTER (WHERE id > 1) AS c FROM {t}", "NOT_SUPPORTED", "only Spark evaluates"),
        ("SELECT bool_or(id) AS b FROM {t}", "NOT_SUPPORTED", "a condition of int"),
        ("SELECT every(id > 1, who) AS b FROM {t}", "NOT_SUPPORTED", "only Spark evaluates"),
        *[
            (f"SELECT {name}(who) {over} AS b FROM {{t}}", "NOT_SUPPORTED", "a condition of string")
            for name in ("bool_or", "some", "bool_and", "every")
            for over in ("", "OVER (PARTITION BY id)")
        ],
        ("SELECT count(t.*) AS c FROM {t} AS t", "NOT_SUPPORTED", "column of its own"),
        ("SELECT explode(array(n)) + 1 AS e FROM {t}", "NOT_SUPPORTED", "only Spark evaluates 'EXPLODE"),
        ("SELECT explode(array(n)), explode(array(n)) FROM {t}", "NOT_SUPPORTED", "by more than one function"),
        ("SELECT count(*), explode(array(1)) FROM {t}", "NOT_SUPPORTED", "with groups"),
        ("SELECT posexplode(array(n)) AS x FROM {t}", "NOT_SUPPORTED", "different number of columns"),
        ("SELECT explode(who) FROM {t}", "NOT_SUPPORTED", "only Spark evaluates 'EXPLODE"),
        ("SELECT who FROM {t} GROUP BY ROLLUP(who), CUBE(id)", "NOT_SUPPORTED", "several sets of groups"),
        ("SELECT who FROM {t} GROUP BY ROLLUP(who, who)", "NOT_SUPPORTED", "twice"),
        ("SELECT grouping(who) AS g FROM {t} GROUP BY who", "NOT_SUPPORTED", "what is wrong"),
        ("SELECT grouping_id(id, who) AS g FROM {t} GROUP BY CUBE(who, id)", "NOT_SUPPORTED", "other keys"),
        ("SELECT collect_list(n) OVER () AS g FROM {t}", "NOT_SUPPORTED", "over a window"),
        ("SELECT * FROM {t} TABLESAMPLE (10 ROWS)", "NOT_SUPPORTED", "only"),
        ("SET spark.sql.ansi.enabled = true", "NOT_SUPPORTED", "engine='local'"),
        ("SHOW FUNCTIONS", "NOT_SUPPORTED", "engine='local'"),
        ("SELECT", "SYNTAX_ERROR", "missing"),
        ("SELECT count(*) AS n FROM (SELECT FROM {t}) x", "SYNTAX_ERROR", "missing"),
        ("DELETE FROM {t} WHERE NOT EXISTS (SELECT FROM {t})", "SYNTAX_ERROR", "missing"),
        ("INSERT INTO {t} SET id = 1", "SYNTAX_ERROR", "no query"),
        ("EXPLAIN", "SYNTAX_ERROR", "after EXPLAIN"),
    ],
)
def test_what_needs_spark_says_so(local: Session, bought: str, text: str, code: str, message: str) -> None:
    with pytest.raises(TrinityError, match=message) as refused:
        local.sql(text.format(t=bought))
    assert refused.value.code == code


def test_a_damaged_file_is_named(local: Session, bought: str, local_fmt: str) -> None:
    if local_fmt == "memory":
        return
    (first, *_) = local.table(bought).splits().files
    Path(first.path.removeprefix("file://")).write_bytes(b"no parquet")
    found = local.sql(f"SELECT who, count(*) AS c FROM {bought} GROUP BY who")
    with pytest.raises(TrinityError, match=Path(first.path).name) as refused:
        found.collect()
    assert refused.value.code == "BAD_DATA"


def test_sql_needs_no_pyspark(warehouse: Path) -> None:
    code = """
import sys, trinity
session = trinity.connect(sys.argv[1])
session.sql("CREATE TABLE t (k INT, v STRING, PRIMARY KEY (k))")
session.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (1, 'c')")
print(session.sql("SELECT v, count(*) AS n FROM t GROUP BY v ORDER BY v").collect())
print(session.sql("SHOW TABLES").collect()[0].tableName, session.table("t").history().count())
"""
    assert run_without_spark(code, str(warehouse)).splitlines() == ["[Row(v='b', n=1), Row(v='c', n=1)]", "t 2"]


def test_insert_of_expressions_without_names(local: Session) -> None:
    local.sql("CREATE TABLE t (k INT, n BIGINT, s STRING, PRIMARY KEY (k))")
    local.sql("INSERT INTO t VALUES (1, 10, NULL)")
    local.sql(
        "INSERT INTO t (k, n) SELECT k + 1, n * 2 FROM t UNION ALL SELECT k + 2, n * 3 FROM t ORDER BY 1 DESC LIMIT 2"
    )
    local.sql("INSERT INTO t SELECT max(k) + 1, count(*), 'x' || 'y' FROM t")
    found = local.sql("SELECT k, n, s FROM t ORDER BY k").fetchall()
    assert found == [(1, 10, None), (2, 20, None), (3, 30, None), (4, 3, "xy")]


def test_nulls_without_a_type_are_inserted(local: Session, bought: str) -> None:
    local.sql(f"INSERT INTO {bought} SELECT id + 10, NULL, NULL, day, NULL FROM {bought} WHERE id = 1")
    assert answer(local, f"SELECT * FROM {bought} WHERE id > 9") == [(11, None, None, dt.date(2024, 1, 31), None)]
    with refused("NOT_SUPPORTED", "'v' is NULL without a type"):
        local.sql(f"MERGE INTO {bought} t USING (SELECT 1 AS id, NULL AS v) s ON t.id = s.id WHEN MATCHED THEN DELETE")


def test_a_subquery_does_not_take_columns_of_its_lateral_view_from_the_row_around_it(
    local: Session, bought: str
) -> None:
    inner = f"SELECT 1 FROM {bought} AS o LATERAL VIEW explode(sequence(1, 2)) v AS k WHERE k = o.id AND o.who = 'ann'"
    assert answer(local, f"SELECT k FROM (SELECT id AS k FROM {bought}) AS q WHERE EXISTS ({inner}) AND k = 2") == [
        (2,)
    ]
    local.sql("CREATE TABLE q (k INT, v INT, PRIMARY KEY (k))")
    local.sql("INSERT INTO q VALUES (2, 0)")
    assert answer(local, f"UPDATE q SET v = 1 WHERE EXISTS ({inner})")[0][0] == 1


def test_a_column_may_have_schema_and_catalog_before_its_table(local: Session, bought: str) -> None:
    schema, table = bought.partition(".")[2].split(".")
    for name in (f"{schema}.{table}", bought):
        text = f"SELECT {name}.who, count({name}.id) AS n FROM {bought} WHERE {name}.id > 1 GROUP BY {name}.who"
        assert answer(local, f"{text} ORDER BY {name}.who") == [("ann", 1), ("bob", 1)]
    own = f"SELECT {schema}.{table}.n FROM {bought} AS o"
    with pytest.raises(TrinityError, match="no column of its own"):
        answer(local, own)


def test_rows_without_from(local: Session) -> None:
    assert answer(local, "SELECT -5 WHERE 1 = 1") == [(-5,)]
    assert local.sql("SELECT -5").columns == ["-5"]
    assert answer(local, "SELECT 1 AS one WHERE 1 > 1") == []


def test_wide_decimals_are_divided(local: Session) -> None:
    divided = "SELECT CAST(3.5 AS DECIMAL(38, 20)) / CAST({} AS DECIMAL(38, 20)) AS q"
    assert answer(local, divided.format("0.5")) == [(Decimal(7),)]
    with pytest.raises(TrinityError, match="divided by zero"):
        answer(local, divided.format("0"))


def test_structs_are_inserted_by_place(local: Session, local_fmt: str) -> None:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE n (id INT, pair STRUCT<a: INT, b: STRUCT<c: STRING>>)")
    local.sql("INSERT INTO n VALUES (1, struct(2, struct('x'))), (2, NULL)")
    local.sql("INSERT INTO n (pair, id) SELECT struct(id + 6, struct('y')), id + 2 FROM n WHERE id = 1")
    assert local.sql("SELECT * FROM n ORDER BY id").to_arrow().to_pylist() == [
        {"id": 1, "pair": {"a": 2, "b": {"c": "x"}}},
        {"id": 2, "pair": None},
        {"id": 3, "pair": {"a": 7, "b": {"c": "y"}}},
    ]
    for rows in ("VALUES (4, struct(1, struct('x'), 3))", "BY NAME SELECT 4 AS id, struct(1, struct('x')) AS pair"):
        with refused("NOT_SUPPORTED", "pair", "struct<col1:int,"):
            local.sql(f"INSERT INTO n {rows}")
    assert local.table("n").count() == 3


def test_a_statement_has_one_present_time(local: Session) -> None:
    local.sql("CREATE TABLE t (id INT, at TIMESTAMP, day DATE)")
    before = dt.datetime.now(dt.UTC)
    local.sql("INSERT INTO t VALUES (1, current_timestamp(), current_date), (2, now() + INTERVAL 1 DAY, NULL)")
    [first, second] = local.sql("SELECT at, day FROM t ORDER BY id").to_pylist()
    assert before <= first["at"] <= dt.datetime.now(dt.UTC)
    assert second["at"] - first["at"] == dt.timedelta(days=1)
    assert first["day"] in (before.date(), dt.datetime.now(dt.UTC).date())
    found = local.sql("SELECT id, now() AS n, current_timestamp AS c FROM t WHERE at <= current_timestamp()").collect()
    assert [(row.id, row.n) for row in found] == [(1, found[0].c)]
    local.sql("UPDATE t SET day = current_date() WHERE at > now()")
    assert local.sql("SELECT count(*) FROM t WHERE day >= date_sub(current_date(), 1)").first() == (2,)
    with refused("NOT_SUPPORTED", "CURRENT_TIMESTAMP"):
        local.sql("ALTER TABLE t ADD CONSTRAINT c CHECK (at <= current_timestamp())")


def test_a_session_without_spark_runs_no_statement_by_it(local: Session) -> None:
    assert local.sql("SELECT 1 AS k", engine="local").first().k == 1
    with refused("INVALID_ARGUMENTS", "the session has engine='local', and never starts Spark"):
        local.sql("SELECT 1 AS k", engine="spark")


def test_keys_of_groups_may_differ_in_a_literals_case(local: Session) -> None:
    rows = "VALUES (TIMESTAMP_NTZ '2024-03-01 10:07:00'), (TIMESTAMP_NTZ '2024-03-01 10:08:00') AS t(at)"
    months, minutes = "date_format(at, 'MM')", "date_format(at, 'mm')"
    for by in (f"{months}, {minutes}", f"{minutes}, {months}", "1, 2", "ALL"):
        query = f"SELECT {months} AS m, DATE_FORMAT(AT, 'mm') AS n, count(*) AS c FROM {rows} GROUP BY {by} ORDER BY n"
        assert local.sql(query).fetchall() == [("03", "07", 1), ("03", "08", 1)], by
    assert local.sql(f"SELECT Year(at) + 1 AS y FROM {rows} GROUP BY YEAR(`AT`) + 1").fetchall() == [(2025,)]
    with refused("NOT_SUPPORTED", "no key of the groups"):
        local.sql(f"SELECT {minutes} AS n FROM {rows} GROUP BY {months}").collect()


def test_floating_point_keys_are_groups_as_sparks(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.near", [Column("id", "int"), Column("x", "double")])
    nan = float("nan")
    table.append(pa.table({"id": pa.array(range(6), pa.int32()), "x": [0.0, -0.0, nan, nan, 1.5, None]}))
    found = local.sql(
        f"SELECT x, count(*) AS n, sum(x) AS s FROM {local_fmt}.default.near GROUP BY x ORDER BY x"
    ).collect()
    assert repr([(r.x, r.n, r.s) for r in found]) == "[(None, 1, None), (0.0, 2, 0.0), (1.5, 1, 1.5), (nan, 2, nan)]"
    distinct = local.sql(f"SELECT DISTINCT x FROM {local_fmt}.default.near ORDER BY x DESC")
    assert repr([r.x for r in distinct.collect()]) == "[nan, 1.5, 0.0, None]"


def test_an_embedded_engine_that_is_too_old_or_absent_is_named(local: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = "SELECT v, count(*) AS n FROM VALUES (1), (1) AS t(v) GROUP BY v"
    monkeypatch.setattr(duckdb, "__version__", "1.3.2")
    with refused("CONFIGURATION_INVALID", "DuckDB 1.3.2 is too old", "1.4 or newer", "'trinity-merge[local]'"):
        local.sql(grouped).collect()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with refused("CONFIGURATION_INVALID", "'duckdb' is not installed: pip install 'trinity-merge[local]'"):
        local.sql(grouped).collect()
    assert local.sql("SELECT v FROM VALUES (1) AS t(v)").first().v == 1
    monkeypatch.undo()
    assert local.sql(grouped).first().n == 2


def test_a_query_that_fits_into_no_memory_says_so(
    local: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connect = duckdb.connect

    def with_little(**arguments: Any) -> duckdb.DuckDBPyConnection:
        connection = connect(**arguments)
        connection.execute("SET memory_limit = '20MB'")
        connection.execute("SET max_temp_directory_size = '0MB'")
        return connection

    table = local.create_table("parquet.default.wide", [Column("id", "int"), Column("x", "string")])
    table.append(pa.table({"id": pa.array(range(200_000), pa.int32()), "x": [f"{n}" * 20 for n in range(200_000)]}))
    monkeypatch.setattr(duckdb, "connect", with_little)
    with refused("CONFIGURATION_INVALID", "does not fit into memory and spill folder"):
        local.sql("SELECT x, count(*) AS n FROM parquet.default.wide GROUP BY x ORDER BY x DESC").collect()
    assert table.to_arrow().num_rows == 200_000
