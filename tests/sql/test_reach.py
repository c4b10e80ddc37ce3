"""What SQL may reach beyond the rows of tables: nothing, unless the session allows it (N2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

import trinity
import trinity.dbapi
from tests.support.reaching import CALL, COMMANDS, QUERIES
from tests.support.refusals import refused
from trinity import Column, Session
from trinity.spark.reach import reach_of_expression, reach_of_statement

pytestmark = pytest.mark.inner

HARMLESS: Final = (
    "SELECT text.a FROM t AS text",
    "SELECT 'reflect(x)', ' FROM text.`/x`'",
    "SELECT transform(array(1), x -> x) FROM a JOIN b USING (x)",
    "SELECT * FROM range(10)",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "/* c */ SELECT 1",
    "SHOW FUNCTIONS",
    "DESCRIBE FUNCTION upper",
    "SET spark.sql.ansi.enabled = true",
    "SET TIME ZONE LOCAL",
    "EXPLAIN SELECT 1",
    "DECLARE x INT",
    "CACHE TABLE x AS SELECT 1",
)


@pytest.fixture
def opened(warehouse: Path, session: Session) -> Iterator[Session]:
    """Yield a session that allows code, over the same warehouse."""
    with trinity.connect(warehouse, allow_code=True) as found:
        yield found


@pytest.mark.parametrize("text", [*QUERIES, *COMMANDS])
def test_n2_what_reaches_beyond_rows_is_found(spark: SparkSession, text: str) -> None:
    assert reach_of_statement(spark, text) is not None


@pytest.mark.parametrize("text", HARMLESS)
def test_what_reaches_nothing_is_let_through(spark: SparkSession, text: str) -> None:
    assert reach_of_statement(spark, text) is None


def test_expressions_reach_as_queries_do(spark: SparkSession) -> None:
    assert reach_of_expression(spark, "a = (SELECT max(value) FROM text.`/x`)") is not None
    assert reach_of_expression(spark, "reflect('a') -- x") is not None
    assert reach_of_expression(spark, "text.a = 1 AND 'reflect(x)' <> b") is None
    with refused("SYNTAX_ERROR"):
        reach_of_expression(spark, "reflect('a')) OR (1 = 1")


def test_n2_sql_reaches_code_and_files_where_the_session_allows_it(
    session: Session, opened: Session, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret")
    session.sql("CREATE TABLE t (id INT, v STRING)")
    statements = (
        f"INSERT INTO t SELECT 1, {CALL}",
        f"INSERT INTO t VALUES (1, {CALL})",
        f"INSERT INTO t SELECT 1, value FROM text.`{file}`",
        f"UPDATE t SET v = {CALL}",
        f"DELETE FROM t WHERE v = {CALL}",
        f"MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (1, {CALL})",
        f"MERGE INTO t USING text.`{file}` s ON t.v = s.value WHEN NOT MATCHED THEN INSERT VALUES (1, 'x')",
        f"UPDATE t SET v = (SELECT max(value) FROM text.`{file}`)",
        f"CREATE TABLE u AS SELECT value FROM text.`{file}`",
        f"CREATE TEMPORARY VIEW w AS SELECT value FROM text.`{file}`",
        f"SELECT * FROM t TIMESTAMP AS OF {CALL}",
        f"CACHE TABLE c AS SELECT {CALL}",
        "SELECT TRANSFORM(id) USING 'cat' AS (id) FROM t",
    )
    for text in statements:
        with refused("PERMISSION_DENIED", "allow_code=True"):
            session.sql(text)
    assert session.table("t").history().count() == 1
    assert opened.sql(f"SELECT value FROM text.`{file}`").collect() == [Row(value="s3cret")]
    assert opened.sql(f"SELECT {CALL} AS x").collect() == [Row(x="\n")]
    opened.sql(statements[0])
    assert opened.sql("SELECT TRANSFORM(id) USING 'cat' AS (id) FROM t").collect() == [Row(id="1")]


def test_n2_a_connection_allows_what_its_session_does(warehouse: Path, spark: SparkSession) -> None:
    with trinity.dbapi.connect(warehouse=warehouse) as connection:
        with pytest.raises(trinity.dbapi.ProgrammingError, match="PERMISSION_DENIED"):
            connection.execute(f"SELECT {CALL}, ?", (1,))
        assert connection.execute("SELECT ?", ("reflect('x') FROM text.`/x`",)).fetchall() == [
            ("reflect('x') FROM text.`/x`",)
        ]
    with trinity.dbapi.connect(warehouse=warehouse, allow_code=True) as connection:
        assert connection.execute(f"SELECT {CALL}, ?", (1,)).fetchall() == [("\n", 1)]


STORED: Final = (
    CALL,
    "reflect('java.lang.System', 'lineSeparator')",
    "(SELECT max(value) FROM text.`/etc/hostname`)",
    "(SELECT 1)",
    "identifier('re' || 'flect')('a')",
    "rand()",
    "uuid()",
    "of_the_session(1)",
    "nothing.upper('x')",
    "input_file_name()",
    "1) OR (1 = 1",
    "1 AS x",
    "1; 2",
    "1 -- \r ) AS a, (2",
)


@pytest.fixture
def udf(spark: SparkSession) -> Iterator[None]:
    spark.udf.register("of_the_session", lambda x: x)
    yield
    spark.sql("DROP TEMPORARY FUNCTION of_the_session")


def test_n2_a_default_is_a_constant(session: Session, opened: Session, udf: None) -> None:
    session.sql("CREATE TABLE t (id INT, v STRING)")
    for text in (*STORED, "x", "explode(array(1, 2))", "sum(1)"):
        columns = [Column("id", "int"), Column("v", "string", default=text)]
        for of in (session, opened):
            with pytest.raises(trinity.TrinityError) as caught:
                of.create_table("made", columns)
            assert caught.value.code in ("NOT_SUPPORTED", "SYNTAX_ERROR"), caught.value
        with pytest.raises(trinity.TrinityError):
            session.sql(f"CREATE TABLE u (id INT, v STRING DEFAULT {text})")
        with pytest.raises(trinity.TrinityError):
            session.sql(f"ALTER TABLE t ALTER COLUMN v SET DEFAULT {text}")
    assert session.list_tables("parquet", "default") == ["t"]


def test_n2_a_check_is_of_one_row_alone(session: Session, udf: None) -> None:
    columns = [Column("id", "int"), Column("v", "string")]
    table = session.create_table("t", columns)
    for stored in STORED:
        text = f"id = {stored}" if stored[0] == "1" else f"v <> {stored}"
        with pytest.raises(trinity.TrinityError) as caught:
            session.create_table("made", columns, checks={"c": text})
        assert caught.value.code in ("NOT_SUPPORTED", "SYNTAX_ERROR"), caught.value
        with pytest.raises(trinity.TrinityError):
            table.add_check("c", text)
    assert not table.definition.checks
    assert session.list_tables("parquet", "default") == ["t"]


def test_what_a_default_may_be(session: Session) -> None:
    session.sql(
        "CREATE TABLE t (id INT, a TIMESTAMP DEFAULT now(), b DATE DEFAULT current_date, "
        "c STRING DEFAULT current_user(), d STRING DEFAULT upper('x') || 'y', "
        "e ARRAY<INT> DEFAULT transform(array(1, 2), x -> x + 1), "
        "f INT DEFAULT abs(-1), g DOUBLE DEFAULT pi())"
    )
    session.create_table("u", [Column("id", "int"), Column("v", "int", default="1 + 1 -- two")])
    session.sql("INSERT INTO t (id) VALUES (1)")
    session.sql("INSERT INTO u VALUES (1, DEFAULT)")
    assert session.sql("SELECT d, e, f FROM t").collect() == [Row(d="Xy", e=[2, 3], f=1)]
    assert session.sql("SELECT v FROM u").collect() == [Row(v=2)]


FULL: Final = pytest.mark.full


@pytest.mark.parametrize("default", [CALL, *(pytest.param(d, marks=FULL) for d in ("(SELECT 'x')", "uuid()"))])
def test_n2_a_default_of_another_engine_is_not_run(session: Session, tmp_path: Path, default: str) -> None:
    """It is in the table's definition, which another engine may have written without checks."""
    table = session.create_table("delta.default.t", [Column("id", "int"), Column("v", "string", default="'mine'")])
    log = Path(table.location, "_delta_log")
    for file in log.glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        [metadata] = [action["metaData"] for action in actions if "metaData" in action]
        settings = metadata["configuration"]
        assert "'mine'" in settings["trinity.definition"]
        settings["trinity.definition"] = settings["trinity.definition"].replace("'mine'", json.dumps(default)[1:-1])
        del settings["trinity.table"]  # with it, the change of the definition would be noticed
        file.write_text("\n".join(map(json.dumps, actions)))
    for crc in log.glob("*.crc"):
        crc.unlink()
    with trinity.connect(tmp_path / "warehouse") as other:
        theirs = other.table("delta.default.t")
        ways: Any = (
            lambda: theirs.append(pa.table({"id": pa.array([1], pa.int32())})),
            lambda: theirs.append(other.spark.range(1).selectExpr("CAST(id AS INT) AS id")),
            lambda: other.sql("INSERT INTO delta.default.t VALUES (1, DEFAULT)"),
            lambda: other.sql("INSERT INTO delta.default.t (id) VALUES (1)"),
            lambda: other.sql(
                "MERGE INTO delta.default.t USING (SELECT 1 AS id) s ON false "
                "WHEN NOT MATCHED THEN INSERT (id) VALUES (1)"
            ),
            lambda: other.sql("UPDATE delta.default.t SET v = DEFAULT"),
        )
        for way in ways:
            with refused("NOT_SUPPORTED", "'v'"):
                way()
        assert theirs.to_df().collect() == []


PREDICATES: Final = (
    "id = 1) OR (1 = 1",
    "id = 1; DELETE FROM t",
    "id = 1 /* open",
    "id = 1 AS x",
    " ",
    "id = 1, id = 2",
    "*",
    "id = 1 -- \r ) OR (1 = 1",
)


def test_n2_a_condition_from_python_is_one_expression(session: Session) -> None:
    session.sql("CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id))")
    session.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    table = session.table("t")
    source = session.spark.sql("SELECT 1 AS id")
    ways: tuple[Callable[[str], Any], ...] = (
        lambda text: table.to_df(where=text).collect(),
        table.delete,
        lambda text: table.update(text, {"v": "'c'"}),
        lambda text: table.update("id = 1", {"v": text}),
        lambda text: table.merge(source, text).when_matched_delete().execute(),
        lambda text: table.merge(source, "t.id = s.id").when_matched_delete(text).execute(),
        lambda text: table.merge(source, "t.id = s.id").when_matched_update({"v": text}).execute(),
    )
    for text in PREDICATES:
        for way in ways:
            with refused("SYNTAX_ERROR"):
                way(text)
    assert table.history().count() == 2


def test_n2_conditions_from_python_reach_nothing(session: Session, opened: Session) -> None:
    session.sql("CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id))")
    session.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    table, source = session.table("t"), session.spark.sql("SELECT 1 AS id")
    for text in (f"v = {CALL}", "v = (SELECT max(value) FROM text.`/etc/hostname`)"):
        ways: Any = (
            lambda text=text: table.delete(text),
            lambda text=text: table.update(None, {"v": f"CASE WHEN {text} THEN 'x' END"}),
            lambda text=text: table.merge(source, f"t.id = s.id AND {text}").when_matched_delete().execute(),
        )
        for way in ways:
            with refused("PERMISSION_DENIED", "allow_code=True"):
                way()
    with refused("PERMISSION_DENIED"):
        table.to_df(where=f"v = {CALL}")
    with refused("NOT_SUPPORTED", "subquery"):
        table.to_df(where="id IN (SELECT 1)")
    with refused("COLUMN_NOT_FOUND"):
        table.to_df(where="nope = 1")
    assert table.to_df(where="id = 1 -- one").collect() == [Row(id=1, v="a")]
    assert opened.table("t").delete(f"v <> {CALL}").rows == 2


def test_n2_a_variable_in_a_path_is_text(tmp_path: Path, spark: SparkSession, tiered_fmt: str) -> None:
    """Paths of a warehouse, a schema, a table and a partition."""
    folder = tmp_path / "w${env:HOME} [a-z]*"
    with trinity.connect(folder) as session:
        session.sql(f"CREATE SCHEMA {tiered_fmt}.`s${{user.home}}`")
        name = f"{tiered_fmt}.`s${{user.home}}`.`t${{spark.app.name}}`"
        session.sql(f"CREATE TABLE {name} (id INT, v STRING) PARTITIONED BY (v)")
        session.sql(f"INSERT INTO {name} VALUES (1, '${{env:HOME}}'), (2, 'b')")
        session.sql(f"UPDATE {name} SET id = 3 WHERE v = '${{env:HOME}}'")
        session.sql(f"MERGE INTO {name} t USING (SELECT 2 id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 4")
        assert {tuple(r) for r in session.sql(f"SELECT * FROM {name}").collect()} == {(3, "${env:HOME}"), (4, "b")}
        session.table(name).compact(full=True)
        assert {r.id for r in session.table(name).log().collect()} == {3, 4}
        assert Path(session.table(name).location).is_relative_to(folder)
