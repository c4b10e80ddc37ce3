"""SQL's UPDATE, DELETE and MERGE in this process: the same rows, counts and refusals as by Spark (M10)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from tests.support.refusals import refused
from trinity import Column, Session

CHANGES: Final[list[tuple[str, tuple[int, int, int]]]] = [
    ("UPDATE t SET n = n + 1 WHERE id > 5", (0, 0, 0)),
    ("UPDATE t AS x SET n = x.n * 10, v = DEFAULT WHERE x.id IN (1, 2)", (2, 0, 0)),
    ("DELETE FROM t WHERE n = 20 OR v = 'nothing'", (0, 1, 0)),
    (
        (
            "MERGE INTO t USING src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n, v = s.w "
            "WHEN NOT MATCHED THEN INSERT (id, n, v) VALUES (s.id, s.n, s.w)"
        ),
        (0, 0, 2),
    ),
    (
        (
            "MERGE INTO t USING (VALUES (1, 50), (9, 60)) AS x(id, n) ON t.id = x.id "
            "WHEN MATCHED AND x.n > 10 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, n + 1)"
        ),
        (0, 1, 1),
    ),
    (
        (
            "MERGE INTO t USING (SELECT id, n FROM src WHERE n > 30) q ON t.id = q.id "
            "WHEN MATCHED THEN UPDATE SET n = t.n + q.n WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE"
        ),
        (1, 1, 0),
    ),
    ("MERGE INTO t USING t AS u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = u.n + 1", (3, 0, 0)),
    ("UPDATE t SET v = s.w FROM src s WHERE t.id = s.id AND s.n = 20", (1, 0, 0)),
    # subqueries, WITH, several matching source rows, conditions without an equality
    ("UPDATE t SET n = (SELECT max(n) + 1 FROM src) WHERE id IN (SELECT id FROM src WHERE n = 20)", (1, 0, 0)),
    ("DELETE FROM t WHERE id NOT IN (SELECT id FROM src UNION ALL SELECT CAST(NULL AS INT) AS id FROM src)", (0, 0, 0)),
    (
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM src WHERE n > 90) OR id = (SELECT id FROM src WHERE n > 90)",
        (0, 0, 0),
    ),
    (
        (
            "WITH q (k, m) AS (SELECT id, n FROM src), r AS (SELECT k FROM q WHERE m = 40) MERGE INTO t USING r "
            "ON t.id = r.k AND t.id IN (SELECT k FROM q) WHEN MATCHED THEN UPDATE SET n = (SELECT min(m) FROM q) "
            "WHEN NOT MATCHED BY SOURCE AND id = (SELECT max(id) FROM t) THEN UPDATE SET v = 'last'"
        ),
        (2, 0, 0),
    ),
    (
        (
            "MERGE INTO t USING (VALUES (2.5), (3.5), (90.0)) AS x(m) ON t.id < x.m AND x.m < 50 "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (x.m, 1, 'new') "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN UPDATE SET v = 'E'"
        ),
        (1, 1, 1),
    ),
    ("MERGE INTO t USING (VALUES (90D)) AS x(id) ON t.id = x.id WHEN MATCHED THEN UPDATE SET n = n + 1", (1, 0, 0)),
    (
        "WITH twice AS (SELECT n FROM src UNION ALL SELECT n FROM src) DELETE FROM t USING twice WHERE t.n = twice.n",
        (0, 1, 0),
    ),
]
LEFT: Final = [(9, 62, "last"), (90, 2, "new")]
REFUSED: Final = [
    ("UPDATE t SET m = 1", "COLUMN_NOT_FOUND", "'m'"),
    ("UPDATE t SET n = m", "COLUMN_NOT_FOUND", "'m'"),
    ("UPDATE t SET n = 'x'", "TYPE_MISMATCH", "'n'"),
    ("DELETE FROM t WHERE n", "TYPE_MISMATCH", "boolean"),
    ("DELETE FROM t WHERE n = (", "SYNTAX_ERROR", "("),
    ("MERGE INTO t USING src ON t.id = src.id WHEN MATCHED THEN UPDATE SET *", "COLUMN_NOT_FOUND", "v"),
    ("MERGE INTO t USING src AS t ON t.id = t.id WHEN MATCHED THEN DELETE", "INVALID_ARGUMENTS", "'t'"),
    ("MERGE INTO t USING nosuch ON t.id = nosuch.id WHEN MATCHED THEN DELETE", "TABLE_NOT_FOUND", "nosuch"),
    (
        "MERGE INTO t USING (VALUES (9), (9)) s(id) ON t.id = s.id WHEN MATCHED AND TRUE THEN DELETE",
        "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
        "M2",
    ),
    ("UPDATE t SET n = (SELECT n FROM src)", "SUBQUERY_MULTIPLE_ROWS", ""),
    ("WITH c AS (DELETE FROM src) DELETE FROM t", "NOT_SUPPORTED", "only a query"),
    ("WITH c AS (SELECT nosuch FROM src) DELETE FROM t", "COLUMN_NOT_FOUND", "nosuch"),
    ("DELETE FROM t WHERE id IN (SELECT nosuch FROM src)", "COLUMN_NOT_FOUND", "nosuch"),
    (
        "MERGE INTO t USING src ON t.id = src.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET n = 1",
        "INVALID_ARGUMENTS",
        "takes every row",
    ),
]


def play(session: Session, fmt: str, key: str) -> None:
    session.use(fmt, "default")
    session.sql(f"CREATE TABLE t (id INT, n INT, v STRING{key})")
    session.sql("CREATE TABLE src (id INT, n INT, w STRING)")
    session.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
    session.sql("INSERT INTO src VALUES (2, 20, 'B'), (4, 40, 'D')")
    for text, counts in CHANGES:
        [found] = session.sql(text).fetchall()
        assert tuple(found) == (sum(counts), *counts), text
    assert read(session) == LEFT
    version = session.table("t").version
    for text, code, named in REFUSED:
        with refused(code, named):
            session.sql(text)
    assert session.table("t").version == version


def read(session: Session) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in session.table("t").to_arrow().to_pylist())


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id)"], ids=["plain", "keyed"])
def test_changes_need_no_spark(local: Session, local_fmt: str, key: str) -> None:
    play(local, local_fmt, key)


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["parquet", "iceberg"])
@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id)"], ids=["plain", "keyed"])
def test_spark_makes_the_same_of_them(session: Session, fmt: str, key: str) -> None:
    play(session, fmt, key)


def test_a_null_key_is_refused_by_name(local: Session, local_fmt: str) -> None:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE t (id INT, n INT, PRIMARY KEY (id))")
    local.sql("INSERT INTO t VALUES (1, 1), (2, NULL)")
    for text in (
        "UPDATE t SET id = NULL WHERE id = 1",
        "UPDATE t SET id = n",
        "MERGE INTO t USING (VALUES (CAST(NULL AS INT))) s(x) ON t.id = 1 WHEN MATCHED THEN UPDATE SET id = s.x",
        "MERGE INTO t USING (VALUES (CAST(NULL AS INT))) s(x) ON FALSE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.x)",
    ):
        with refused("CONSTRAINT_VIOLATION", "'id'"):
            local.sql(text)
    assert sorted(map(tuple, local.sql("SELECT * FROM t").fetchall())) == [(1, 1), (2, None)]


PARTS: Final = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string()), ("d", pa.decimal128(5, 2))]))])
FIELDS: Final = [
    "UPDATE t SET n.a = 5 WHERE id < 3",
    "UPDATE t AS z SET z.N.B.d = 1.555, n.b.c = 'q' WHERE id IN (2, 3)",
    (
        "MERGE INTO t USING (VALUES (3, 'm'), (4, 'new')) s(id, m) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.n.b.c = s.m, n.a = s.id WHEN NOT MATCHED THEN INSERT (t.id) VALUES (s.id)"
    ),
]


def play_fields(session: Session, fmt: str, key: str) -> None:
    session.use(fmt, "default")
    session.sql(f"CREATE TABLE t (id INT, n STRUCT<a: INT, b: STRUCT<c: STRING, d: DECIMAL(5, 2)>>{key})")
    old = {"a": 1, "b": {"c": "x", "d": None}}
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "n": pa.array([old, None, old], PARTS)})
    _ = session.table("t").upsert(rows) if key else session.table("t").append(rows)
    for text in FIELDS:
        session.sql(text)
    assert session.table("t").update("id = 1", set={"t.n.b.`c`": "'y'"}).updated == 1
    with refused("NUMERIC_VALUE_OUT_OF_RANGE", "'n.b.d'", "1000"):
        session.sql("UPDATE t SET n.b.d = 1000 WHERE id = 1")
    assert read(session) == [
        (1, {"a": 5, "b": {"c": "y", "d": None}}),
        (2, {"a": 5, "b": {"c": "q", "d": Decimal("1.56")}}),
        (3, {"a": 3, "b": {"c": "m", "d": Decimal("1.56")}}),
        (4, None),
    ]


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id)"], ids=["plain", "keyed"])
def test_fields_of_structs_are_set_by_name(local: Session, local_fmt: str, key: str) -> None:
    play_fields(local, local_fmt, key)


@pytest.mark.parametrize("fmt", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
def test_spark_sets_fields_alike(session: Session, fmt: str) -> None:
    play_fields(session, fmt, ", PRIMARY KEY (id)")


FORMS: Final = [
    ("MERGE INTO t USING src USING (ID) WHEN MATCHED THEN UPDATE SET n = src.n", (1, 0, 0)),
    (
        (
            "MERGE INTO t USING (SELECT id + 1 AS id, n FROM src) q USING (id) "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT BY NAME"
        ),
        (0, 1, 1),
    ),
    ("UPDATE t SET (n, v) = (SELECT max(n), min(w) FROM src), id = 10 WHERE id = 1", (1, 0, 0)),
    ("UPDATE t SET (n, v) = (SELECT n, w FROM src WHERE n > 1000) WHERE id = 8", (1, 0, 0)),
    (
        (
            "MERGE WITH SCHEMA EVOLUTION INTO t USING src ON t.id = src.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
        (1, 0, 1),
    ),
    (
        (
            "MERGE WITH SCHEMA EVOLUTION INTO t USING (VALUES (10, 5, 'no'), (2, 5000000000, 'yes')) s(id, n, x) "
            "USING (id) WHEN MATCHED AND s.n > 5 THEN UPDATE SET v = s.x, x = s.x"
        ),
        (1, 0, 0),
    ),
]


def play_forms(session: Session, fmt: str, key: str) -> None:
    session.use(fmt, "default")
    session.sql(f"CREATE TABLE t (id INT, n INT, v STRING DEFAULT 'none'{key})")
    session.sql("CREATE TABLE src (id INT, n INT, w STRING)")
    session.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
    session.sql("INSERT INTO src VALUES (2, 20, 'B'), (7, 70, 'X')")
    for text, counts in FORMS:
        [found] = session.sql(text).fetchall()
        assert tuple(found) == (sum(counts), *counts), text
    assert session.table("t").to_arrow().schema.names == ["id", "n", "v", "w", "x"]
    assert read(session) == [
        (2, 20, "yes", "B", "yes"),
        (7, 70, "none", "X", None),
        (8, None, None, None, None),
        (10, 70, "B", None, None),
    ]
    evolving = "MERGE WITH SCHEMA EVOLUTION INTO t USING (VALUES (8, 'z')) s(id, n) USING (id)"
    for text, code, named in (
        ("UPDATE t SET (n, v) = (SELECT n, w FROM src)", "SUBQUERY_MULTIPLE_ROWS", ""),
        ("UPDATE t SET (n, v) = (SELECT n FROM src)", "INVALID_ARGUMENTS", "2 columns"),
        (f"{evolving} WHEN MATCHED THEN UPDATE SET *", "TYPE_MISMATCH", "'n'"),
    ):
        with refused(code, named):
            session.sql(text)


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id)"], ids=["plain", "keyed"])
def test_forms_of_peers(local: Session, local_fmt: str, key: str) -> None:
    play_forms(local, local_fmt, key)


@pytest.mark.parametrize("fmt", ["iceberg", pytest.param("delta", marks=pytest.mark.full)])
def test_spark_takes_the_forms_of_peers(session: Session, fmt: str) -> None:
    play_forms(session, fmt, ", PRIMARY KEY (id)")


def test_insert_takes_structs_by_place(session: Session) -> None:
    """As in Spark, unnamed fields are assigned by position, and named ones must match."""
    session.sql(
        "CREATE TABLE t (id INT, s STRUCT<a: BIGINT, b: STRING> DEFAULT struct(0, 'none'), "
        "l ARRAY<STRUCT<a: INT, b: STRUCT<c: INT>>>, m MAP<STRING, STRUCT<x: INT>>)"
    )
    session.sql("INSERT INTO t VALUES (1, struct(1, 'a'), array(struct(2, struct(3))), map('k', struct(4)))")
    session.sql("INSERT INTO t SELECT 2, named_struct('A', 5, 'b', 'q'), array(), NULL")
    session.sql("INSERT INTO t (id) VALUES (3)")
    session.sql("INSERT INTO t VALUES (4, DEFAULT, NULL, NULL)")
    session.sql("MERGE INTO t USING (VALUES (5)) u(id) ON t.id = u.id WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)")
    rows = read(session)
    none = {"a": 0, "b": "none"}
    assert rows[0] == (1, {"a": 1, "b": "a"}, [{"a": 2, "b": {"c": 3}}], [("k", {"x": 4})])
    assert [row[1] for row in rows[1:]] == [{"a": 5, "b": "q"}, none, none, none]
    for text, said in (
        ("INSERT INTO t (id, s) VALUES (6, named_struct('b', 'x', 'a', 1))", "in another order"),
        ("UPDATE t SET s = named_struct('b', 'x', 'a', 1)", "in another order"),
        ("UPDATE t SET s = struct(1, 'a')", "cast it first"),
        ("INSERT INTO t (id, s) VALUES (6, struct('x', 1))", "struct<a:string,b:int>"),
        ("INSERT INTO t (id, s) VALUES (6, struct(1))", "cast it first"),
    ):
        with refused("TYPE_MISMATCH", said):
            session.sql(text)


@pytest.mark.parametrize("value", ["5", "1.5", "true", "DATE '2024-01-01'"])
def test_text_takes_no_other_values(local: Session, value: str) -> None:
    """Spark would cast them (M6)."""
    local.sql("CREATE TABLE t (id INT, s STRING)")
    local.sql("INSERT INTO t VALUES (1, 'a')")
    for text in (f"INSERT INTO t VALUES (2, {value})", f"UPDATE t SET s = {value}"):
        with refused("TYPE_MISMATCH", "'s'", "string"):
            local.sql(text)


def test_what_only_spark_evaluates_is_left_to_it(local: Session) -> None:
    local.sql("CREATE TABLE t (id INT, n INT, d DOUBLE)")
    local.sql("CREATE TABLE u (k INT, e DOUBLE)")
    for text in (
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k < t.id)",
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE k + id = 3)",
        "DELETE FROM t WHERE d IN (SELECT e FROM u)",
        "WITH RECURSIVE q AS (SELECT 1 AS id) MERGE INTO t USING q ON t.id = q.id WHEN MATCHED THEN DELETE",
        "UPDATE t SET n = hash(n)",
    ):
        with refused("NOT_SUPPORTED", "needs Spark", "engine='auto'"):
            local.sql(text)


def test_other_dialects_and_parameters(local: Session) -> None:
    local.sql("CREATE TABLE t (id INT, v STRING)")
    local.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    local.sql("UPDATE t SET v = 'q' WHERE \"id\" = 2", dialect="trino")
    local.sql("DELETE FROM t WHERE v = :v", {"v": "a"})
    assert read(local) == [(2, "q")]


def test_a_delete_of_whole_partitions_reads_none_of_them(local: Session, local_fmt: str) -> None:
    """The condition may name the column after the table's alias, too (M12)."""
    table = local.create_table(
        f"{local_fmt}.default.visits", [Column("id", "int"), Column("region", "string")], partition_by=["region"]
    )
    table.append([{"id": 1, "region": "eu"}, {"id": 2, "region": "us"}, {"id": 3, "region": None}])
    for file in table.splits().files:
        Path(file.path).unlink()  # a read of them would fail
    [found] = local.sql(f"DELETE FROM {table.name} v WHERE v.region = 'eu' OR V.Region IS NULL").fetchall()
    assert found[0] == 2
    [left] = table.splits().files
    assert left.partition["region"] == "us"


def test_numbers_within_nested_values_are_widened(local: Session, local_fmt: str) -> None:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE n (id INT, a ARRAY<BIGINT>, st STRUCT<x: BIGINT, y: ARRAY<INT>>, PRIMARY KEY (id))")
    local.sql("INSERT INTO n SELECT 1 AS id, array(1, NULL) AS a, named_struct('x', 1, 'y', array(2S)) AS st")
    local.sql(
        "INSERT INTO n VALUES (2, array(5Y), named_struct('x', 4S, 'y', CAST(NULL AS ARRAY<INT>))), (3, NULL, NULL)"
    )
    local.sql("UPDATE n SET a = array(7, id) WHERE id = 2")
    local.sql(
        "MERGE INTO n USING (SELECT 3 AS k, array(9S) AS b) s ON n.id = s.k "
        "WHEN MATCHED THEN UPDATE SET a = s.b, st = named_struct('x', s.k, 'y', array(8S))"
    )
    found = [(row.a, None if row.st is None else tuple(row.st)) for row in local.sql("SELECT * FROM n ORDER BY id")]
    assert found == [([1, None], (1, [2])), ([7, 2], (4, None)), ([9], (3, [8]))]
    with refused("NOT_SUPPORTED", "array<bigint>"):
        local.sql("UPDATE n SET st = named_struct('x', 1L, 'y', array(2L)) WHERE id = 1")
