"""MERGE, UPDATE and DELETE from text to the engine's program, without running it (M10)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

import trinity
from trinity import Session
from trinity.engine.program import Case, Program, When
from trinity.errors import TrinityError
from trinity.spi import Operation
from trinity.sql.changing import dml
from trinity.sql.changing.build_program import program
from trinity.syntax.parse import only_one

pytestmark = pytest.mark.inner


@pytest.fixture(scope="module")
def targets(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session with a target t, a source u, and a table t in another catalog; no test changes them."""
    with trinity.connect(tmp_path_factory.mktemp("dml")) as session:
        session.sql("CREATE TABLE t (id INT, v INT, n STRING DEFAULT 'none', at STRUCT<x: INT>)")
        session.sql("CREATE TABLE u (id INT, w BIGINT)")
        session.sql("CREATE TABLE delta.default.t (id INT, v INT)")
        session.sql("INSERT INTO t VALUES (1, 1, 'a', NULL)")
        session.sql("INSERT INTO u VALUES (1, 1)")
        yield session


@contextmanager
def prepared(session: Session, text: str, dialect: str = "spark") -> Iterator[Program]:
    only, tokens = only_one(text, dialect)
    piece = dml.row_change(only, dialect, tokens)
    assert piece is not None
    change = dml.read(piece)
    table = dml.target_table(session, change.target)
    with program(session, table, change, table.splits()) as made:
        yield made


def cases(session: Session, text: str, dialect: str = "spark") -> tuple[Case, ...]:
    with prepared(session, text, dialect) as made:
        return made.cases


def test_every_clause_of_a_merge_becomes_a_case(targets: Session) -> None:
    text = """
        MERGE INTO t AS a USING u AS b ON a.id = b.id /* a comment */ AND b.w > 0
        WHEN MATCHED AND b.w > 5 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND v > 1 THEN UPDATE SET v = v + 1, n = DEFAULT
        WHEN MATCHED AND w < 3 THEN UPDATE SET a.v = w, N = CASE WHEN v IS NULL THEN 'THEN' END
        WHEN NOT MATCHED AND w IS NOT NULL THEN INSERT (V, a.id) VALUES (id, DEFAULT)
        WHEN NOT MATCHED BY TARGET THEN INSERT DEFAULT VALUES
        WHEN MATCHED THEN DO NOTHING -- the end
    """
    with prepared(targets, text) as made:
        assert (made.statement, made.target_alias, made.source_alias) == ("MERGE", "a", "b")
        assert made.source is not None
        assert made.source.columns == ["id", "w"]
        assert made.on == "`a`.`id` = `b`.`id` /* a comment */ AND `b`.`w` > 0"
        assert [r.table for r in made.reads] == ["u"]
        assert made.reads[0].version is not None
        assert made.cases == (
            Case(When.MATCHED, Operation.DELETE, "`b`.`w` > 5"),
            Case(
                When.NOT_MATCHED_BY_SOURCE, Operation.UPDATE, "`a`.`v` > 1", {"v": "`a`.`v` + 1", "n": "(\n'none'\n)"}
            ),
            Case(
                When.MATCHED,
                Operation.UPDATE,
                "`b`.`w` < 3",
                {"v": "`b`.`w`", "n": "CASE WHEN `a`.`v` IS NULL THEN 'THEN' END"},
            ),
            Case(When.NOT_MATCHED, Operation.INSERT, "`b`.`w` IS NOT NULL", {"v": "`b`.`id`", "id": "NULL"}),
            Case(When.NOT_MATCHED, Operation.INSERT, None, {}),
            Case(When.MATCHED, None),
        )
        assert not made.deletes_matches


def test_stars_and_a_missing_column_list(targets: Session) -> None:
    found = cases(
        targets,
        "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND id > 3 THEN INSERT * "
        "WHEN NOT MATCHED THEN INSERT VALUES (id, 2, '3', NULL)",
    )
    assert [c.values for c in found] == [None, None, {"id": "`u`.`id`", "v": "2", "n": "'3'", "at": "NULL"}]


def test_update_and_delete(targets: Session) -> None:
    with prepared(targets, "UPDATE t SET v = v + 1, (id, n) = (2, 'x') WHERE id = 1") as made:
        assert made.source is None
        values = {"v": "`t`.`v` + 1", "id": "2", "n": "'x'"}
        assert made.cases == (Case(When.MATCHED, Operation.UPDATE, "`t`.`id` = 1", values),)
    with prepared(targets, "UPDATE t AS a SET v = w FROM u WHERE a.id = u.id") as made:
        assert made.on == "`a`.`id` = `u`.`id`"
        assert made.cases == (Case(When.MATCHED, Operation.UPDATE, None, {"v": "`u`.`w`"}),)
    with prepared(targets, "UPDATE t SET v = 1 FROM u") as made:
        assert made.on == "TRUE"
    assert cases(targets, "DELETE FROM t") == (Case(When.MATCHED, Operation.DELETE),)
    assert cases(targets, "DELETE FROM t x WHERE x.id = 1")[0].condition == "`x`.`id` = 1"
    with prepared(targets, "DELETE FROM t USING u WHERE u.id = t.id AND w > 1") as made:
        assert made.on == "`u`.`id` = `t`.`id` AND `u`.`w` > 1"
        assert made.cases == (Case(When.MATCHED, Operation.DELETE),)
        assert made.deletes_matches


def test_names_may_be_qualified_by_schema_and_catalog(targets: Session) -> None:
    with prepared(
        targets,
        "MERGE INTO parquet.default.t USING delta.default.t ON parquet.default.t.id = delta.default.t.id "
        "WHEN MATCHED THEN UPDATE SET parquet.default.t.v = delta.default.t.v",
    ) as made:
        assert made.target_alias == "t"
        assert made.source_alias != "t"
        assert made.on == f"`t`.`id` = `{made.source_alias}`.`id`"
        assert made.cases[0].values == {"v": f"`{made.source_alias}`.`v`"}
    assert cases(targets, "DELETE FROM default.t WHERE default.T.At.x = 1")[0].condition == "`t`.`at`.x = 1"


def test_views_live_as_long_as_the_program(targets: Session) -> None:
    def views() -> list[str]:
        return [t.tableName for t in targets.spark.sql("SHOW TABLES").collect() if t.tableName.startswith("_trinity")]

    with prepared(targets, "WITH c AS (SELECT * FROM u) DELETE FROM t WHERE id IN (SELECT id FROM c, delta.default.t)"):
        assert len(views()) == 3
    assert views() == []
    with pytest.raises(TrinityError):
        cases(targets, "DELETE FROM t USING u WHERE nope = 1")
    assert views() == []


def test_inner_names_are_not_the_outer_ones(targets: Session) -> None:
    text = str(
        cases(
            targets,
            "UPDATE t SET v = (SELECT max(t.v) FROM t WHERE t.id = u.id) FROM u WHERE t.id = u.id AND EXISTS "
            "(SELECT 1 FROM u x WHERE x.id = default.t.id)",
        )[0].values
    )
    assert "max(t.v)" in text
    assert "`u`.`id`" in text


def test_a_source_that_is_a_join_keeps_its_names_apart(targets: Session) -> None:
    with prepared(
        targets, "MERGE INTO t USING u a JOIN u b ON a.id = b.id ON t.id = a.id WHEN MATCHED THEN UPDATE SET v = b.w"
    ) as made:
        assert made.source is not None
        assert len(set(made.source.columns)) == 4
    with prepared(
        targets, "UPDATE t SET v = v + w FROM u JOIN (SELECT id FROM u) b USING (id) WHERE t.id = b.id"
    ) as made:
        assert made.source is not None
        assert {"id", "w"} < set(made.source.columns)


REFUSED = [
    ("MERGE INTO t USING u ON id = 1 WHEN MATCHED THEN DELETE", "INVALID_ARGUMENTS", "column 'id' is ambiguous"),
    ("UPDATE t SET v = 1 FROM u WHERE id = 1", "INVALID_ARGUMENTS", "'id' is ambiguous"),
    ("MERGE INTO t USING t ON t.id = t.id WHEN MATCHED THEN DELETE", "INVALID_ARGUMENTS", "give one an alias"),
    ("MERGE INTO t USING u ON t.id = w WHEN MATCHED THEN UPDATE SET v = id", "INVALID_ARGUMENTS", "'id' is ambiguous"),
    ("UPDATE t SET v = id + 1 FROM u WHERE t.id = u.id", "INVALID_ARGUMENTS", "Write `t`.`id` or `u`.`id`"),
    ("UPDATE t SET id = (id) FROM u WHERE t.id = u.id", "INVALID_ARGUMENTS", "'id' is ambiguous"),
    ("MERGE INTO t USING u AS t ON t.id = 1 WHEN MATCHED THEN DELETE", "INVALID_ARGUMENTS", "'t' names target and"),
    ("MERGE INTO t USING u a, u b ON t.id = id WHEN MATCHED THEN DELETE", "INVALID_ARGUMENTS", "'id' is ambiguous"),
    ("MERGE INTO t USING u a, u b ON w = 1 WHEN MATCHED THEN DELETE", "INVALID_ARGUMENTS", "several of that name"),
    ("MERGE INTO t USING u ON t.nope = 1 WHEN MATCHED THEN DELETE", "COLUMN_NOT_FOUND", "'t' has no column 'nope'"),
    ("MERGE INTO t a USING u ON t.id = 1 WHEN MATCHED THEN DELETE", "COLUMN_NOT_FOUND", "qualified with: a, u"),
    ("MERGE INTO t USING u ON nope WHEN MATCHED THEN DELETE", "COLUMN_NOT_FOUND", "no column 'nope'"),
    (
        "MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)",
        "COLUMN_NOT_FOUND",
        "no target row",
    ),
    ("MERGE INTO t USING u ON TRUE WHEN NOT MATCHED AND v > 1 THEN INSERT *", "COLUMN_NOT_FOUND", "no target row"),
    (
        "MERGE INTO t USING u ON TRUE WHEN NOT MATCHED BY SOURCE AND w > 1 THEN DELETE",
        "COLUMN_NOT_FOUND",
        "no source row",
    ),
    ("MERGE INTO t USING u ON TRUE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", "INVALID_ARGUMENTS", "no source row"),
    (
        "MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN INSERT (id, vv) VALUES (1, 2)",
        "COLUMN_NOT_FOUND",
        "mean 'v'",
    ),
    (
        "MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN INSERT (id, ID) VALUES (1, 2)",
        "DUPLICATE_COLUMN_NAME",
        "'id'",
    ),
    ("MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1)", "TYPE_MISMATCH", "2 columns"),
    ("MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN INSERT VALUES (1)", "TYPE_MISMATCH", "4 columns"),
    ("MERGE INTO t USING u ON TRUE WHEN MATCHED THEN UPDATE SET v = 1, V = 2", "DUPLICATE_COLUMN_NAME", "'v'"),
    ("MERGE INTO t USING u ON TRUE WHEN MATCHED THEN INSERT *", "SYNTAX_ERROR", "UPDATE or DELETE"),
    ("MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN DELETE", "SYNTAX_ERROR", "only INSERT"),
    ("MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN INSERT VALUES (1), (2)", "SYNTAX_ERROR", "one row"),
    ("MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN INSERT ROW", "NOT_SUPPORTED", "ROW"),
    ("MERGE INTO t USING u ON TRUE WHEN MATCHED THEN UPDATE SET v = 1 WHERE v = 2", "NOT_SUPPORTED", "WHERE"),
    ("MERGE INTO t USING u ON TRUE WHEN MATCHED THEN DELETE RETURNING *", "NOT_SUPPORTED", "RETURNING"),
    ("MERGE INTO t USING u USING (w) WHEN MATCHED THEN DELETE", "COLUMN_NOT_FOUND", "no column 'w'"),
    ("MERGE INTO t USING u USING (id) WHEN NOT MATCHED THEN INSERT BY NAME", "COLUMN_NOT_FOUND", "no column 'w'"),
    ("MERGE INTO t USING u JOIN u b USING (id) WHEN MATCHED THEN DELETE", "SYNTAX_ERROR", "ON is expected"),
    ("MERGE INTO t VERSION AS OF 1 USING u ON TRUE WHEN MATCHED THEN DELETE", "NOT_SUPPORTED", "VERSION AS OF"),
    ("MERGE INTO t @ b USING u ON TRUE WHEN MATCHED THEN DELETE", "NOT_SUPPORTED", "@"),
    ("MERGE INTO t USING u WHERE id = 1 ON TRUE WHEN MATCHED THEN DELETE", "SYNTAX_ERROR", "is no source"),
    ("MERGE INTO t USING u ON TRUE", "SYNTAX_ERROR", "WHEN is expected"),
    ("MERGE INTO t USING u WHEN MATCHED THEN DELETE", "SYNTAX_ERROR", "ON is expected"),
    ("MERGE INTO t USING u ON\n\n t.id = WHEN MATCHED THEN DELETE", "SYNTAX_ERROR", "Line 3"),
    ("MERGE INTO t USING nope ON TRUE WHEN MATCHED THEN DELETE", "TABLE_NOT_FOUND", "nope"),
    ("MERGE INTO tt USING u ON TRUE WHEN MATCHED THEN DELETE", "TABLE_NOT_FOUND", "Did you mean 't'"),
    ("MERGE INTO t USING (SELECT id FROM nope) s ON TRUE WHEN MATCHED THEN DELETE", "TABLE_NOT_FOUND", "nope"),
    ("UPDATE t SET nope = 1", "COLUMN_NOT_FOUND", "no column 'nope'"),
    ("UPDATE t SET _trinity_row_kind = 1", "COLUMN_NOT_FOUND", "no column"),
    ("UPDATE t SET v = _trinity_row_id", "COLUMN_NOT_FOUND", "no column"),
    ("UPDATE t SET x.v = 1", "COLUMN_NOT_FOUND", "known as 't'"),
    ("UPDATE t SET at.y = 1", "COLUMN_NOT_FOUND", "'at' of table 'parquet.default.t' has no field 'y'"),
    ("UPDATE t SET t.v.x = 1", "TYPE_MISMATCH", "has no field 'x' that could be set"),
    ("UPDATE t SET at.x = 1, t.At.X = 2", "DUPLICATE_COLUMN_NAME", "'at.x' more than once"),
    ("UPDATE t SET at.x = 1, at = NULL", "DUPLICATE_COLUMN_NAME", "'at' and its field 'at.x'"),
    ("UPDATE t SET at.x = 'a'", "TYPE_MISMATCH", "column 'at.x'"),
    ("UPDATE t SET at.x = DEFAULT", "NOT_SUPPORTED", "only columns have a DEFAULT"),
    ("MERGE INTO t USING u ON TRUE WHEN NOT MATCHED THEN INSERT (at.x) VALUES (1)", "NOT_SUPPORTED", "whole columns"),
    ("UPDATE t SET (id, v) = (SELECT 1)", "INVALID_ARGUMENTS", "2 columns"),
    ("UPDATE t SET (id, v) = (SELECT 1, 2), v = 3", "DUPLICATE_COLUMN_NAME", "'v'"),
    ("UPDATE t SET (id, v) = (1)", "INVALID_ARGUMENTS", "2 columns"),
    ("UPDATE t SET v = 1 LIMIT 1", "NOT_SUPPORTED", "LIMIT"),
    ("UPDATE t SET v = 1 ORDER BY id", "NOT_SUPPORTED", "ORDER BY"),
    ("UPDATE t SET v = 1 RETURNING id", "NOT_SUPPORTED", "RETURNING"),
    ("UPDATE t PARTITION (id = 1) SET v = 1", "NOT_SUPPORTED", "PARTITION"),
    ("UPDATE t AS a(x) SET x = 1", "NOT_SUPPORTED", "renamed"),
    ("UPDATE t SET v = 1,", "SYNTAX_ERROR", "an assignment is expected"),
    ("UPDATE t SET v 1", "SYNTAX_ERROR", "= is expected"),
    ("UPDATE t SET v = id = ", "SYNTAX_ERROR", "Line 1"),
    ("UPDATE t SET n = struct(*)", "NOT_SUPPORTED", "name the columns"),
    ("DELETE FROM t WHERE", "SYNTAX_ERROR", "a condition is expected"),
    ("DELETE FROM t WHERE (id = 1", "SYNTAX_ERROR", "Line 1"),
    ("DELETE FROM t LIMIT 1", "NOT_SUPPORTED", "LIMIT"),
    ("DELETE FROM t TIMESTAMP AS OF '2020-01-01' WHERE id = 1", "NOT_SUPPORTED", "TIMESTAMP AS OF"),
    ("DELETE FROM t WHERE u.id = 1", "COLUMN_NOT_FOUND", "qualified with: t"),
    ("DELETE FROM nope.default.t", "CATALOG_NOT_FOUND", "nope"),
    ("WITH c AS (SELECT 1), C AS (SELECT 2) DELETE FROM t", "INVALID_ARGUMENTS", "twice"),
    ("WITH c(a, b) AS (SELECT 1) DELETE FROM t", "INVALID_ARGUMENTS", "2 columns"),
    ("WITH c AS (DELETE FROM t) DELETE FROM t", "NOT_SUPPORTED", "only a query"),
    ("TRUNCATE TABLE t PARTITION (id = 1)", "NOT_SUPPORTED", "PARTITION"),
    ("TRUNCATE TABLE t, u", "NOT_SUPPORTED", "one table"),
    ("EXPLAIN TRUNCATE TABLE t", "NOT_SUPPORTED", "TRUNCATE"),
    ("EXPLAIN DELETE FROM t WHERE nope = 1", "COLUMN_NOT_FOUND", "nope"),
]


def test_refusals_come_before_anything_is_written(targets: Session) -> None:
    for text, code, part in REFUSED:
        with pytest.raises(TrinityError) as caught:
            targets.sql(text)
        assert caught.value.code == code, text
        assert part in caught.value.message, text
    assert targets.sql("SELECT * FROM t").count() == 1
    assert targets.table("t").history().count() == 2


def test_views_and_sparks_own_tables_are_no_targets(targets: Session) -> None:
    targets.spark.range(1).createOrReplaceTempView("a_view")
    targets.spark.sql("CREATE TABLE sparks_own (id INT) USING parquet")
    try:
        for text, part in [
            ("DELETE FROM a_view", "is a view"),
            ("MERGE INTO A_VIEW USING u ON TRUE WHEN MATCHED THEN DELETE", "is a view"),
            ("TRUNCATE TABLE a_view", "is a view"),
            ("UPDATE sparks_own SET id = 1", "Spark's own"),
            ("UPDATE spark_catalog.default.sparks_own SET id = 1", "Spark's own"),
        ]:
            with pytest.raises(TrinityError, match=part) as caught:
                targets.sql(text)
            assert caught.value.code == "NOT_SUPPORTED"
    finally:
        targets.spark.sql("DROP TABLE sparks_own")
        targets.spark.catalog.dropTempView("a_view")


@pytest.mark.parametrize(
    ("dialect", "written", "meant"),
    [
        ("trino", "v / 2", "(`t`.`v` DIV 2)"),
        ("postgres", "v / 2", "(`t`.`v` DIV 2)"),
        ("duckdb", "v / 2", "CAST(`t`.`v` AS DOUBLE) / CAST(2 AS DOUBLE)"),
        ("trino", "v / 2e0", "`t`.`v` / 2e0"),
        ("trino", "v / 4.0", "CAST(`t`.`v` / 4.0 AS DECIMAL(12, 1))"),
        ("trino", '"V" + 1', "`t`.`v` + 1"),
        ("trino", "CAST(2.5 AS INTEGER)", "CAST(ROUND(2.5) AS INT)"),
        ("postgres", "CAST(2.5e0 AS INTEGER)", "CAST(RINT(2.5e0) AS INT)"),
        ("trino", "CAST(n AS VARCHAR(3))", "SUBSTRING(CAST(`t`.`n` AS STRING), 1, 3)"),
        ("trino", "CAST(v AS VARCHAR) || 'it''s'", "CAST(`t`.`v` AS STRING) || 'it\\'s'"),
        ("trino", "greatest(v, 1)", "CASE WHEN `t`.`v` IS NULL OR 1 IS NULL THEN NULL ELSE GREATEST(`t`.`v`, 1) END"),
        ("postgres", "greatest(v, 1)", "GREATEST(`t`.`v`, 1)"),
        ("postgres", "concat(n, 'x')", "CONCAT(COALESCE(`t`.`n`, ''), 'x')"),
        ("trino", "concat(n, 'x')", "CONCAT(`t`.`n`, 'x')"),
    ],
)
def test_dialects_keep_their_meaning(targets: Session, dialect: str, written: str, meant: str) -> None:
    (case,) = cases(targets, f"UPDATE t SET n = {written}", dialect)
    assert case.values == {"n": meant}


@pytest.mark.parametrize(
    ("dialect", "written"),
    [
        ("postgres", "n ~ 'a'"),
        ("postgres", "v / 2.0"),
        ("postgres", "to_char(v, '9')"),
        ("postgres", "v = ANY(ARRAY[1, 2])"),
        ("duckdb", "n LIKE 'a\\b'"),
        ("duckdb", "list_value(1)"),
        ("trino", "n LIKE n"),
        ("trino", "CAST(current_timestamp AS VARCHAR)"),
    ],
)
def test_what_could_change_its_meaning_is_refused(targets: Session, dialect: str, written: str) -> None:
    with pytest.raises(TrinityError) as caught:
        cases(targets, f"UPDATE t SET n = {written}", dialect)
    assert caught.value.code == "NOT_SUPPORTED"


def test_types_are_found_in_subqueries_too(targets: Session) -> None:
    text = "UPDATE t SET v = (SELECT max(q) / 2 FROM (SELECT w AS q FROM u) z)"
    assert "(MAX(q) DIV 2)" in str(cases(targets, text, "trino")[0].values)
    common = "WITH c AS (SELECT id / 2 AS h FROM u) MERGE INTO t USING c ON t.id = c.h / 2 WHEN MATCHED THEN DELETE"
    with prepared(targets, common, "trino") as made:
        assert made.on == "`t`.`id` = (`c`.`h` DIV 2)"


@pytest.mark.parametrize("dialect", ["spark", "trino", "postgres"])
def test_with_of_values(targets: Session, dialect: str) -> None:
    """A WITH query may be VALUES, in parentheses or without (M8)."""
    for body in ("VALUES (1, 5), (2, 6)", "(VALUES (1, 5))", "VALUES (1, 5) UNION ALL SELECT id, w FROM u"):
        text = f"WITH n(id, x) AS ({body}) {{}}"
        merge = "MERGE INTO t USING n ON t.id = n.id WHEN MATCHED THEN UPDATE SET v = n.x"
        for change in (merge, "UPDATE t SET v = x FROM n WHERE t.id = n.id", "DELETE FROM t USING n WHERE t.id = n.id"):
            with prepared(targets, text.format(change), dialect) as made:
                assert made.statement == change.split()[0]


def test_the_column_that_is_set_is_the_targets_in_an_expression(targets: Session) -> None:
    """As in an example of Trino's documentation; ``v = v`` of the target alone would silently change nothing."""
    merge = "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET id = id + 1, v = v + w"
    assert cases(targets, merge)[0].values == {"id": "`t`.`id` + 1", "v": "`t`.`v` + `u`.`w`"}
