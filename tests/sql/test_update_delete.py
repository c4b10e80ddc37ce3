"""UPDATE, DELETE and TRUNCATE through SQL, on plain and keyed tables of every format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.sql_target import make_target, refusal_of, rows_of
from trinity import Column, Session
from trinity.engine.changing.statement import run
from trinity.engine.program import Program
from trinity.spi import SplitSource
from trinity.sql.changing import dml
from trinity.sql.changing.build_program import program
from trinity.syntax.parse import only_one

pytestmark = pytest.mark.inner


@pytest.fixture(params=["keyed", pytest.param("plain", marks=pytest.mark.full)])
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of table: without and with a primary key."""
    return str(request.param)


@pytest.fixture
def sql(session: Session, tiered_fmt: str, kind: str) -> Session:
    """Make the target t: (1, 10, a), (2, 20, b), (3, 30, NULL), and u: (1, 100), (1, 101), (4, 400), (NULL, 0)."""
    session.use(tiered_fmt, "default")
    make_target(session, keyed=kind == "keyed")
    session.sql("CREATE TABLE u (id INT, w INT)")
    session.sql("INSERT INTO u VALUES (1, 100), (1, 101), (4, 400), (NULL, 0)")
    return session


def ids(session: Session) -> list[int]:
    return [r[0] for r in rows_of(session)]


def affected(session: Session, text: str, dialect: str = "spark") -> int:
    (counts,) = session.sql(text, dialect=dialect).collect()
    kind = {"U": counts.num_updated_rows, "D": counts.num_deleted_rows}["D" if "DELETE" in text else "U"]
    assert counts.num_affected_rows == kind
    assert isinstance(kind, int)
    return kind


def test_update(sql: Session) -> None:
    assert affected(sql, "UPDATE t SET v = v + 1") == 3
    assert affected(sql, "UPDATE t x SET x.v = id, N = DEFAULT WHERE n IS NULL OR x.v > 20") == 2
    assert rows_of(sql) == [(1, 11, "a"), (2, 2, "none"), (3, 3, "none")]
    assert affected(sql, "UPDATE t SET v = length(n), n = CAST(v AS STRING) WHERE id < 3") == 2
    assert rows_of(sql) == [(1, 1, "11"), (2, 4, "2"), (3, 3, "none")]
    assert affected(sql, "UPDATE t SET v = v WHERE id = 3") == 1


@pytest.mark.full
def test_update_with_subqueries(sql: Session) -> None:
    assert affected(sql, "UPDATE t SET v = (SELECT max(w) FROM u WHERE u.id = t.id) WHERE id <> 3") == 2
    assert rows_of(sql) == [(1, 101, "a"), (2, None, "b"), (3, 30, None)]
    assert affected(sql, "UPDATE t SET v = 0 WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)") == 1
    assert affected(sql, "UPDATE t SET n = 'in' WHERE id IN (SELECT id + 1 FROM u)") == 1
    assert affected(sql, "UPDATE t SET v = (SELECT count(*) FROM t) WHERE id = 3") == 1
    assert affected(sql, "WITH c AS (SELECT max(w) AS m FROM u) UPDATE t SET v = (SELECT m FROM c) WHERE id = 2") == 1
    assert rows_of(sql) == [(1, 0, "a"), (2, 400, "in"), (3, 3, None)]
    error = refusal_of(sql, "UPDATE t SET v = (SELECT w FROM u)")
    assert error.code == "SUBQUERY_MULTIPLE_ROWS"


@pytest.mark.full
def test_update_from(sql: Session) -> None:
    assert affected(sql, "UPDATE t SET v = w, n = n || '!' FROM u WHERE u.id = t.id AND w < 101") == 1
    assert rows_of(sql) == [(1, 100, "a!"), (2, 20, "b"), (3, 30, None)]
    error = refusal_of(sql, "UPDATE t SET v = w FROM u WHERE u.id = t.id")
    assert error.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    joined = "UPDATE t SET v = a.w + b.w FROM u a JOIN (SELECT 5 AS w) b ON a.w < 101 WHERE a.id = t.id"
    assert affected(sql, joined) == 1
    assert affected(sql, "UPDATE t SET v = s.x FROM (VALUES (2, 7)) AS s(id, x) WHERE s.id = t.id") == 1
    assert affected(sql, "WITH c(id) AS (VALUES (3)) UPDATE t SET v = -1 FROM c WHERE c.id = t.id") == 1
    assert [r[1] for r in rows_of(sql)] == [105, 7, -1]


def test_delete(sql: Session) -> None:
    assert affected(sql, "DELETE FROM t WHERE rand() < 0") == 0
    assert affected(sql, "DELETE FROM t AS x WHERE x.n = 'b' OR n = 'zzz'") == 1
    assert ids(sql) == [1, 3]
    assert affected(sql, "DELETE FROM t") == 2
    assert rows_of(sql) == []
    sql.sql("INSERT INTO t VALUES (1, 1, 'again')")
    assert rows_of(sql) == [(1, 1, "again")]


def test_delete_with_subqueries(sql: Session) -> None:
    assert affected(sql, "DELETE FROM t WHERE id NOT IN (SELECT id FROM u)") == 0  # because of the NULL in u
    assert affected(sql, "DELETE FROM t WHERE id NOT IN (SELECT id FROM u WHERE id > 1)") == 3
    sql.sql("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, NULL)")
    assert affected(sql, "DELETE FROM t WHERE id IN (SELECT id FROM u)") == 1
    assert affected(sql, "DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id > t.id + 1)") == 1
    assert ids(sql) == [2]
    assert affected(sql, "DELETE FROM t WHERE v = (SELECT max(v) FROM t x WHERE x.id = t.id)") == 1


@pytest.mark.full
def test_delete_using(sql: Session) -> None:
    assert affected(sql, "DELETE FROM t USING u WHERE u.id = t.id AND w > 7") == 1  # both rows of u match it
    assert affected(sql, "DELETE FROM t USING u a, (SELECT 2 AS k) b WHERE b.k = t.id AND a.w = 400") == 1
    assert affected(sql, "WITH c(v) AS (VALUES (30)) DELETE FROM t USING c WHERE c.v = t.v") == 1
    assert affected(sql, "DELETE FROM t USING u WHERE u.id = t.id") == 0


def test_truncate(sql: Session) -> None:
    (counts,) = sql.sql("TRUNCATE TABLE t").collect()
    assert tuple(counts) == (3, 0, 3, 0)
    assert rows_of(sql) == []
    sql.sql("INSERT INTO t VALUES (1, 1, 'again')")
    assert rows_of(sql) == [(1, 1, "again")]


def test_statements_without_effect_make_no_commit(sql: Session) -> None:
    commits = sql.table("t").history().count()
    assert affected(sql, "UPDATE t SET v = 1 WHERE id = 99") == 0
    assert affected(sql, "UPDATE t SET v = 1 FROM u WHERE u.id = t.id AND w = 99") == 0
    assert affected(sql, "DELETE FROM t WHERE id > 99 OR n = 'zzz'") == 0
    assert sql.table("t").history().count() == commits


def test_refused_values(sql: Session) -> None:
    error = refusal_of(sql, "UPDATE t SET v = 3000000000 + id WHERE id = 2")
    assert error.code == "NUMERIC_VALUE_OUT_OF_RANGE"
    assert "3000000002" in error.message
    assert refusal_of(sql, "UPDATE t SET v = 'x'").code == "TYPE_MISMATCH"
    assert refusal_of(sql, "UPDATE t SET v = 1 WHERE n").code == "TYPE_MISMATCH"
    assert refusal_of(sql, "DELETE FROM t WHERE id + 1").code == "TYPE_MISMATCH"
    error = refusal_of(sql, "UPDATE t SET v = row_number() OVER (ORDER BY id)")
    assert error.code == "INVALID_ARGUMENTS"
    assert "UPDATE SET: 'ROW_NUMBER() OVER (ORDER BY id)'" in error.message
    error = refusal_of(sql, "UPDATE t SET id = CASE WHEN id = 2 THEN NULL ELSE id END")
    assert error.code == "CONSTRAINT_VIOLATION"
    assert "'id'" in error.message


@pytest.mark.full
def test_keys_and_literals(sql: Session, kind: str) -> None:
    assert affected(sql, "UPDATE t SET n = 'it''s'") == 3
    assert affected(sql, "UPDATE t SET id = id + 1 WHERE n = 'it''s'") == 3
    assert ids(sql) == [2, 3, 4]
    assert affected(sql, 'UPDATE t SET n = "say ""so""" WHERE id = 4') == 1
    assert affected(sql, "DELETE FROM t WHERE n = 'say \"so\"'") == 1
    if kind == "keyed":
        error = refusal_of(sql, "UPDATE t SET id = 3")
        assert error.code == "CONSTRAINT_VIOLATION"
        assert "3" in error.message
    else:
        assert affected(sql, "UPDATE t SET id = 3") == 2


def test_dialects(sql: Session) -> None:
    assert affected(sql, 'UPDATE t SET v = v / 3, n = CAST(v AS VARCHAR) || NULL WHERE "ID" = 2', "trino") == 1
    assert affected(sql, "UPDATE t AS x SET v = x.v / 4 FROM u WHERE u.id = x.id AND u.w = 100", "postgres") == 1
    assert affected(sql, "DELETE FROM t WHERE v > 100 / 4.0", "duckdb") == 1
    assert rows_of(sql) == [(1, 2, "a"), (2, 6, None)]


def test_explain(sql: Session) -> None:
    for statement in ("UPDATE t SET v = 1 WHERE id = 1", "DELETE FROM t USING u WHERE u.id = t.id"):
        text = sql.sql(f"EXPLAIN {statement}").head()
        assert text is not None
        assert "paradigm" in text[0]
        assert "case 0" in text[0]
    assert ids(sql) == [1, 2, 3]


def test_a_commit_between_a_subquery_and_its_target(sql: Session) -> None:
    """Both read one version; another attempt must read a later row in both."""
    text, tokens = only_one("UPDATE t SET v = (SELECT max(v) FROM t)")
    piece = dml.row_change(text, "spark", tokens)
    assert piece is not None
    change, table = dml.read(piece), sql.table("t")
    late = ["INSERT INTO t VALUES (9, 99, 'late')"]

    @contextmanager
    def overtaken(splits: SplitSource) -> Iterator[Program]:
        with program(sql, table, change, splits) as made:
            while late:
                sql.sql(late.pop())
            yield made

    assert run(table, overtaken).updated == 4
    assert {v for _, v, _ in rows_of(sql)} == {99}


@pytest.mark.tiered
def test_m12_a_delete_of_whole_partitions_reads_nothing(session: Session, fmt: str) -> None:
    table = session.create_table(
        f"{fmt}.default.visits", [Column("id", "int"), Column("region", "string")], partition_by=["region"]
    )
    session.sql(f"INSERT INTO {table.name} VALUES (1, 'eu'), (2, 'us'), (3, 'eu'), (4, NULL)")
    before = {f.path: f for f in table.splits().files}
    gone = [path for path, f in before.items() if f.partition["region"] == "eu"]
    for path in gone:
        Path(path).unlink()  # a read of them would fail
    counted = session.sql(f"DELETE FROM {table.name} t WHERE t.region = 'eu' OR t.region > 'x'").collect()[0]
    assert counted.num_deleted_rows == 2
    assert {f.path for f in table.splits().files} == before.keys() - gone
    assert sorted((r.id, r.region or "") for r in table.to_df().collect()) == [(2, "us"), (4, "")]
