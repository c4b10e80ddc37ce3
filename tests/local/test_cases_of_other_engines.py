"""What other engines' test suites try of MERGE, UPDATE and DELETE, by this process (M1, M5, M6, M10)."""

from __future__ import annotations

import duckdb
import pytest

from tests.support.cases_of_other_engines import OTHER, TRIED, Tried, left, play
from tests.support.refusals import refused
from trinity import Session


@pytest.mark.parametrize("tried", TRIED, ids=lambda tried: tried.fact)
def test_rows_and_counts(local: Session, tiered_fmt: str, tried: Tried) -> None:
    local.use(tiered_fmt, "default")
    play(local, tried)


@pytest.mark.full
@pytest.mark.parametrize("tried", [tried for tried in TRIED if tried.keyed], ids=lambda tried: tried.fact)
def test_rows_and_counts_of_keyed_tables(local: Session, tiered_fmt: str, tried: Tried) -> None:
    local.use(tiered_fmt, "default")
    play(local, tried, ", PRIMARY KEY (id)")


@pytest.mark.parametrize("tried", [tried for tried in TRIED if tried.duckdb], ids=lambda tried: tried.fact)
def test_duckdb_leaves_the_same_rows(tried: Tried) -> None:
    with duckdb.connect() as other:
        other.execute(f"CREATE TABLE t ({tried.ddl}); CREATE TABLE u (k INT, w INT); INSERT INTO u VALUES {OTHER}")
        if tried.start:
            other.execute(f"INSERT INTO t VALUES {tried.start}")
        for text, counts in tried.texts:
            changed = other.execute(text).fetchall()
            assert changed in ([(sum(counts),)], []), text
        assert sorted(other.execute("FROM t").fetchall(), key=str) == sorted(tried.left, key=str)


def test_parameters_in_every_place(local: Session, tiered_fmt: str) -> None:
    """PostgreSQL's merge.sql: they stand in the source, in ON, behind AND, in SET and in VALUES."""
    local.use(tiered_fmt, "default")
    local.sql("CREATE TABLE t (id INT, v INT, n STRING)")
    local.sql("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')")
    merge = """
        MERGE INTO t USING (SELECT :k AS id) s ON t.id = s.id AND t.v < :most
        WHEN MATCHED AND n = :n THEN UPDATE SET v = t.v + :v WHEN NOT MATCHED THEN INSERT VALUES (s.id, :v, :n)
        WHEN NOT MATCHED BY SOURCE AND t.id > :k THEN DELETE
    """
    for key in (1, 7):
        local.sql(merge, {"k": key, "most": 15, "n": "a", "v": 5})
    assert left(local) == [(1, 15, "a"), (7, 5, "a")]


def test_quoted_names_are_the_sources_where_there_is_no_target_row(local: Session, tiered_fmt: str) -> None:
    """DuckDB's merge_into_bind_matching_columns.test: as dbt writes MERGE."""
    local.use(tiered_fmt, "default")
    local.sql("CREATE TABLE t (id INT, v INT)")
    local.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
    merge = """
        MERGE INTO "t" AS INTO_T USING (SELECT 1 AS "id", 5 AS "v" UNION ALL SELECT 9, 6) AS FROM_S
        ON FROM_S."id" = INTO_T."id" WHEN MATCHED THEN UPDATE SET "id" = FROM_S."id", "v" = FROM_S."v"
        WHEN NOT MATCHED THEN INSERT ("id", "v") VALUES ("id", "v")
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET "v" = "v" + 1
    """
    local.sql(merge, dialect="trino")
    assert left(local) == [(1, 5), (2, 21), (9, 6)]


def test_a_check_of_two_columns(local: Session, tiered_fmt: str) -> None:
    """DuckDB's merge_into_constraint.test: a CHECK sees the new value of one column and the old one of the other."""
    local.use(tiered_fmt, "default")
    local.sql("CREATE TABLE t (id INT, low INT, high INT, CONSTRAINT between_both CHECK (low < high))")
    local.sql("INSERT INTO t VALUES (1, 1, 2), (2, 5, 9)")
    merge = "MERGE INTO t USING (VALUES (1, 7)) AS s(id, n) ON t.id = s.id WHEN MATCHED THEN UPDATE SET low = s.n"
    with refused("CONSTRAINT_VIOLATION", "between_both", "low = 7, high = 2"):
        local.sql(merge)
    local.sql(f"{merge}, high = s.n + 1")
    assert left(local) == [(1, 7, 8), (2, 5, 9)]


def test_partitions_that_look_like_others(local: Session, tiered_fmt: str) -> None:
    """Trino's BaseConnectorTest: NULL, and texts that folders spell in their own way, are matched and moved."""
    local.use(tiered_fmt, "default")
    local.sql("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    odd = ["NULL", "__HIVE_DEFAULT_PARTITION__", "a/b=c%", "2024-01-01 00:00"]
    local.table("t").append([{"id": n, "p": p} for n, p in enumerate([None, *odd])])
    by_text = "MERGE INTO t USING (VALUES ('NULL', 11), ('a/b=c%', 13)) AS s(p, id) ON t.p = s.p"
    local.sql(f"{by_text} WHEN MATCHED THEN UPDATE SET id = s.id")
    local.sql("UPDATE t SET p = concat(p, '!') WHERE p LIKE 'a/%'")
    local.sql(
        "MERGE INTO t USING (SELECT CAST(NULL AS STRING) AS p) s ON t.p <=> s.p WHEN MATCHED THEN UPDATE SET p = ' '"
    )
    local.sql("UPDATE t SET p = NULL WHERE p = 'NULL' OR p = '2024-01-01 00:00'")
    assert left(local) == sorted(
        [(0, " "), (11, None), (2, "__HIVE_DEFAULT_PARTITION__"), (13, "a/b=c%!"), (4, None)], key=str
    )


REFUSED = [
    ("PostgreSQL's merge.sql", "MERGE INTO t a b USING u ON TRUE WHEN MATCHED THEN DELETE", "SYNTAX_ERROR", "USING"),
    (
        "PostgreSQL's merge.sql",
        "MERGE INTO t USING range(3) r ON t.id = r.id WHEN MATCHED THEN DELETE",
        "NOT_SUPPORTED",
        "needs Spark",
    ),
    ("PostgreSQL's merge.sql", "{} WHEN NOT MATCHED THEN INSERT INTO t VALUES (1, 1)", "SYNTAX_ERROR", "'INTO'"),
    ("PostgreSQL's merge.sql", "{} WHEN NOT MATCHED THEN INSERT SELECT 1, 1", "SYNTAX_ERROR", "'SELECT'"),
    ("PostgreSQL's merge.sql", "{} WHEN MATCHED THEN UPDATE t SET v = 1", "SYNTAX_ERROR", "'t'"),
    ("PostgreSQL's merge.sql", "{} WHEN NOT MATCHED THEN UPDATE SET v = 1", "SYNTAX_ERROR", "only INSERT"),
    ("PostgreSQL's merge.sql", "{} WHEN MATCHED AND t = u THEN DELETE", "COLUMN_NOT_FOUND", "'t'"),
    (
        "DuckDB's merge_into_table_alias_distinct.test",
        "{} WHEN MATCHED AND t <=> u THEN DELETE",
        "COLUMN_NOT_FOUND",
        "'t'",
    ),
    ("DuckDB's merge_into.test", "{} WHEN MATCHED THEN ERROR", "SYNTAX_ERROR", "'ERROR'"),
    ("Iceberg's TestMerge", "{} WHEN MATCHED THEN UPDATE SET l.x = 1", "TYPE_MISMATCH", "set all of 'l'"),
    ("Iceberg's TestMerge", "{} WHEN MATCHED THEN UPDATE SET m.k = 1", "TYPE_MISMATCH", "set all of 'm'"),
    ("Iceberg's TestMerge", "{} WHEN MATCHED THEN UPDATE SET l[0] = 1", "SYNTAX_ERROR", "'['"),
    ("Trino's BaseConnectorTest", "{} WHEN MATCHED THEN UPDATE SET v = nullif(5, 5)", "CONSTRAINT_VIOLATION", "'v'"),
    ("Iceberg's TestMerge", "{} WHEN NOT MATCHED THEN INSERT (id) VALUES (k)", "CONSTRAINT_VIOLATION", "'v'"),
]


def test_what_is_refused(local: Session, tiered_fmt: str) -> None:
    local.use(tiered_fmt, "default")
    local.sql("CREATE TABLE t (id INT, v INT NOT NULL, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>)")
    local.sql("CREATE TABLE u (k INT, w INT)")
    local.sql("INSERT INTO t VALUES (1, 1, NULL, NULL)")
    local.sql("INSERT INTO u VALUES (1, 1), (2, 2)")
    version = local.table("t").version
    for suite, text, code, named in REFUSED:
        with refused(code, named):
            local.sql(text.format("MERGE INTO t USING u ON t.id = u.k"))
            pytest.fail(f"{suite}: {text}")
    assert local.table("t").version == version
