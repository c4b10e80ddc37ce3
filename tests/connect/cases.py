"""Cases of a client of Spark Connect; tests/spark/test_spark_connect.py runs them in a process of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import trinity
from tests.support.refusals import refused
from trinity import Column, Session, Table

COLUMNS = [Column("id", "string"), Column("ts", "bigint"), Column("amount", "double")]


@pytest.fixture
def orders(session: Session, fmt: str) -> Table:
    """Make a keyed table with a log, a sidecar and a base."""
    made = session.create_table(f"{fmt}.default.lake", COLUMNS, primary_key=["id"], properties={"watermark-key": "ts"})
    made.upsert(pa.table({"id": ["a", "b", "c"], "ts": [1, 1, 1], "amount": [1.0, 2.0, 3.0]}))
    made.compact(full=True)
    made.upsert(pa.table({"id": ["b", "d"], "ts": [2, 2], "amount": [20.0, 4.0]}))
    return made


def amounts(rows: Any) -> dict[str, float]:
    return {row.id: row.amount for row in rows.collect()}


NOW = {"a": 1.0, "b": 20.0, "c": 3.0, "d": 4.0}


def test_it_is_a_session_of_spark_connect(spark: SparkSession) -> None:
    assert type(spark).__module__ == "pyspark.sql.connect.session"


def test_a_warehouse_has_the_formats_that_need_no_jvm(session: Session) -> None:
    assert sorted(session.catalogs) == ["iceberg", "parquet"]


def test_a_frame_outlives_the_views_of_its_statement_and_what_is_written_later(orders: Table) -> None:
    """The frame reads the versions that were newest when it was made."""
    session, name = orders.session, orders.name
    rows = session.sql(f"WITH q AS (SELECT * FROM {name}) SELECT id, amount FROM q WHERE '{{' <> '}}' ORDER BY id")
    orders.upsert(pa.table({"id": ["a"], "ts": [9], "amount": [9.0]}))
    assert amounts(rows) == NOW
    assert not [view for view in session.spark.catalog.listTables() if view.name.startswith("_trinity")]
    assert amounts(session.sql(f"SELECT * FROM {name}")) == {**NOW, "a": 9.0}


def test_frames_of_the_client_are_sources(orders: Table, spark: SparkSession) -> None:
    orders.upsert(spark.createDataFrame([("e", 5, 5.0)], "id string, ts bigint, amount double"))
    source = spark.createDataFrame([("a", 100.0), ("f", 6.0)], "id string, amount double").alias("u")
    done = (
        orders.merge(source, "t.id = u.id")
        .when_matched_update({"amount": "u.amount"})
        .when_not_matched_insert({"id": "u.id", "ts": "1", "amount": F.col("u.amount")})
        .execute()
    )
    assert (done.updated, done.inserted) == (1, 1)
    assert amounts(orders.to_df()) == {**NOW, "a": 100.0, "e": 5.0, "f": 6.0}


def test_sql_changes_resolves_and_travels(orders: Table) -> None:
    session, name = orders.session, orders.name
    session.sql(f"UPDATE {name} SET amount = amount + 1 WHERE id IN (SELECT lower('A'))")
    session.sql(f"DELETE FROM {name} WHERE id = 'c'")
    now = {"a": 2.0, "b": 20.0, "d": 4.0}
    version = orders.splits().version
    orders.compact("resolve")
    assert amounts(orders.to_df()) == now
    orders.compact(full=True)
    assert amounts(orders.to_df(where="amount > 3")) == {"b": 20.0, "d": 4.0}
    assert amounts(session.sql(f"SELECT * FROM {name} VERSION AS OF {version - 2}")) == NOW
    kinds = [row._change_type for row in orders.changes(version - 2, version).collect()]
    assert sorted(kinds) == ["delete", "update_postimage", "update_preimage"]


def test_changes_are_applied(orders: Table, spark: SparkSession) -> None:
    events = spark.createDataFrame([("a", 5, 7.0, 1), ("a", 4, 6.0, 2)], "id string, ts bigint, amount double, n int")
    name, session = f"{orders.name.catalog}.default.followed", orders.session
    trinity.apply_changes(events, name, keys=["id"], sequence_by=F.struct("ts", "n"), session=session)
    assert amounts(session.table(name).to_df()) == {"a": 7.0}


def test_constraints_and_defaults_are_judged_and_kept(session: Session, fmt: str) -> None:
    session.sql(
        f"CREATE TABLE {fmt}.default.checked (id INT, amount DOUBLE DEFAULT abs(-2.0) * 2, "
        "CONSTRAINT some CHECK (amount > CAST(0 AS DOUBLE)))"
    )
    session.sql(f"INSERT INTO {fmt}.default.checked (id) VALUES (1)")
    assert [row.amount for row in session.table(f"{fmt}.default.checked").to_df().collect()] == [4.0]
    with refused("CONSTRAINT_VIOLATION", "some"):
        session.sql(f"INSERT INTO {fmt}.default.checked VALUES (2, -1.0)")


@pytest.mark.parametrize(
    "text",
    ["rand()", "uuid()", "sum(1.0)", "explode(array(1.0))", "reflect('a', 'b')", "java_method('a', 'b')", "mine(1.0)"],
)  # fmt: skip
def test_n2_a_default_that_is_no_constant_is_refused(session: Session, spark: SparkSession, text: str) -> None:
    spark.udf.register("mine", lambda x: x, "double")
    with refused("NOT_SUPPORTED"):
        session.create_table("parquet.default.d", [Column("id", "int"), Column("x", "double", default=text)])


@pytest.mark.parametrize("text", ["cbrt(8.0) -- rand()", "cbrt(8.0) /* rand() */", "cbrt(8.0) + /* of old */ 2.0"])
def test_n2_a_comment_within_a_default_or_a_check_of_sparks_is_named(session: Session, text: str) -> None:
    with refused("NOT_SUPPORTED", "column 'x'", "comment"):
        session.create_table("parquet.default.d", [Column("id", "int"), Column("x", "double", default=text)])
    with refused("NOT_SUPPORTED", "comment"):
        session.sql(f"CREATE TABLE parquet.default.d (id INT, x DOUBLE, CHECK (x = ({text}\n)))")


def test_n2_a_function_of_the_sessions_that_hides_sparks_own_is_refused(session: Session, spark: SparkSession) -> None:
    spark.udf.register("cbrt", lambda x: x, "double")  # for good: Spark drops no function that hides one of its own
    with refused("NOT_SUPPORTED", "cbrt"):
        session.create_table("parquet.default.d", [Column("id", "int"), Column("x", "double", default="cbrt(1.5)")])


def test_n3_settings_that_change_what_sql_means_are_refused_by_name(orders: Table, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with refused("CONFIGURATION_INVALID", "spark.sql.ansi.enabled"):
            orders.to_df()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert amounts(orders.to_df()) == NOW


def test_what_needs_the_jvm_is_refused_by_name(orders: Table, spark: SparkSession, tmp_path: Path) -> None:
    with refused("CONFIGURATION_INVALID", "Catalog 'd'"):
        trinity.connect(catalogs={"d": {"connector": "delta", "warehouse": str(tmp_path / "d")}}, spark=spark)
    stream = spark.readStream.format("rate").load()
    with refused("CONFIGURATION_INVALID", "stream"):
        orders.stream_writer(stream, checkpoint=tmp_path / "checkpoint")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT reflect('java.lang.System', 'exit', 1)", "PERMISSION_DENIED"),
        ("SELECT * FROM text.`/etc/passwd`", "PERMISSION_DENIED"),
        ("ADD JAR '/x.jar'", "PERMISSION_DENIED"),
        ("SELECT nothing FROM parquet.default.lake", "COLUMN_NOT_FOUND"),
        ("SELECT * FROM lak", "TABLE_NOT_FOUND"),
        ("SELEC 1", "SYNTAX_ERROR"),
    ],
)
@pytest.mark.parametrize("fmt", ["parquet"])
def test_errors_are_told_when_the_statement_is_made(orders: Table, text: str, code: str) -> None:
    with refused(code):
        orders.session.sql(text)


@pytest.mark.parametrize("fmt", ["parquet"])
def test_a_missing_file_is_named(orders: Table) -> None:
    file = next(f for f in orders.splits().files if f.rows == 3)
    Path(file.path.removeprefix("file://")).unlink()
    with refused("BAD_DATA", Path(file.path).name):
        orders.to_df().collect()


@pytest.mark.parametrize("fmt", ["parquet"])
def test_explain_says_how_a_statement_runs(orders: Table) -> None:
    text = orders.session.sql(f"EXPLAIN UPDATE {orders.name} SET amount = 0").collect()[0][0]
    assert "row change paradigm" in text
    assert "Physical Plan" in text
    assert "Physical Plan" in orders.session.sql(f"EXPLAIN SELECT * FROM {orders.name}").collect()[0][0]


@pytest.mark.parametrize("fmt", ["parquet"])
def test_a_temporary_view_comes_before_a_table(orders: Table, spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("lake")
    try:
        assert orders.session.sql("SELECT * FROM lake").count() == 3
        with refused("NOT_SUPPORTED"):
            orders.session.sql("DELETE FROM lake")
    finally:
        spark.catalog.dropTempView("lake")


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the client's files from the server: it puts none."""
    from trinity.storage import ObjectStore

    monkeypatch.setattr(ObjectStore, "put", lambda *_, **__: None)


def test_a_name_that_a_service_knows_is_no_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"connector": "iceberg", "type": "in-memory", "warehouse": "production"}
    with trinity.connect(catalogs={"lake": settings}, spark=spark):
        assert not list(tmp_path.iterdir())


def test_a_server_that_does_not_see_the_warehouse_is_refused(spark: SparkSession, tmp_path: Path, unseen: None) -> None:
    with refused("CONFIGURATION_INVALID", "does not see"):
        trinity.connect(tmp_path / "here", spark=spark)


def test_a_warehouse_that_is_not_there_is_not_made_by_a_look(spark: SparkSession, tmp_path: Path) -> None:
    with trinity.connect(tmp_path / "absent/w", spark=spark) as session:
        assert session.sql("SHOW TABLES").collect() == []
        assert not list(tmp_path.iterdir())
        session.sql("CREATE TABLE t (k INT)")
        assert session.sql("SELECT * FROM t").count() == 0
