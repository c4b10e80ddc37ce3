"""SQL on tables, through ``session.sql``, on every format."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.tables import query
from trinity.errors import TrinityError
from trinity.session import Session

pytestmark = pytest.mark.inner

COUNTS = ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"]


@pytest.fixture
def sales(session: Session, fmt: str) -> Session:
    """Return a session whose current schema is ``<fmt>.sales``, with the keyed table ``orders`` of three rows."""
    session.sql(f"CREATE SCHEMA {fmt}.sales")
    session.sql(f"USE {fmt}.sales")
    session.sql(
        "CREATE TABLE orders (id INT, ts BIGINT, amount DECIMAL(10,2) DEFAULT 1.5, note VARCHAR, "
        "PRIMARY KEY (id) NOT ENFORCED) WITH ('watermark-key' = 'ts')"
    )
    session.sql("INSERT INTO orders VALUES (1, 10, 2.5, 'a'), (2, 20, DEFAULT, NULL), (3, NULL, 7, 'c')")
    return session


def sql_refusal(session: Session, code: str, text: str, dialect: str = "spark") -> str:
    with pytest.raises(TrinityError) as caught:
        session.sql(text, dialect=dialect)
    assert caught.value.code == code, caught.value
    assert "_trinity_" not in caught.value.message
    return caught.value.message


# -- schemas and names ----------------------------------------------------------------------------------


@pytest.mark.tiered
def test_schemas(session: Session, fmt: str) -> None:
    session.sql(f"USE CATALOG {fmt}")
    assert (session.current_catalog, session.current_schema) == (fmt, "default")
    session.sql("CREATE SCHEMA a")
    session.sql("CREATE DATABASE IF NOT EXISTS a;")
    sql_refusal(session, "SCHEMA_ALREADY_EXISTS", "CREATE SCHEMA a")
    assert query(session, f"SHOW SCHEMAS IN {fmt}") == [("a",), ("default",)]
    assert query(session, "SHOW DATABASES LIKE 'a*|x'") == [("a",)]
    session.sql("USE A -- any case")
    session.sql("CREATE TABLE t (a INT)")
    sql_refusal(session, "SCHEMA_NOT_EMPTY", "DROP SCHEMA a")
    assert query(session, "SHOW TABLES") == [("a", "t", False)]
    session.sql("DROP SCHEMA a CASCADE")
    session.sql("DROP SCHEMA IF EXISTS a")
    sql_refusal(session, "SCHEMA_NOT_FOUND", "DROP SCHEMA a")
    assert "'default'" in sql_refusal(session, "SCHEMA_NOT_FOUND", "USE defalt")
    sql_refusal(session, "CATALOG_NOT_FOUND", "CREATE SCHEMA nowhere.a")


def test_use_takes_a_catalog_too(session: Session) -> None:
    session.sql("USE iceberg")
    assert (session.current_catalog, session.current_schema) == ("iceberg", "default")
    session.sql("USE SCHEMA parquet.default")
    assert (session.current_catalog, session.current_schema) == ("parquet", "default")
    assert query(session, "SHOW CATALOGS") == [("delta",), ("iceberg",), ("parquet",)]


# -- CREATE, DROP, ALTER, SHOW --------------------------------------------------------------------------


@pytest.mark.tiered
def test_show_create_table_runs_again(session: Session, fmt: str) -> None:
    spaced = "b_c" if fmt == "delta" else "b c"
    session.sql(
        f"CREATE TABLE {fmt}.default.t (k STRING, `order` INT NOT NULL DEFAULT 3 COMMENT 'it''s', "
        f"s STRUCT<a: INT, `{spaced}`: ARRAY<STRING>>, d DECIMAL, w BIGINT, PRIMARY KEY (k)) "
        f"USING {fmt} TBLPROPERTIES ('watermark-key' = 'w', tombstone.retention = '3 days') COMMENT 'a table'"
    )
    text = query(session, f"SHOW CREATE TABLE {fmt}.default.t")[0][0]
    assert "_trinity_" not in text
    assert "PRIMARY KEY (k) NOT ENFORCED" in text
    before = session.table(f"{fmt}.default.t").definition
    session.sql(f"DROP TABLE {fmt}.default.t")
    session.sql(text)
    assert session.table(f"{fmt}.default.t").definition == before
    assert query(session, f"SHOW CREATE TABLE {fmt}.default.t")[0][0] == text


def test_names_that_delta_does_not_allow(session: Session) -> None:
    for text in ("`b c` INT", "s STRUCT<a: ARRAY<STRUCT<`x;y`: INT>>>"):
        assert "Delta" in sql_refusal(session, "NOT_SUPPORTED", f"CREATE TABLE delta.default.t ({text})")


@pytest.mark.tiered
def test_describe_and_show_columns(sales: Session, fmt: str) -> None:
    described = sales.sql("DESCRIBE TABLE orders")
    assert described.columns == ["col_name", "data_type", "comment"]
    assert [tuple(r) for r in described.collect()] == [
        ("id", "int", None),
        ("ts", "bigint", None),
        ("amount", "decimal(10,2)", None),
        ("note", "string", None),
    ]
    assert query(sales, "SHOW COLUMNS IN orders") == [("id",), ("ts",), ("amount",), ("note",)]
    detail = {r[0]: r[1] for r in query(sales, "DESC EXTENDED orders")}
    assert (detail["Provider"], detail["Primary Key"]) == (fmt, "id")
    assert query(sales, "SHOW TBLPROPERTIES orders") == [("watermark-key", "ts")]
    sql_refusal(sales, "TABLE_NOT_FOUND", f"DESCRIBE {fmt}.sales.nope")


@pytest.mark.tiered
def test_trino_and_flink_spellings(session: Session, fmt: str) -> None:
    session.sql(f"USE {fmt}.default")
    session.sql(
        "CREATE TABLE a (k INTEGER, v VARCHAR, n DECIMAL, at TIMESTAMP(3) WITH TIME ZONE) "
        "WITH (merge_engine = 'deduplicate', primary_key = ARRAY['k'], watermark_key = 'at')",
        dialect="trino",
    )
    a = session.table("a").definition
    assert a.primary_key == ("k",)
    assert [c.type for c in a.visible] == ["int", "string", "decimal(38,0)", "timestamp"]
    session.sql("CREATE TABLE b (k INT, v VARCHAR, PRIMARY KEY (k) NOT ENFORCED) WITH ('sequence.field' = 'v')")
    assert session.table("b").definition.primary_key == ("k",)


@pytest.mark.tiered
def test_create_table_refusals(sales: Session, fmt: str, tmp_path: Path) -> None:
    sql_refusal(sales, "TABLE_ALREADY_EXISTS", "CREATE TABLE orders (a INT)")
    sales.sql("CREATE TABLE IF NOT EXISTS orders (a INT)")
    sql_refusal(sales, "SCHEMA_NOT_FOUND", "CREATE TABLE nowhere.t (a INT)")
    sql_refusal(sales, "DUPLICATE_COLUMN_NAME", "CREATE TABLE t (a INT, A INT)")
    sql_refusal(sales, "COLUMN_NOT_FOUND", "CREATE TABLE t (a INT, PRIMARY KEY (b))")
    sql_refusal(sales, "INVALID_ARGUMENTS", f"CREATE TABLE t (a INT) LOCATION '{tmp_path}/missing'")
    sql_refusal(sales, "NOT_SUPPORTED", "CREATE TEMPORARY TABLE t (a INT)")
    sql_refusal(sales, "NOT_SUPPORTED", "CREATE VIEW t AS SELECT 1")
    other = "delta" if fmt != "delta" else "iceberg"
    assert other in sql_refusal(sales, "NOT_SUPPORTED", f"CREATE TABLE t (a INT) USING {other}")
    message = sql_refusal(
        sales, "INVALID_TABLE_PROPERTY", "CREATE TABLE t (a INT PRIMARY KEY) WITH ('watermark-kee'='a')"
    )
    assert "watermark-key" in message
    assert query(sales, "SHOW TABLES") == [("sales", "orders", False)]


@pytest.mark.tiered
def test_create_table_as_select(sales: Session, fmt: str) -> None:
    made = sales.sql(
        "CREATE TABLE copy (PRIMARY KEY (id)) WITH (watermark_key = 'ts') AS "
        "WITH q AS (SELECT id, ts, upper(note) AS note FROM orders) SELECT * FROM q WHERE id < 3"
    )
    assert made.columns == COUNTS
    assert made.collect()[0].num_inserted_rows == 2
    assert query(sales, "SELECT * FROM copy ORDER BY id") == [(1, 10, "A"), (2, 20, None)]
    sales.sql("INSERT INTO copy VALUES (1, 9, 'late'), (2, 21, 'newer')")
    assert query(sales, "SELECT * FROM copy ORDER BY id") == [(1, 10, "A"), (2, 21, "newer")]
    sales.sql("CREATE TABLE plain (x, y) AS SELECT id, note FROM orders")
    assert query(sales, "SELECT x FROM plain ORDER BY x") == [(1,), (2,), (3,)]
    sql_refusal(sales, "CONSTRAINT_VIOLATION", "CREATE TABLE bad (PRIMARY KEY (k)) AS SELECT CAST(NULL AS INT) AS k")
    sql_refusal(sales, "TYPE_MISMATCH", "CREATE TABLE bad AS SELECT NULL AS k")
    assert [r[1] for r in query(sales, "SHOW TABLES")] == ["copy", "orders", "plain"]


def test_drop_table(sales: Session) -> None:
    sales.sql("DROP TABLE orders")
    sales.sql("DROP TABLE IF EXISTS orders")
    sql_refusal(sales, "TABLE_NOT_FOUND", "DROP TABLE orders")


def test_alter_table(sales: Session) -> None:
    sales.sql("ALTER TABLE orders ADD COLUMNS (x INT COMMENT 'new', y ARRAY<STRING>)")
    sales.sql("ALTER TABLE orders ADD COLUMN z DATE")
    assert [r[0] for r in query(sales, "SHOW COLUMNS IN orders")] == ["id", "ts", "amount", "note", "x", "y", "z"]
    sales.sql("INSERT INTO orders (id, ts, x) VALUES (4, 40, 5)")
    assert query(sales, "SELECT id, x, y, z FROM orders WHERE id IN (1, 4) ORDER BY id") == [
        (1, None, None, None),
        (4, 5, None, None),
    ]
    sql_refusal(sales, "COLUMN_ALREADY_EXISTS", "ALTER TABLE orders ADD COLUMN X INT")
    sales.sql("ALTER TABLE orders SET TBLPROPERTIES ('tombstone.retention' = '3 days')")
    sales.sql("ALTER TABLE orders SET PROPERTIES comment = 'hello'", dialect="trino")
    assert sales.table("orders").properties["tombstone.retention"] == "3 days"
    assert sales.table("orders").properties["comment"] == "hello"
    sql_refusal(sales, "INVALID_TABLE_PROPERTY", "ALTER TABLE orders SET TBLPROPERTIES ('nope' = 'x')")


# -- INSERT and DELETE ----------------------------------------------------------------------------------


@pytest.mark.tiered
def test_insert_counts_defaults_and_null(sales: Session) -> None:
    inserted = sales.sql("INSERT INTO orders (id, note) VALUES (5, 'it''s')")
    assert inserted.columns == COUNTS
    assert [tuple(r) for r in inserted.collect()] == [(1, 0, 0, 1)]
    assert query(sales, "SELECT * FROM orders ORDER BY id") == [
        (1, 10, Decimal("2.50"), "a"),
        (2, 20, Decimal("1.50"), None),
        (3, None, Decimal("7.00"), "c"),
        (5, None, Decimal("1.50"), "it's"),
    ]


@pytest.mark.tiered
def test_insert_keeps_the_order_of_values(session: Session, fmt: str) -> None:
    session.sql(f"CREATE TABLE {fmt}.default.t (k INT PRIMARY KEY, v INT)")
    values = ", ".join(f"({n % 3}, {n})" for n in range(50))
    session.sql(f"INSERT INTO {fmt}.default.t VALUES {values}")
    assert query(session, f"SELECT * FROM {fmt}.default.t ORDER BY k") == [(0, 48), (1, 49), (2, 47)]


@pytest.mark.tiered
def test_insert_from_queries(sales: Session) -> None:
    sales.sql("INSERT INTO orders (note, id, ts) SELECT concat(note, note), id, ts + 1 FROM orders WHERE id = 1")
    sales.sql("WITH q AS (SELECT 9 AS id) INSERT INTO orders (id) SELECT id FROM q")
    sales.sql("INSERT INTO orders BY NAME SELECT 'named' AS note, 8 AS id")
    assert query(sales, "SELECT id, note FROM orders WHERE id IN (1, 8, 9) ORDER BY id") == [
        (1, "aa"),
        (8, "named"),
        (9, None),
    ]
    sales.sql("CREATE TABLE plain (id INT, note STRING)")
    sales.sql("INSERT INTO plain SELECT id, note FROM orders WHERE id = 1")
    sales.sql("INSERT INTO plain TABLE plain")
    assert query(sales, "SELECT * FROM plain") == [(1, "aa"), (1, "aa")]


@pytest.mark.tiered
def test_insert_refusals_change_nothing(sales: Session) -> None:
    before = sales.table("orders").splits().version
    sql_refusal(sales, "TYPE_MISMATCH", "INSERT INTO orders VALUES (1)")
    sql_refusal(sales, "TYPE_MISMATCH", "INSERT INTO orders (id, ts) SELECT 1, 2, 3")
    assert "'note'" in sql_refusal(sales, "COLUMN_NOT_FOUND", "INSERT INTO orders (id, nota) VALUES (1, 'x')")
    sql_refusal(sales, "DUPLICATE_COLUMN_NAME", "INSERT INTO orders (id, ID) VALUES (1, 2)")
    sql_refusal(sales, "TYPE_MISMATCH", "INSERT INTO orders (id) VALUES ('1')")
    sql_refusal(sales, "CONSTRAINT_VIOLATION", "INSERT INTO orders (id) VALUES (NULL)")
    sql_refusal(sales, "CONSTRAINT_VIOLATION", "INSERT INTO orders (ts) VALUES (1)")
    sql_refusal(sales, "NOT_SUPPORTED", "INSERT OVERWRITE orders SELECT * FROM orders")
    sql_refusal(sales, "TABLE_NOT_FOUND", "INSERT INTO order VALUES (1)")
    assert sales.table("orders").splits().version == before


@pytest.mark.tiered
def test_delete(sales: Session) -> None:
    counts = sales.sql("DELETE FROM orders AS o WHERE o.id = 1 OR note = 'c'")
    assert [tuple(r) for r in counts.collect()] == [(2, 0, 2, 0)]
    assert query(sales, "SELECT id FROM orders") == [(2,)]
    sql_refusal(sales, "COLUMN_NOT_FOUND", "DELETE FROM orders WHERE nope = 1")
    sales.sql("DELETE FROM orders")
    assert query(sales, "SELECT id FROM orders") == []


# -- queries --------------------------------------------------------------------------------------------


@pytest.mark.tiered
def test_joins_over_catalogs(sales: Session, fmt: str) -> None:
    other = "iceberg" if fmt == "parquet" else "parquet"
    sales.sql(f"CREATE SCHEMA {other}.sales")
    sales.sql(f"CREATE TABLE {other}.sales.orders (id INT PRIMARY KEY, name STRING)")
    sales.sql(f"INSERT INTO {other}.sales.orders VALUES (1, 'one'), (3, 'three')")
    text = (
        f"SELECT {fmt}.sales.orders.id, {other}.sales.orders.name FROM {fmt}.sales.orders "
        f"JOIN {other}.sales.orders ON {fmt}.sales.orders.id = {other}.sales.orders.id ORDER BY 1"
    )
    assert query(sales, text) == [(1, "one"), (3, "three")]
    text = (
        f"SELECT o.id, x.name FROM orders o LEFT JOIN {other}.sales.orders x ON o.id = x.id WHERE o.id <= 2 ORDER BY 1"
    )
    assert query(sales, text) == [(1, "one"), (2, None)]


@pytest.mark.parametrize("fmt", ["parquet"])
def test_names_in_queries(sales: Session) -> None:
    assert query(sales, "SELECT orders.id FROM orders WHERE orders.id = 2") == [(2,)]
    assert query(sales, "SELECT sales.orders.id FROM SALES.Orders WHERE parquet.sales.orders.id = 2") == [(2,)]
    assert query(sales, "SELECT parquet.sales.orders.* FROM parquet.sales.orders WHERE id = 1")[0][:2] == (1, 10)
    assert query(sales, "WITH orders AS (SELECT 99 AS id) SELECT * FROM orders") == [(99,)]
    shadowed = "WITH x AS (SELECT * FROM orders), orders AS (SELECT max(id) AS m FROM x) SELECT * FROM orders"
    assert query(sales, shadowed) == [(3,)]
    correlated = "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM orders i WHERE i.id = o.id + 1) ORDER BY id"
    assert query(sales, correlated) == [(1,), (2,)]
    assert query(sales, "SELECT /*+ BROADCAST(orders) */ count(*) FROM orders TABLESAMPLE (100 PERCENT)") == [(3,)]
    assert query(sales, "SELECT z.a FROM orders AS z(a, b, c, d) WHERE a = 1") == [(1,)]
    assert query(sales, "SELECT * FROM (SELECT id, ts FROM orders) PIVOT (max(ts) FOR id IN (1, 2))") == [(10, 20)]
    assert query(sales, "FROM orders |> WHERE id = 3 |> SELECT note") == [("c",)]
    assert query(sales, "SELECT 'FROM orders' AS `orders`, 1 /* FROM orders */") == [("FROM orders", 1)]
    assert query(sales, "SELECT id FROM orders WHERE id = 1 UNION ALL (SELECT id FROM orders WHERE id = 3)") == [
        (1,),
        (3,),
    ]


@pytest.mark.parametrize("fmt", ["parquet"])
def test_queries_that_only_spark_can_parse(sales: Session) -> None:
    assert len(query(sales, "TABLE orders")) == 3
    assert query(sales, "SELECT count(*) FROM orders WHERE EXISTS (TABLE orders)") == [(3,)]
    text = "WITH o AS (TABLE orders) SELECT id FROM o WHERE id = (SELECT max(id) FROM parquet.sales.orders)"
    assert query(sales, text) == [(3,)]


@pytest.mark.parametrize("fmt", ["parquet"])
def test_queries_are_lazy_and_pinned(sales: Session) -> None:
    query = sales.sql("SELECT id FROM orders")
    sales.sql("INSERT INTO orders (id) VALUES (50)")
    assert query.where("id = 50").count() == 0
    assert sales.sql("SELECT id FROM orders").where("id = 50").count() == 1
    views = [t.tableName for t in sales.spark.sql("SHOW TABLES").collect() if t.tableName.startswith("_trinity")]
    assert views == []


@pytest.mark.parametrize("fmt", ["parquet"])
def test_temp_views(sales: Session) -> None:
    try:
        sales.sql("CREATE TEMP VIEW big AS SELECT id, ts FROM orders WHERE id > 1")
        sql_refusal(sales, "TABLE_ALREADY_EXISTS", "CREATE TEMP VIEW big AS SELECT 1")
        assert query(sales, "SELECT big.id FROM big JOIN orders USING (id) ORDER BY 1") == [(2,), (3,)]
        sales.sql("CREATE OR REPLACE TEMPORARY VIEW orders (a) AS SELECT 77")
        assert query(sales, "SELECT a FROM orders") == [(77,)], "the caller's temp view wins over the current schema"
        assert query(sales, "SELECT count(*) FROM sales.orders") == [(3,)]
        sales.sql("DROP VIEW orders")
        sales.sql("CACHE TABLE cached AS SELECT id FROM orders")
        assert query(sales, "SELECT max(id) FROM cached") == [(3,)]
    finally:
        for view in ("big", "orders", "cached"):
            sales.spark.catalog.dropTempView(view)


@pytest.mark.tiered
def test_time_travel(sales: Session) -> None:
    version = sales.table("orders").splits().version
    sales.sql("INSERT INTO orders VALUES (1, 11, 0, 'new')")
    now = "SELECT note FROM orders {} WHERE id = 1"
    assert query(sales, now.format("")) == [("new",)]
    for clause in ("VERSION AS OF {}", "FOR VERSION AS OF {} AS x", "SYSTEM_VERSION AS OF '{}'"):
        assert query(sales, now.format(clause.format(version))) == [("a",)]
    assert query(sales, f"SELECT note FROM orders FOR VERSION AS OF {version} WHERE id = 1", dialect="trino") == [
        ("a",)
    ]
    assert query(sales, now.format("TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY")) == [("new",)]
    both = f"SELECT a.note, b.note FROM orders a JOIN orders VERSION AS OF {version} b USING (id) WHERE a.id = 1"
    assert query(sales, both) == [("new", "a")]
    sql_refusal(sales, "INVALID_ARGUMENTS", "SELECT * FROM orders VERSION AS OF 987654")
    sql_refusal(sales, "INVALID_ARGUMENTS", "SELECT * FROM orders TIMESTAMP AS OF '2001-01-01 00:00:00'")
    sql_refusal(sales, "INVALID_ARGUMENTS", "SELECT * FROM orders VERSION AS OF 'x'")


@pytest.mark.tiered
def test_key_predicates_go_below_the_fold(sales: Session) -> None:
    text = "SELECT id FROM orders WHERE id = 2 AND amount > 1"
    plan = query(sales, f"EXPLAIN {text}")[0][0]
    below = plan[re.search(r"Window|Sort|Aggregate|Join", plan).start() :] if "Window" in plan else plan  # type: ignore[union-attr]
    assert re.search(r"id#\d+ = 2", below)
    assert not re.search(r"amount#\d+ > 1", below)
    assert query(sales, text) == [(2,)]
    sales.sql("INSERT INTO orders VALUES (2, 5, 100, 'late')")
    assert query(sales, "SELECT amount FROM orders WHERE id BETWEEN 2 AND 2 AND amount > 50") == []


@pytest.mark.parametrize("fmt", ["parquet"])
def test_trino_queries(sales: Session) -> None:
    text = """SELECT "id", CAST(ts AS VARCHAR) FROM parquet.sales.orders ORDER BY 1 FETCH FIRST 2 ROWS ONLY"""
    assert query(sales, text, dialect="trino") == [(1, "10"), (2, "20")]
    sales.sql("INSERT INTO orders (note, id) VALUES ('t', 6), (DEFAULT, 7)", dialect="trino")
    assert query(sales, "SELECT id, note FROM orders WHERE id > 5 ORDER BY id", dialect="trino") == [
        (6, "t"),
        (7, None),
    ]


@pytest.mark.parametrize("fmt", ["parquet"])
def test_query_refusals(sales: Session) -> None:
    assert "'orders'" in sql_refusal(sales, "TABLE_NOT_FOUND", "SELECT * FROM ordres")
    assert "'orders'" in sql_refusal(sales, "TABLE_NOT_FOUND", "SELECT * FROM parquet.sales.ordres")
    assert "'sales'" in sql_refusal(sales, "SCHEMA_NOT_FOUND", "SELECT * FROM slaes.orders")
    sql_refusal(sales, "SCHEMA_NOT_FOUND", "SELECT * FROM parquet.slaes.orders")
    sql_refusal(sales, "CATALOG_NOT_FOUND", "SELECT * FROM nowhere.sales.orders")
    assert "note" in sql_refusal(sales, "COLUMN_NOT_FOUND", "SELECT nota FROM orders")
    sql_refusal(sales, "TYPE_MISMATCH", "SELECT id + array(1) FROM orders")
    sql_refusal(sales, "SYNTAX_ERROR", "SELEC id FROM orders")
    sql_refusal(sales, "SYNTAX_ERROR", "SELECT id FROM orders WHERE")
    sql_refusal(sales, "SYNTAX_ERROR", "SELECT 1; SELECT 2")
    sql_refusal(sales, "INVALID_ARGUMENTS", "SELECT max(id), ts FROM orders")


@pytest.mark.parametrize("fmt", ["parquet"])
def test_script(sales: Session) -> None:
    frames = sales.script("INSERT INTO orders (id) VALUES (60); -- ';'\nSELECT max(id) AS m FROM orders;")
    assert len(frames) == 2
    assert frames[1].collect()[0].m == 60
