"""Bad input is refused by name, with the code of docs/errors.md, and the table reads as before (L8)."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.refusals import refused
from trinity import Column, Session, Table, TrinityError

pytestmark = pytest.mark.inner

ROW = pa.table({"order_id": ["1"], "ts": [1], "amount": [1.0]})


@pytest.mark.tiered
@pytest.mark.parametrize(
    ("data", "code", "named"),
    [
        ({"order_id": ["1"], "ts": [1], "amonut": [1.0]}, "COLUMN_NOT_FOUND", ["amonut", "amount", "orders"]),
        ({"ts": [1], "amount": [1.0]}, "CONSTRAINT_VIOLATION", ["order_id", "primary key"]),
        ({"order_id": [None, "2"], "ts": [1, 2]}, "CONSTRAINT_VIOLATION", ["order_id", "NULL"]),
        ({"order_id": ["1"], "ts": ["late"]}, "TYPE_MISMATCH", ["ts", "bigint", "string"]),
        ({"order_id": [1]}, "TYPE_MISMATCH", ["order_id"]),
        ({"order_id": ["1"], "ts": [1.5]}, "NUMERIC_VALUE_OUT_OF_RANGE", ["ts", "1.5"]),
    ],
)
@pytest.mark.parametrize("spark_data", [False, pytest.param(True, marks=pytest.mark.tiered)])
def test_bad_rows(
    orders: Table, session: Session, data: dict[str, list[Any]], code: str, named: list[str], spark_data: bool
) -> None:
    orders.upsert(ROW)
    version = orders.splits().version
    given = pa.table(data)
    with refused(code, *named):
        orders.upsert(session.spark.createDataFrame(given) if spark_data else given)
    assert orders.splits().version == version
    assert [tuple(r) for r in orders.to_df().collect()] == [("1", 1, None, 1.0)]


@pytest.mark.tiered
def test_duplicate_columns(orders: Table) -> None:
    with refused("DUPLICATE_COLUMN_NAME", "TS"):
        orders.upsert(pa.Table.from_arrays([pa.array(["1"]), pa.array([1]), pa.array([2])], ["order_id", "ts", "TS"]))


@pytest.mark.tiered
def test_data_of_an_unknown_kind(orders: Table) -> None:
    with refused("INVALID_ARGUMENTS", "int", "__arrow_c_stream__", "list of dicts"):
        orders.upsert(7)
    with refused("INVALID_ARGUMENTS", "txn"):
        orders.upsert(ROW, txn="app")  # type: ignore[arg-type]
    with refused("INVALID_ARGUMENTS", "('', 1)"):
        orders.upsert(ROW, txn=("", 1))
    with refused("INVALID_ARGUMENTS", "1.5"):
        orders.upsert(ROW, txn=("app", 1.5))  # type: ignore[arg-type]


OPTIONS: list[tuple[dict[str, str], str, list[str]]] = [
    ({"watermark-keys": "ts"}, "INVALID_TABLE_PROPERTY", ["watermark-keys", "watermark-key"]),
    ({"watermark-key": "ts", "Watermark_Key": "ts"}, "INVALID_TABLE_PROPERTY", ["watermark-key", "more than once"]),
    ({"watermark-key": "tss"}, "COLUMN_NOT_FOUND", ["tss", "watermark-key", "ts"]),
    ({"watermark-key": "ts,ts"}, "DUPLICATE_COLUMN_NAME", ["ts"]),
    ({"watermark-key": "tags"}, "INVALID_TABLE_PROPERTY", ["tags", "watermark-key"]),
    ({"watermark-key": "ts", "sequence.field": "ts"}, "INVALID_TABLE_PROPERTY", ["sequence.field"]),
    ({"tombstone-key": "tags"}, "INVALID_TABLE_PROPERTY", ["tags", "tombstone-key"]),
    ({"tombstone-key": "ts,gone"}, "INVALID_TABLE_PROPERTY", ["tombstone-key"]),
    ({"tombstone-string-key-value": "x"}, "INVALID_TABLE_PROPERTY", ["tombstone-string-key-value"]),
    ({"tombstone-key": "gone", "tombstone-string-key-value": "x"}, "INVALID_TABLE_PROPERTY", ["gone", "boolean"]),
    ({"merge-engine": "newest"}, "INVALID_TABLE_PROPERTY", ["merge-engine", "newest", "deduplicate"]),
    (
        {"merge-engine": "aggregation", "fields.ts,gone.aggregate-function": "sum"},
        "INVALID_TABLE_PROPERTY",
        ["'fields.ts,gone.aggregate-function'", "several columns"],
    ),
    (
        {"merge-engine": "first-row", "tombstone.keep-values": "true"},
        "INVALID_TABLE_PROPERTY",
        ["tombstone.keep-values"],
    ),
    ({"bucket": "0"}, "INVALID_TABLE_PROPERTY", ["bucket"]),
    ({"rowkind.field": "ts"}, "INVALID_TABLE_PROPERTY", ["rowkind.field", "ts"]),
    ({"tombstone.retention": "soon"}, "INVALID_ARGUMENTS", ["tombstone.retention", "soon"]),
    ({"row-change-paradigm": "both"}, "INVALID_TABLE_PROPERTY", ["row-change-paradigm"]),
]


@pytest.mark.tiered
@pytest.mark.parametrize(("options", "code", "named"), OPTIONS)
def test_bad_options(session: Session, fmt: str, options: dict[str, str], code: str, named: list[str]) -> None:
    columns = [Column("k", "int"), Column("ts", "int"), Column("gone", "boolean"), Column("tags", "array<string>")]
    with refused(code, *named):
        session.create_table(f"{fmt}.default.t", columns, primary_key=["k"], properties=options)
    assert session.catalogs[fmt].metadata.list_tables("default") == []


@pytest.mark.tiered
@pytest.mark.parametrize(
    ("columns", "key", "code", "named"),
    [
        ([("k", "int"), ("K", "int")], ["k"], "DUPLICATE_COLUMN_NAME", ["K"]),
        ([("k", "integre")], ["k"], "TYPE_MISMATCH", ["integre"]),
        ([("k", "decimal(39,0)")], ["k"], "TYPE_MISMATCH", ["decimal(39,0)"]),
        ([("k", "array<int>")], ["k"], "INVALID_TABLE_PROPERTY", ["k", "array<int>"]),
        ([("k", "int")], ["x"], "COLUMN_NOT_FOUND", ["x"]),
        ([("k", "int")], ["k", "k"], "DUPLICATE_COLUMN_NAME", ["k"]),
        ([("_trinity_x", "int")], [], "INVALID_ARGUMENTS", ["_trinity_x"]),
        ([], [], "INVALID_ARGUMENTS", ["column"]),
    ],
)
def test_bad_tables(
    session: Session, fmt: str, columns: list[tuple[str, str]], key: list[str], code: str, named: list[str]
) -> None:
    with refused(code, *named):
        session.create_table(f"{fmt}.default.t", [Column(*c) for c in columns], primary_key=key)


@pytest.mark.parametrize(
    ("kind", "default", "code", "named"),
    [
        ("int", "'x'", "TYPE_MISMATCH", ["DEFAULT 'x'", "column 'v'", "string"]),
        ("date", "'2020-01-01'", "TYPE_MISMATCH", ["date", "string"]),
        ("boolean", "1", "TYPE_MISMATCH", ["boolean"]),
        ("tinyint", "-129", "NUMERIC_VALUE_OUT_OF_RANGE", ["-129", "column 'v'", "tinyint"]),
        ("decimal(4,2)", "99.5 + 1", "NUMERIC_VALUE_OUT_OF_RANGE", ["100.5", "decimal(4,2)"]),
        ("int", "NOSUCH(1)", "NOT_SUPPORTED", ["NOSUCH"]),
    ],
)
def test_bad_defaults(session: Session, kind: str, default: str, code: str, named: list[str]) -> None:
    with refused(code, *named):
        session.create_table("parquet.default.t", [Column("k", "int"), Column("v", kind, default=default)])
    session.create_table("parquet.default.t", [Column("k", "int"), Column("v", kind)])
    with refused(code, *named):
        session.sql(f"ALTER TABLE parquet.default.t ALTER COLUMN v SET DEFAULT {default}")
    session.sql("ALTER TABLE parquet.default.t ALTER COLUMN v SET DEFAULT NULL")


@pytest.mark.tiered
def test_names(session: Session, fmt: str, orders: Table) -> None:
    with refused("TABLE_NOT_FOUND", "order", "orders"):
        session.table(f"{fmt}.default.order")
    with refused("SCHEMA_NOT_FOUND", "sale", "default"):
        session.table(f"{fmt}.sale.orders")
    with refused("CATALOG_NOT_FOUND", "lake", "iceberg"):
        session.table("lake.default.orders")
    with refused("TABLE_ALREADY_EXISTS", "orders"):
        session.create_table(f"{fmt}.default.orders", [Column("k", "int")])
    with refused("INVALID_ARGUMENTS", "a.b.c.d"):
        session.table("a.b.c.d")


@pytest.mark.tiered
def test_plain_and_keyed_are_not_mixed_up(session: Session, fmt: str, orders: Table) -> None:
    plain = session.create_table(f"{fmt}.default.plain", [Column("order_id", "string")])
    with refused("INVALID_ARGUMENTS", "append"):
        plain.upsert(pa.table({"order_id": ["1"]}))
    with refused("INVALID_ARGUMENTS", "upsert"):
        orders.append(ROW)
    with refused("INVALID_TABLE_PROPERTY", "PRIMARY KEY"):
        session.create_table(f"{fmt}.default.x", [Column("a", "int")], properties={"watermark-key": "a"})


@pytest.mark.tiered
def test_deletes(orders: Table) -> None:
    orders.upsert(ROW)
    with refused("COLUMN_NOT_FOUND", "amonut") as caught:
        orders.delete("amonut > 1")
    assert "_trinity_" not in caught.value.message
    with refused("INVALID_ARGUMENTS", "update()", "condition", "text", "dict"):
        orders.update({"amount": "1"}, "amount > 1")  # type: ignore[arg-type]
    with refused("INVALID_ARGUMENTS", "set={column: value}"):
        orders.update("amount > 1")
    with refused("SYNTAX_ERROR"):
        orders.delete("amount >")
    with refused("COLUMN_NOT_FOUND", "order_id"):
        orders.delete(pa.table({"id": ["1"]}))
    with refused("INVALID_ARGUMENTS"):
        orders.delete([])
    assert orders.to_df().count() == 1


@pytest.mark.tiered
def test_properties_that_would_change_old_rows(orders: Table) -> None:
    for option in ({"watermark-key": "amount"}, {"tombstone-key": "amount"}):
        with refused("INVALID_TABLE_PROPERTY", next(iter(option)), "orders"):
            orders.set_properties(option)
    with refused("INVALID_TABLE_PROPERTY", "buckets"):
        orders.set_properties({"buckets": "4"})
    orders.set_properties({"bucket": "4", "comment": "yes"})
    assert orders.properties["bucket"] == "4"


@pytest.mark.tiered
def test_columns_that_cannot_be_added(orders: Table) -> None:
    orders.upsert(ROW)
    with refused("COLUMN_ALREADY_EXISTS", "AMOUNT"):
        orders.add_column(Column("AMOUNT", "int"))
    with refused("NOT_SUPPORTED", "x"):
        orders.add_column(Column("x", "int", nullable=False))
    with refused("COLUMN_NOT_FOUND", "'nope'", "It has: order_id, ts, deleted, amount."):
        orders.add_column(Column("x", "int"), after="nope")
    orders.add_column(Column("x", "int"))
    assert orders.to_df().columns == ["order_id", "ts", "deleted", "amount", "x"]
    assert [r.x for r in orders.to_df().collect()] == [None]
    orders.upsert(pa.table({"order_id": ["2"], "ts": [1], "x": [5]}))
    assert {r.order_id: r.x for r in orders.to_df().collect()} == {"1": None, "2": 5}


def test_a_missing_data_file_is_named(orders: Table) -> None:
    orders.upsert(ROW)
    path = Path(orders.splits().files[0].path)
    path.unlink()
    with refused("BAD_DATA", path.name):
        orders.to_df().collect()


def test_a_table_dropped_meanwhile(session: Session, fmt: str, orders: Table) -> None:
    orders.upsert(ROW)
    metadata = orders.connector.metadata
    insert = metadata.begin_insert(orders.handle)
    session.drop_table(f"{fmt}.default.orders")
    with refused("TABLE_NOT_FOUND", "orders"):
        metadata.finish_insert(insert, [], ("app", 1))
    with refused("TABLE_NOT_FOUND", "orders"):
        orders.to_df()
    with refused("TABLE_NOT_FOUND", "orders"):
        orders.upsert(ROW)
    session.create_table(f"{fmt}.default.orders", [Column("order_id", "string")], primary_key=["order_id"])
    assert session.table(f"{fmt}.default.orders").to_df().columns == ["order_id"]


def newest_metadata(fmt: str, table: Table) -> Path:
    """Return the file that holds the newest commit of a table."""
    patterns = {"parquet": "_trinity/log/*.json", "delta": "_delta_log/*.json", "iceberg": "metadata/*.metadata.json"}
    return max(Path(table.location).glob(patterns[fmt]), key=lambda p: (p.stat().st_mtime_ns, p.name))


def test_a_corrupt_manifest_is_named(warehouse: Path, session: Session, fmt: str, orders: Table) -> None:
    orders.upsert(ROW)
    newest = newest_metadata(fmt, orders)
    newest.write_text('{"version": ')
    for crc in newest.parent.glob(f".{newest.name}.crc"):
        crc.unlink()
    with trinity.connect(warehouse) as again, refused("BAD_DATA", "orders"):
        again.table(f"{fmt}.default.orders").to_df().collect()


@pytest.mark.parametrize(
    ("catalogs", "named"),
    [
        ({"c": {"connector": "parquett", "warehouse": "w"}}, ["parquett", "parquet"]),
        ({"c": {"warehouse": "w"}}, ["'c'", "connector"]),
        ({"c": {"connector": "parquet"}}, ["warehouse"]),
        ({"c": {"connector": "parquet", "warehouse": "w", "colour": "red"}}, ["colour"]),
        ({"c": {"connector": "delta", "warehouse": "w", "colour": "red"}}, ["colour"]),
        ({"iceberg": {"connector": "iceberg", "warehouse": "no #1"}}, ["'iceberg'", "no #1", "'#'"]),
        ({}, ["warehouse"]),
    ],
)
def test_bad_configuration(
    catalogs: dict[str, dict[str, str]], named: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with refused("CONFIGURATION_INVALID", *named):
        trinity.connect(catalogs=catalogs)


def _file_in_the_way(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "warehouse"


def _read_only(folder: Path) -> Path:
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    return folder / "warehouse"


@pytest.mark.parametrize(
    ("warehouse", "code"),
    [
        ("oss://bucket/lake", "NOT_SUPPORTED"),
        ("hdfs:///lake", "NOT_SUPPORTED"),
        (Path("cosn://bucket"), "NOT_SUPPORTED"),
        ("jdbc:postgresql://host/db", "NOT_SUPPORTED"),
        (" ", "CONFIGURATION_INVALID"),
    ],
)
def test_a_warehouse_that_is_no_folder(
    warehouse: str | Path, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with refused(code, "warehouse" if code == "CONFIGURATION_INVALID" else "only local paths"):
        trinity.connect(warehouse)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spoil", [_file_in_the_way, _read_only])
def test_a_warehouse_that_cannot_be_written(tmp_path: Path, fmt: str, spoil: Callable[[Path], Path]) -> None:
    if spoil is _read_only and os.geteuid() == 0:
        spoil = _file_in_the_way  # root can write everywhere
    where = spoil(tmp_path)
    with refused("PERMISSION_DENIED" if spoil is _read_only else "FILESYSTEM_ERROR", str(where)):
        trinity.connect(catalogs={"c": {"connector": fmt, "warehouse": str(where)}})


def test_java_and_jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java, and an old one: CONFIGURATION_INVALID names the remedy."""
    from trinity.spark import launch as spark

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with refused("CONFIGURATION_INVALID", "JAVA_HOME", "openjdk-17"):
        spark._check_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    with refused("CONFIGURATION_INVALID", "Java 11", "Java 17"):
        spark._check_java()


OFFLINE = """
import sys, trinity
try:
    trinity.connect(sys.argv[1]).spark
except trinity.TrinityError as error:
    print(error.code, error.message)
"""


@pytest.mark.full
def test_no_network_for_the_jars(tmp_path: Path) -> None:
    """No JARs, and no way to Maven Central: CONFIGURATION_INVALID names the coordinates, and no more is printed."""
    environment = {**os.environ, "TRINITY_JARS": str(tmp_path / "jars"), "https_proxy": "http://127.0.0.1:1"}
    words = [sys.executable, "-c", OFFLINE, str(tmp_path / "warehouse")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("CONFIGURATION_INVALID"), done.stdout
    assert "io.delta:delta-spark" in done.stdout
    assert "Check the network" in done.stdout


def test_a_spark_that_lacks_something_is_told_precisely(session: Session) -> None:
    from trinity.spark.launch import check_spark
    from trinity.spi import SparkRequirements

    need = SparkRequirements(
        settings={"spark.sql.extensions": "org.acme.Extension"}, probes={"org.acme.Missing": "org.acme:jar:1"}
    )
    with refused("CONFIGURATION_INVALID", "org.acme:jar:1", "org.acme.Missing", "org.acme.Extension"):
        check_spark(session.spark, [need])


def test_errors_pickle() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(TrinityError("BAD_DATA", "what")))
    assert (error.code, error.message, str(error)) == ("BAD_DATA", "what", "[BAD_DATA] what")


STATEMENTS = [
    ("ALTER TABLE t ADD COLUMN", "NOT_SUPPORTED"),
    ("ALTER TABLE t DROP COLUMN", "NOT_SUPPORTED"),
    ("ALTER TABLE t ADD CONSTRAINT c CHECK (1 = coalesce(v, 1))", "TYPE_MISMATCH"),
    ("INSERT INTO t SELECT 3, map()", "TYPE_MISMATCH"),
    ("INSERT INTO t SELECT 3, array()", "TYPE_MISMATCH"),
    ("CREATE TABLE made AS SELECT array() AS a", "TYPE_MISMATCH"),
    ("CREATE TABLE made AS SELECT map() AS a", "TYPE_MISMATCH"),
    ("CREATE TABLE made AS SELECT array(named_struct('a', parse_json('1'))) AS a", "TYPE_MISMATCH"),
    ("CREATE TABLE made AS SELECT make_interval(1) AS a", "TYPE_MISMATCH"),
    ("SELECT v COLLATE nope FROM t", "INVALID_ARGUMENTS"),
    ("DELETE FROM t WHERE v COLLATE nope = 'x'", "INVALID_ARGUMENTS"),
    ("INSERT INTO t VALUES (3, 'x' COLLATE nope)", "INVALID_ARGUMENTS"),
]


def test_what_spark_and_arrow_refuse_is_a_trinity_error(session: Session) -> None:
    """Each of these errors came unchanged from Spark, py4j, Arrow or the parser once."""
    session.sql("CREATE TABLE t (k INT, v STRING, PRIMARY KEY (k))")
    table = session.table("t")
    table.upsert(pa.table({"k": [1, 2], "v": ["x", "y"]}))
    before = table.splits().version, table.definition
    for text, code in STATEMENTS:
        with pytest.raises(TrinityError) as caught:
            session.sql(text)
        assert caught.value.code == code, f"{text}: {caught.value}"
    for text, code in ((" ", "SYNTAX_ERROR"), ("v COLLATE nope = 'x'", "INVALID_ARGUMENTS")):
        for call in (lambda text=text: table.to_df(where=text), lambda text=text: table.delete(text)):
            with pytest.raises(TrinityError) as caught:
                call()
            assert caught.value.code == code, f"{text}: {caught.value}"
    assert (table.splits().version, table.definition) == before
    assert session.list_tables("parquet", "default") == ["t"]
