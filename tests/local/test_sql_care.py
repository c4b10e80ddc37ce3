"""OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY and DETAIL, CREATE TABLE LIKE and TIMESTAMP AS OF, without Spark."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from tests.support.refusals import refused
from trinity import Session, Table

DEFINED = """CREATE TABLE {name} (id INT COMMENT 'its number', ts INT, state STRING DEFAULT 'new', PRIMARY KEY (id),
    CONSTRAINT positive CHECK (id > 0)) TBLPROPERTIES ('watermark-key' = 'ts')"""


@pytest.fixture
def orders(local: Session, local_fmt: str) -> Table:
    local.use(local_fmt, "default")
    local.sql(DEFINED.format(name="orders"))
    local.sql("INSERT INTO orders VALUES (1, 5, 'a'), (2, 5, 'b')")
    local.sql("INSERT INTO orders VALUES (1, 6, 'c')")
    return local.table("orders")


def only(session: Session, text: str) -> dict[str, Any]:
    [row] = session.sql(text).to_arrow().to_pylist()
    return dict(row)


def test_optimize_compacts(local: Session, orders: Table) -> None:
    before = orders.version
    done = only(local, "OPTIMIZE orders FULL")
    assert (done["version"], done["rows"], done["files"] >= 1, done["bytes"] > 0) == (before + 1, 2, True, True)
    assert {file.tier.value for file in orders.splits().files} == {"base"}
    assert only(local, "OPTIMIZE orders")["version"] == before + 1
    with refused("NOT_SUPPORTED", "ZORDER BY", "OPTIMIZE t FULL"):
        local.sql("OPTIMIZE orders ZORDER BY (ts)")


def test_vacuum_forgets(local: Session, orders: Table) -> None:
    local.sql("OPTIMIZE orders FULL")
    newest = orders.version
    assert only(local, "VACUUM orders")["files"] == 0
    done = only(local, "VACUUM orders RETAIN 0 HOURS")
    assert (done["files"] >= 2, done["oldest_version"]) == (True, newest)
    for text, what in (("RETAIN x HOURS", "RETAIN 168 HOURS"), ("RETAIN 5", "HOURS"), ("RETAIN 5 DAYS", "HOURS")):
        with refused("SYNTAX_ERROR", what):
            local.sql(f"VACUUM orders {text}")


def test_restore(local: Session, orders: Table) -> None:
    before = orders.version
    local.sql("DELETE FROM orders")
    assert orders.count() == 0
    assert only(local, f"RESTORE TABLE orders TO VERSION AS OF {before}")["version"] == orders.version > before
    assert orders.count() == 2
    local.sql("DELETE FROM orders WHERE id = 1")
    [*_, at] = [row for row in local.sql("DESCRIBE HISTORY orders").collect() if row.version == before]
    when = at.timestamp.astimezone(dt.UTC).isoformat(" ")
    local.sql(f"RESTORE orders TO TIMESTAMP AS OF '{when}'")
    assert orders.count() == 2
    with refused("SYNTAX_ERROR", "VERSION"):
        local.sql("RESTORE orders TO VERSION 1")
    with refused("INVALID_ARGUMENTS", "number", "'x'"):
        local.sql("RESTORE orders TO VERSION AS OF x")


def test_a_version_by_its_time(local: Session, orders: Table) -> None:
    made, *_ = orders.history().to_arrow().to_pylist()[::-1]
    first = orders.history().to_arrow()["timestamp"][-2].as_py()
    read = "SELECT id, state FROM orders TIMESTAMP AS OF {} ORDER BY id"
    assert local.sql(read.format(f"'{first.isoformat(' ')}'")).fetchall() == [(1, "a"), (2, "b")]
    assert local.sql(read.format("TIMESTAMP '2100-01-01 00:00:00'")).fetchall() == [(1, "c"), (2, "b")]
    with refused("INVALID_ARGUMENTS", "1999", "oldest"):
        local.sql(read.format("'1999-01-01'"))
    with refused("INVALID_ARGUMENTS", "NULL"):
        local.sql(read.format("NULL"))
    assert made["version"] <= 1


def test_describe_history_and_detail(local: Session, local_fmt: str, orders: Table) -> None:
    shown = local.sql("DESCRIBE HISTORY orders")
    assert shown.columns == ["version", "timestamp", "operation", "details"]
    assert [row.operation for row in shown] == ["append", "append", "create"]
    assert [row.version for row in local.sql("DESC HISTORY orders LIMIT 1")] == [orders.version]
    found = only(local, f"DESCRIBE DETAIL {local_fmt}.default.orders")
    assert (found["name"], found["format"], found["primary_key"]) == (str(orders.name), local_fmt, ["id"])
    assert (found["version"], found["num_files"], found["num_row_versions"]) == (orders.version, 2, 3)
    assert dict(found["properties"]) == {"watermark-key": "ts"}


def test_a_missing_table_is_named(local: Session, orders: Table) -> None:
    for text in ("OPTIMIZE ordres", "VACUUM ordres", "RESTORE ordres TO VERSION AS OF 1", "DESCRIBE HISTORY ordres"):
        with refused("TABLE_NOT_FOUND", "ordres", "orders"):
            local.sql(text)
    with refused("TABLE_NOT_FOUND", "ordres"):
        local.sql("DESCRIBE DETAIL `default`.ordres")
    with refused("INVALID_ARGUMENTS", "txn"):
        local.sql("OPTIMIZE orders", txn=("a", 1))


def test_a_table_like_another_one(local: Session, local_fmt: str, orders: Table) -> None:
    local.sql("CREATE TABLE copy LIKE orders")
    local.sql("CREATE TABLE IF NOT EXISTS copy LIKE orders")
    made, origin = (local.sql(f"SHOW CREATE TABLE {name}").first()[0] for name in ("copy", "orders"))
    assert made == origin.replace("orders", "copy")
    assert local.table("copy").count() == 0
    with refused("TABLE_ALREADY_EXISTS", "copy"):
        local.sql("CREATE TABLE copy LIKE orders")
    with refused("NOT_SUPPORTED", "LIKE"):
        local.sql("CREATE TABLE other LIKE orders TBLPROPERTIES ('bucket' = '4')")
    with refused("TABLE_NOT_FOUND", "ordres"):
        local.sql("CREATE TABLE other LIKE ordres")
    assert local_fmt in made


def test_a_table_is_copied_to_any_format(local: Session, orders: Table) -> None:
    version = orders.version - 1
    local.sql("DELETE FROM orders WHERE id = 2")
    for catalog in ("parquet", "delta", "iceberg"):
        copy = orders.copy_to(f"{catalog}.default.copied")
        assert copy.to_arrow().to_pylist() == [{"id": 1, "ts": 6, "state": "c"}]
        assert [(c.name, c.type, c.nullable, c.default, c.comment) for c in copy.definition.visible] == [
            (c.name, c.type, c.nullable, c.default, c.comment) for c in orders.definition.visible
        ]
        assert copy.definition.checks == orders.definition.checks
        assert copy.properties == orders.properties
        local.drop_table(str(copy.name))
    assert orders.copy_to("parquet.default.older", version=version).count() == 2
    with refused("TABLE_ALREADY_EXISTS", "older"):
        orders.copy_to("parquet.default.older")


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("COMMENT ON TABLE t IS 'x'", "ALTER COLUMN c COMMENT"),
        ("ANALYZE TABLE default.t COMPUTE STATISTICS", "statistics"),
        ("REFRESH TABLE t", "newest version"),
    ],
)
def test_care_of_sparks_own_tables(local: Session, text: str, instead: str) -> None:
    local.sql("CREATE TABLE t (k INT)")
    with refused("NOT_SUPPORTED", text.split()[0], instead):
        local.sql(text)


def partitions(session: Session, table: str) -> list[str]:
    return [row.partition for row in session.sql(f"SHOW PARTITIONS {table}").collect()]


def test_partitions_are_shown(local: Session, local_fmt: str) -> None:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE p (id INT, day DATE, word STRING, yes BOOLEAN) PARTITIONED BY (day, word, yes)")
    assert partitions(local, "p") == []
    local.sql("INSERT INTO p VALUES (1, DATE'2024-01-02', 'a/b=ü', TRUE), (2, NULL, NULL, NULL), (3, NULL, NULL, NULL)")
    local.sql("ALTER TABLE p RENAME COLUMN yes TO no")
    null = "__HIVE_DEFAULT_PARTITION__"
    assert partitions(local, f"{local_fmt}.default.p") == [
        "day=2024-01-02/word=a%2Fb%3Dü/no=true",
        f"day={null}/word={null}/no={null}",
    ]
    local.sql("DELETE FROM p WHERE id > 1")
    assert partitions(local, "p") == ["day=2024-01-02/word=a%2Fb%3Dü/no=true"]
    with refused("SYNTAX_ERROR", "PARTITION"):
        local.sql("SHOW PARTITIONS p PARTITION (day = DATE'2024-01-02')")
    with refused("TABLE_NOT_FOUND", "nobody"):
        local.sql("SHOW PARTITIONS nobody")


def test_a_table_without_partitions_has_none_to_show(local: Session, orders: Table) -> None:
    with refused("INVALID_ARGUMENTS", "orders", "not partitioned"):
        local.sql("SHOW PARTITIONS orders")


def test_partitions_by_transforms_are_shown(local: Session) -> None:
    local.sql("CREATE TABLE iceberg.default.q (id INT, at TIMESTAMP) PARTITIONED BY (days(at), bucket(8, id))")
    local.sql("INSERT INTO iceberg.default.q VALUES (1, TIMESTAMP'2024-01-02 03:04:05')")
    [shown] = partitions(local, "iceberg.default.q")
    assert shown == "at_day=2024-01-02/id_bucket=4"
