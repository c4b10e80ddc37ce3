"""What a PostgreSQL slot tells of rows and changes, before any of it becomes row versions: none of this needs Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import trinity
from tests.support.postgres import RunningServer
from tests.support.refusals import refused
from trinity import Table, cdc
from trinity.cdc.postgres_server import Server

pytestmark = pytest.mark.inner


@dataclass
class Log:
    """A schema ``log`` in PostgreSQL, all of whose tables are published."""

    server: RunningServer
    slot: cdc.PostgresSlot

    def run(self, *statements: str) -> None:
        with psycopg.connect(**self.server.options, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def changes(self) -> list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
        """Return the operation and both images of each change."""
        events = map(json.loads, self.slot.changes().events["value"].to_pylist())
        return [(event["op"], event["before"], event["after"]) for event in events]


@pytest.fixture
def log(postgres_server: RunningServer) -> Iterator[Log]:
    slot = cdc.PostgresSlot(make_conninfo(**postgres_server.options), "log", ["log"])
    found = Log(postgres_server, slot)
    found.run("CREATE SCHEMA log", "CREATE PUBLICATION log FOR TABLES IN SCHEMA log")
    yield found
    slot.drop()
    slot.close()
    found.run("DROP PUBLICATION log", "DROP SCHEMA log CASCADE")


def test_first_rows_of_a_table_are_not_those_of_tables_that_inherit_from_it(log: Log) -> None:
    """Changes of these come under their own names, so nobody would ever change the copies."""
    log.run(
        "CREATE TABLE log.city (id INT PRIMARY KEY)",
        "CREATE TABLE log.capital (PRIMARY KEY (id)) INHERITS (log.city)",
        "CREATE TABLE log.split (id INT PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE log.split_1 PARTITION OF log.split FOR VALUES FROM (0) TO (10)",
        "INSERT INTO log.city VALUES (1)",
        "INSERT INTO log.capital VALUES (2)",
        "INSERT INTO log.split VALUES (3)",
    )
    for root, parts in ((False, "log.split_1"), (True, "log.split")):
        log.run(f"ALTER PUBLICATION log SET (publish_via_partition_root = {root})")
        server = Server(make_conninfo(**log.server.options), "log", ["log"])
        with server.created() as snapshot:
            rows = {r.full_name: [*server.rows(snapshot, r, where)] for r, where in server.published()}
        assert rows == {"log.city": [("1",)], "log.capital": [("2",)], parts: [("3",)]}
        server.drop()
        server.close()


def test_an_unchanged_long_key_is_that_of_the_row_before(log: Log) -> None:
    """PostgreSQL logs it only there, where the key did not change, too."""
    key = random.Random(1).randbytes(1200).hex()
    log.run("CREATE TABLE log.page (site INT, address TEXT, hits INT, body TEXT, PRIMARY KEY (site, address))")
    log.run("ALTER TABLE log.page ALTER address SET STORAGE EXTERNAL, ALTER body SET STORAGE EXTERNAL")
    log.slot.create()
    log.run(
        f"INSERT INTO log.page VALUES (1, '{key}', 0, repeat('x', 5000))",
        "UPDATE log.page SET hits = 1",
        "UPDATE log.page SET site = 2",
    )
    row = {"site": 1, "address": key, "hits": 1, "body": "__debezium_unavailable_value"}
    before = {"site": 1, "address": key}
    assert log.changes()[1:] == [("u", before, row), ("u", before, row | {"site": 2})]


def test_an_unchanged_long_array_has_a_placeholder_of_its_type(log: Log) -> None:
    log.run("CREATE TABLE log.series (id INT PRIMARY KEY, n INT, numbers INT[], words TEXT[])")
    log.run("ALTER TABLE log.series ALTER numbers SET STORAGE EXTERNAL, ALTER words SET STORAGE EXTERNAL")
    log.slot.create()
    log.run("INSERT INTO log.series SELECT 1, 0, array_agg(i), array_agg(i::text) FROM generate_series(1, 2000) i")
    log.run("UPDATE log.series SET n = 1")
    unknown = "__debezium_unavailable_value"
    assert log.changes()[1] == ("u", None, {"id": 1, "n": 1, "numbers": [*unknown.encode()], "words": [unknown]})


def test_an_array_without_commas_is_text(log: Log) -> None:
    log.run("CREATE TABLE log.area (id INT PRIMARY KEY, boxes BOX[], words TEXT[])")
    log.slot.create()
    log.run("INSERT INTO log.area VALUES (1, '{(1,1),(0,0);(3,3),(2,2)}', '{a,\"b;c\"}')")
    after = {"id": 1, "boxes": "{(1,1),(0,0);(3,3),(2,2)}", "words": ["a", "b;c"]}
    assert log.changes() == [("c", None, after)]


@pytest.fixture
def table(log: Log, warehouse: Path) -> Iterator[Table]:
    """Yield a table with a row, in a session that has no Spark."""
    log.run("CREATE TABLE log.t (id INT PRIMARY KEY)")
    columns = [trinity.Column("id", "int"), trinity.Column("lsn", "bigint"), trinity.Column("kind", "string")]
    with trinity.connect(warehouse, engine="local") as session:
        options = {"watermark-key": "lsn", "rowkind.field": "kind"}
        made = session.create_table("t", columns, primary_key=["id"], properties=options)
        made.upsert([{"id": 1, "lsn": 1, "kind": "+I"}])
        yield made


NO_SLOT = "SELECT 1 / (1 - count(*)) FROM pg_replication_slots WHERE slot_name = 'log'"


def test_a_table_that_is_ahead_of_the_server_is_not_emptied(log: Log, table: Table) -> None:
    """Its recorded transactions would keep the first rows out, and later the changes up to the recorded one."""
    table.upsert([{"id": 2, "lsn": 2, "kind": "+I"}], txn=(log.slot.application, 1 << 60))
    for call in (log.slot.create, log.slot.follow):
        with refused("CONFIGURATION_INVALID", "another name"):
            call({"log.t": table})
    assert table.count() == 2
    log.run(NO_SLOT)


def test_a_table_that_cannot_take_the_rows_is_not_emptied(log: Log, table: Table) -> None:
    """This session has no Spark, by which rows become row versions."""
    with refused("NOT_SUPPORTED", "Spark"):
        log.slot.create({"log.t": table})
    log.run(NO_SLOT)
    log.slot.create()
    log.run("TRUNCATE log.t", "INSERT INTO log.t VALUES (2)")
    with refused("NOT_SUPPORTED", "Spark"):
        log.slot.follow({"log.t": table})
    assert table.count() == 1
