"""MERGE through SQL: every clause, source and refusal, on plain and keyed tables of every format (M1, M2, M3-M8)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import trinity
from tests.support.sql_target import make_target, refusal_of, rows_of
from trinity import Session
from trinity.memory import MemoryMetadata
from trinity.spi import MergeTableHandle

SEED_003 = """
MERGE INTO accounts t USING monthly_accounts_update s
    ON (t.customer = s.customer)
    WHEN MATCHED AND s.address = 'Berkeley' THEN
        DELETE
    WHEN MATCHED AND s.customer = 'Joe Shmoe' THEN
        UPDATE SET purchases = purchases + 100.0
    WHEN MATCHED THEN
        UPDATE
            SET purchases = s.purchases + t.purchases, address = s.address
    WHEN NOT MATCHED THEN
        INSERT (customer, purchases, address)
            VALUES (s.customer, s.purchases, s.address);
"""
"""The example of the seed, with three lines that its print lacks."""


@pytest.fixture(params=["plain", pytest.param("keyed", marks=pytest.mark.full)])
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of table: without and with a primary key."""
    return str(request.param)


@pytest.fixture
def sql(session: Session, tiered_fmt: str, kind: str) -> Session:
    """Return a session whose current schema has the target t: (1, 10, a), (2, 20, b), (3, 30, NULL)."""
    session.use(tiered_fmt, "default")
    make_target(session, keyed=kind == "keyed")
    return session


START = [(1, 10, "a"), (2, 20, "b"), (3, 30, None)]


def changed(session: Session, text: str, dialect: str = "spark") -> tuple[int, int, int]:
    """Return (updated, deleted, inserted) of a statement."""
    (counts,) = session.sql(text, dialect=dialect).collect()
    assert counts.num_affected_rows == sum(counts[1:])
    return counts.num_updated_rows, counts.num_deleted_rows, counts.num_inserted_rows


@pytest.mark.parametrize("dialect", ["spark", "trino"])
def test_the_seeds_example(session: Session, tiered_fmt: str, kind: str, dialect: str) -> None:
    session.use(tiered_fmt, "default")
    key = ", PRIMARY KEY (customer)" if kind == "keyed" else ""
    for name in ("accounts", "monthly_accounts_update"):
        session.sql(
            f"CREATE TABLE {name} (customer VARCHAR, purchases DECIMAL(10, 2), address VARCHAR{key})", dialect="trino"
        )
    session.sql("INSERT INTO accounts VALUES ('Joe Shmoe', 10, 'Boston'), ('Ann', 5, 'Cambridge'), ('Bob', 7, 'Devon')")
    session.sql(
        "INSERT INTO monthly_accounts_update VALUES ('Joe Shmoe', 1, 'X'), ('Ann', 2, 'Berkeley'), ('Bob', 3, 'York'), "
        "('Zed', 4, 'Zurich')"
    )
    assert changed(session, SEED_003, dialect) == (2, 1, 1)
    found = [(c, float(p), a) for c, p, a in rows_of(session, "accounts")]
    assert found == [("Bob", 10.0, "York"), ("Joe Shmoe", 110.0, "Boston"), ("Zed", 4.0, "Zurich")]


def test_the_first_clause_that_holds_wins(sql: Session) -> None:
    assert changed(
        sql,
        """
        MERGE INTO t USING (VALUES (1, 1), (2, NULL), (4, 4), (5, 5), (6, NULL)) AS s(id, w) ON t.id = s.id
        WHEN MATCHED AND w = 1 THEN UPDATE SET n = 'first'
        WHEN NOT MATCHED AND w > 4 THEN DO NOTHING
        WHEN MATCHED AND w > 0 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND n IS NULL THEN UPDATE SET n = 'alone', v = v + 1
        WHEN NOT MATCHED AND w IS NOT NULL THEN INSERT (n, id) VALUES ('new', id)
        WHEN MATCHED AND NOT (w = 2) THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN DELETE
        """,
    ) == (2, 0, 1)
    assert rows_of(sql) == [(1, 10, "first"), (2, 20, "b"), (3, 31, "alone"), (4, None, "new")]


def test_a_clause_that_no_row_reaches_is_refused(sql: Session) -> None:
    merge = (
        "MERGE INTO t USING (SELECT id, v + 1 AS v, 'x' AS n FROM t) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 1 THEN UPDATE SET * WHEN MATCHED THEN DO NOTHING"
    )
    error = refusal_of(sql, f"{merge} WHEN MATCHED THEN DELETE")
    assert error.code == "INVALID_ARGUMENTS"
    assert "WHEN MATCHED THEN DO NOTHING takes every row" in error.message
    assert rows_of(sql) == START
    assert changed(sql, f"{merge} WHEN NOT MATCHED THEN INSERT *") == (1, 0, 0)
    assert rows_of(sql) == [(1, 11, "x"), (2, 20, "b"), (3, 30, None)]


@pytest.mark.full
def test_sources(sql: Session) -> None:
    sql.sql("CREATE TABLE parquet.default.elsewhere (id INT, w INT)")
    sql.sql("INSERT INTO parquet.default.elsewhere VALUES (1, 100), (7, 700)")
    sql.spark.sql("SELECT 2 AS id, 200 AS w").createOrReplaceTempView("frame")
    merge = "MERGE INTO t USING {} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.w"
    for source in ("parquet.default.elsewhere s", "frame AS s", "(SELECT id, 300 AS w FROM t WHERE id = 3) s"):
        assert changed(sql, merge.format(source)) == (1, 0, 0)
    assert [r[1] for r in rows_of(sql)] == [100, 200, 300]
    assert changed(sql, merge.format("(VALUES (1, 1)) AS s(id, w)")) == (1, 0, 0)
    assert changed(sql, f"WITH c(id, w) AS (VALUES (2, 2)), s AS (SELECT * FROM c) {merge.format('s')}") == (1, 0, 0)
    assert changed(sql, merge.format("(WITH c AS (SELECT 3 AS id, 3 AS w) SELECT * FROM c) s")) == (1, 0, 0)
    assert [r[1] for r in rows_of(sql)] == [1, 2, 3]
    assert changed(sql, "MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v * 10") == (3, 0, 0)
    joined = "frame a JOIN parquet.default.elsewhere b ON a.id < b.id"
    merge = f"MERGE INTO t USING {joined} ON t.id = a.id WHEN MATCHED THEN UPDATE SET v = a.w + b.w, n = DEFAULT"
    assert changed(sql, merge) == (1, 0, 0)
    assert rows_of(sql) == [(1, 10, "a"), (2, 900, "none"), (3, 30, None)]
    sql.spark.catalog.dropTempView("frame")


def test_subqueries(sql: Session) -> None:
    sql.sql("CREATE TABLE u (id INT, w INT)")
    sql.sql("INSERT INTO u VALUES (1, 5), (1, 6), (4, 7), (9, NULL)")
    merge = """
        WITH big AS (SELECT max(w) AS w FROM u)
        MERGE INTO t USING (SELECT DISTINCT id FROM u) s ON t.id = s.id AND s.id < (SELECT max(id) FROM u)
        WHEN MATCHED AND EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.w = 6) THEN
            UPDATE SET v = (SELECT sum(w) FROM u WHERE u.id = s.id) + (SELECT w FROM big), n = t.n || '!'
        WHEN NOT MATCHED AND s.id IN (SELECT id FROM u WHERE w IS NOT NULL) THEN
            INSERT (id, v) VALUES (id, (SELECT max(w) FROM u x WHERE x.id = s.id))
    """
    assert changed(sql, merge) == (1, 0, 1)
    assert rows_of(sql) == [(1, 18, "a!"), (2, 20, "b"), (3, 30, None), (4, 7, "none")]


def test_conditions_of_the_join(sql: Session) -> None:
    never = "MERGE INTO t USING (VALUES (1), (8)) AS s(id) ON FALSE WHEN MATCHED THEN DELETE"
    assert changed(sql, never) == (0, 0, 0)
    ranges = (
        "MERGE INTO t USING (VALUES (2, 1), (9, 0)) AS s(low, yes) ON t.id >= s.low AND s.yes = 1 "
        "WHEN MATCHED THEN UPDATE SET v = v + low WHEN NOT MATCHED THEN INSERT (id) VALUES (low)"
    )
    assert changed(sql, ranges) == (2, 0, 1)
    assert rows_of(sql) == [(1, 10, "a"), (2, 22, "b"), (3, 32, None), (9, None, "none")]
    nulls = (
        "MERGE INTO t USING (VALUES (CAST(NULL AS STRING), 5), ('a', 6)) AS s(n, id) ON t.n = s.n "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, n)"
    )
    assert changed(sql, nulls) == (0, 1, 1)
    assert [r[0] for r in rows_of(sql)] == [2, 3, 5, 9]


def test_a_row_that_two_source_rows_select(sql: Session) -> None:
    source = "MERGE INTO t USING (VALUES (1, 1), (1, 2), (1, 3)) AS s(id, w) ON t.id = s.id "
    for clauses in (
        "WHEN MATCHED THEN UPDATE SET v = w",
        "WHEN MATCHED AND w < 3 THEN DELETE",
        "WHEN MATCHED AND w = 1 THEN UPDATE SET v = w WHEN MATCHED AND w = 2 THEN DELETE",
    ):
        assert refusal_of(sql, source + clauses).code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    assert changed(sql, source + "WHEN MATCHED AND w > 7 THEN DELETE") == (0, 0, 0)
    assert changed(sql, source + "WHEN MATCHED AND w < 3 THEN DO NOTHING WHEN MATCHED THEN DELETE") == (0, 1, 0)
    only = "MERGE INTO t USING (VALUES (2), (2), (9)) AS s(id) ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert changed(sql, f"{only} WHEN NOT MATCHED THEN INSERT (id) VALUES (id)") == (0, 1, 1)
    assert changed(sql, only) == (0, 1, 0)
    assert changed(sql, "MERGE INTO t USING (SELECT 1) ON TRUE WHEN MATCHED THEN UPDATE SET v = 0") == (1, 0, 0)


def test_unmatched_duplicates(sql: Session, kind: str) -> None:
    merge = (
        "MERGE INTO t USING (VALUES (7, 1), (7, 2)) AS s(id, w) ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (id, w)"
    )
    if kind == "keyed":
        error = refusal_of(sql, merge)
        assert error.code == "CONSTRAINT_VIOLATION"
        assert "7" in error.message
    else:
        assert changed(sql, merge) == (0, 0, 2)
        assert [r for r in rows_of(sql) if r[0] == 7] == [(7, 1, "none"), (7, 2, "none")]


def test_right_hand_sides_see_old_values(sql: Session) -> None:
    sql.sql("CREATE TABLE s2 (ID INT, V INT, N STRING)")
    sql.sql("INSERT INTO s2 VALUES (1, 5, 'p'), (4, 6, 'q')")
    swap = "MERGE INTO T USING s2 ON T.ID = s2.id WHEN MATCHED THEN UPDATE SET N = CAST(t.v AS STRING), v = length(t.N)"
    assert changed(sql, swap) == (1, 0, 0)
    assert rows_of(sql)[0] == (1, 1, "10")
    merge = "MERGE INTO t USING s2 ON t.id = s2.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    assert changed(sql, merge) == (1, 0, 1)
    assert rows_of(sql) == [(1, 5, "p"), (2, 20, "b"), (3, 30, None), (4, 6, "q")]
    merge = "MERGE INTO t USING s2 ON FALSE WHEN NOT MATCHED AND v = 5 THEN INSERT VALUES (10, DEFAULT, DEFAULT)"
    assert changed(sql, merge) == (0, 0, 1)
    assert (10, None, "none") in rows_of(sql)


@pytest.mark.full
def test_values_are_assigned_as_insert_does(sql: Session) -> None:
    merge = "MERGE INTO t USING (SELECT {} AS x) s ON t.id = 1 WHEN MATCHED THEN UPDATE SET v = x"
    for value in ("CAST(7 AS BIGINT)", "CAST(8 AS DOUBLE)", "CAST(9 AS DECIMAL(10, 2))"):
        assert changed(sql, merge.format(value)) == (1, 0, 0)
    assert rows_of(sql)[0] == (1, 9, "a")
    error = refusal_of(sql, merge.format("CAST(3000000000 AS BIGINT)"))
    assert error.code == "NUMERIC_VALUE_OUT_OF_RANGE"
    assert "3000000000" in error.message
    error = refusal_of(sql, merge.format("'12'"))
    assert error.code == "TYPE_MISMATCH"
    assert "'v'" in error.message
    assert refusal_of(sql, "MERGE INTO t USING t s ON t.id WHEN MATCHED THEN DELETE").code == "TYPE_MISMATCH"
    assert (
        refusal_of(sql, "MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED AND s.v THEN DELETE").code
        == "TYPE_MISMATCH"
    )


@pytest.mark.full
def test_rows_that_no_table_may_hold(sql: Session) -> None:
    merge = "MERGE INTO t USING (VALUES (1, NULL), (8, 8)) AS s(k, id) ON t.id = s.k "
    error = refusal_of(
        sql, merge + "WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (8)"
    )
    assert error.code == "CONSTRAINT_VIOLATION"
    assert "id" in error.message
    error = refusal_of(sql, merge + "WHEN NOT MATCHED THEN INSERT (v) VALUES (1)")
    assert error.code == "CONSTRAINT_VIOLATION"
    # a row that no clause selects may break any rule
    assert changed(sql, merge + "WHEN MATCHED AND s.id IS NOT NULL THEN UPDATE SET id = s.id") == (0, 0, 0)
    error = refusal_of(
        sql,
        "MERGE INTO t USING (VALUES (1)) AS s(k) ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET v = (SELECT x FROM VALUES (1), (2) AS y(x))",
    )
    assert error.code == "SUBQUERY_MULTIPLE_ROWS"


def test_a_merge_without_effect_makes_no_commit(sql: Session) -> None:
    commits = sql.table("t").history().count()
    merge = "MERGE INTO t USING (SELECT 9 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert changed(sql, merge) == (0, 0, 0)
    nothing = "(SELECT id FROM t WHERE FALSE) s"
    merge = f"MERGE INTO t USING {nothing} ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1)"
    assert changed(sql, merge) == (0, 0, 0)
    assert sql.table("t").history().count() == commits


@pytest.mark.tiered
def test_rows_move_between_partitions(session: Session, fmt: str, kind: str) -> None:
    session.use(fmt, "default")
    key = ", PRIMARY KEY (id, p)" if kind == "keyed" else ""
    session.sql(f"CREATE TABLE t (id INT, p STRING, v INT{key}) PARTITIONED BY (p)")
    session.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)")
    merge = """
        MERGE INTO t USING (VALUES (1, 'c'), (3, 'a'), (4, 'd')) AS s(id, p) ON t.id = s.id
        WHEN MATCHED AND t.p = 'b' THEN DELETE
        WHEN MATCHED THEN UPDATE SET p = s.p, v = v + 10
        WHEN NOT MATCHED THEN INSERT (id, p) VALUES (id, p)
    """
    assert changed(session, merge) == (1, 1, 1)
    assert rows_of(session) == [(1, "c", 11), (2, "a", 2), (4, "d", None)]
    assert [r[0] for r in session.sql("SELECT id FROM t WHERE p = 'a'").collect()] == [2]


def test_explain(sql: Session, kind: str) -> None:
    text = sql.sql(
        "EXPLAIN MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    ).head()
    assert text is not None
    for part in ("DELETE_ROW_AND_INSERT_ROW", "layout", "RIGHT JOIN", "case 0", "case 1", "Physical Plan"):
        assert part in text[0]
    assert rows_of(sql) == START


def test_files_that_no_source_row_can_touch_are_not_read(session: Session, tiered_fmt: str) -> None:
    """Nor are they rewritten, or cause a conflict with a commit that changes them meanwhile."""
    session.use(tiered_fmt, "default")
    session.sql("CREATE TABLE t (id INT, v STRING)")
    for first in (0, 100, 200):
        session.sql(f"INSERT INTO t SELECT /*+ COALESCE(1) */ id + {first}, 'old' FROM range(100)")
    table = session.table("t")
    files = sorted(table.splits().files, key=lambda f: f.stats["id"].min)
    Path(files[1].path).rename(f"{files[1].path}.away")  # a read of it would fail
    merge = (
        "MERGE INTO t USING VALUES (7, 'new'), (250, 'new') AS s(id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    )
    assert changed(session, merge) == (2, 0, 0)
    assert changed(session, "UPDATE t SET v = 'newer' WHERE id BETWEEN 8 AND 9 AND v = 'old'") == (2, 0, 0)
    assert changed(session, "DELETE FROM t WHERE id >= 290 AND id <= 299") == (0, 10, 0)
    Path(f"{files[1].path}.away").rename(files[1].path)
    assert files[1].path in {f.path for f in table.splits().files}
    assert session.sql("SELECT v, count(*) FROM t GROUP BY v ORDER BY v").collect() == [
        ("new", 2),
        ("newer", 2),
        ("old", 286),
    ]


@pytest.mark.tiered
def test_the_builder_takes_columns(session: Session, fmt: str) -> None:
    """A condition that is a Column cannot be parsed for comparisons, only evaluated."""
    session.use(fmt, "default")
    session.sql("CREATE TABLE t (id INT, v STRING)")
    session.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    source = session.sql("SELECT * FROM VALUES (1, 'x'), (2, 'y'), (3, 'z') AS s(id, v)")
    counts = (
        session.table("t")
        .merge(source, F.col("t.id") == F.col("s.id"))
        .when_matched_update({"v": F.col("s.v")}, F.col("t.id") == 1)
        .when_matched_update({"v": F.lit("second")}, F.col("t.id") == 2)
        .when_matched_delete(F.col("s.v") == "z")
        .execute()
    )
    assert (counts.updated, counts.deleted, counts.inserted) == (2, 1, 0)
    assert rows_of(session, "t") == [(1, "x"), (2, "second")]


@pytest.mark.full
@pytest.mark.parametrize("key", [pytest.param("", marks=pytest.mark.full), ", PRIMARY KEY (id)"])
def test_an_adapter_that_asks_for_no_layout(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """By the SPI's default, tasks get inserted rows in any order, and changed ones by their whole row id."""
    begin = MemoryMetadata.begin_merge

    def without_layout(*given: Any) -> MergeTableHandle:
        merge = begin(*given)
        changed = () if key else merge.update_layout  # a file that is rewritten must reach one sink
        return replace(merge, insert_layout=(), update_layout=changed)

    monkeypatch.setattr(MemoryMetadata, "begin_merge", without_layout)
    catalogs = {"memory": {"connector": "memory"}}
    with trinity.connect(spark=spark, catalogs=catalogs, catalog="memory") as session:
        session.sql(f"CREATE TABLE t (id INT NOT NULL, v INT{key})")
        session.sql("INSERT INTO t SELECT id, 0 FROM range(100)")
        source = "(SELECT id + 50 AS id, 1 AS v FROM range(100))"
        assert changed(
            session,
            f"""MERGE INTO t USING {source} s ON t.id = s.id WHEN MATCHED AND t.id % 2 = 0 THEN DELETE
                WHEN MATCHED THEN UPDATE SET id = t.id + 1000, v = s.v WHEN NOT MATCHED THEN INSERT *""",
        ) == (25, 25, 50)
        kept = [(k, 0) for k in range(50)] + [(k, 1) for k in range(100, 150)]
        assert rows_of(session) == sorted(kept + [(k + 1000, 1) for k in range(51, 100, 2)], key=repr)
        assert session.sql("UPDATE t SET v = v + 1").first() == (125, 125, 0, 0)
        assert session.sql("SELECT sum(v), count(*) FROM t").first() == (200, 125)
