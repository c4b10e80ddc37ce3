"""Tables that follow a real PostgreSQL through a replication slot: once it is quiet, they hold its rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from pyspark.sql import DataFrame

from tests.support.postgres import RunningServer
from tests.support.refusals import refused
from trinity import Session, Table, cdc
from trinity.cdc.postgres_server import Server

pytestmark = pytest.mark.inner

OPTIONS = "'watermark-key' = 'lsn', 'rowkind.field' = 'kind'"


@dataclass
class Shop:
    """A schema ``shop`` in PostgreSQL, and the tables of Trinity that follow its tables."""

    server: RunningServer
    session: Session
    fmt: str
    tables: dict[str, Table | None] = field(default_factory=dict)
    slots: list[cdc.PostgresSlot] = field(default_factory=list)

    def run(self, *statements: str) -> None:
        """Run statements as one transaction."""
        with psycopg.connect(**self.server.options) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(**self.server.options) as connection:
            connection.execute("SET timezone = 'UTC'")
            return connection.execute(f"SELECT {columns} FROM shop.{table} ORDER BY 1".encode()).fetchall()

    def slot(self, publication: str = "shop") -> cdc.PostgresSlot:
        """Open a new reader of the slot, as a restarted process does."""
        self.slots.append(cdc.PostgresSlot(make_conninfo(**self.server.options), "trinity", [publication]))
        return self.slots[-1]

    def table(self, name: str, columns: str, options: str = OPTIONS) -> Table:
        """Make a table that follows a table of PostgreSQL."""
        full = f"{self.fmt}.default.{name}"
        self.session.sql(f"CREATE TABLE {full} ({columns}, kind STRING, PRIMARY KEY (id)) TBLPROPERTIES ({options})")
        found = self.session.table(full)
        self.tables[f"shop.{name}"] = found
        return found


@pytest.fixture
def make_shop(postgres_server: RunningServer, session: Session) -> Iterator[Callable[[str], Shop]]:
    made: list[Shop] = []

    def make(fmt: str) -> Shop:
        shop = Shop(postgres_server, session, fmt)
        shop.run("DROP SCHEMA IF EXISTS shop CASCADE", "CREATE SCHEMA shop")
        shop.run("DROP PUBLICATION IF EXISTS shop", "CREATE PUBLICATION shop FOR TABLES IN SCHEMA shop")
        made.append(shop)
        return shop

    yield make
    for shop in made:
        shop.slot().drop()
        for slot in shop.slots:
            slot.close()


@pytest.fixture
def shop(make_shop: Callable[[str], Shop], tiered_fmt: str) -> Shop:
    return make_shop(tiered_fmt)


@pytest.fixture
def people(shop: Shop) -> Shop:
    """Make shop.people with three rows, and a table that follows it from then on."""
    shop.run("CREATE TABLE shop.people (id INT PRIMARY KEY, name TEXT)")
    shop.run("INSERT INTO shop.people VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    shop.table("people", "id INT, name STRING, lsn BIGINT")
    shop.slot().create(shop.tables)
    return shop


def stored(table: Table | None, *names: str) -> list[tuple[Any, ...]]:
    assert table is not None
    return sorted((tuple(r) for r in table.to_df().select(*(names or ("id", "name"))).collect()), key=lambda r: r[0])


def check(shop: Shop, table: str = "people", columns: str = "id, name") -> None:
    """Check that the table's rows are those of PostgreSQL."""
    assert stored(shop.tables[f"shop.{table}"], *columns.split(", ")) == shop.rows(table, columns)


def test_rows_changes_and_keys(people: Shop) -> None:
    check(people)
    slot = people.slot()
    people.run(
        "INSERT INTO shop.people VALUES (4, 'd'), (5, 'it''s \"quoted\" \\ \u00e9\U0001f40d\n')",
        "UPDATE shop.people SET name = 'a2' WHERE id = 1",
        "UPDATE shop.people SET name = 'a3' WHERE id = 1",
        "DELETE FROM shop.people WHERE id = 2",
        "INSERT INTO shop.people VALUES (2, 'again')",
        "UPDATE shop.people SET id = 30 WHERE id = 3",
    )
    people.run("UPDATE shop.people SET id = 3 WHERE id = 30", "UPDATE shop.people SET id = 40 WHERE id = 4")
    reached = slot.follow(people.tables)
    check(people)
    version = people.session.table(f"{people.fmt}.default.people").splits().version
    assert slot.follow(people.tables) >= reached
    assert people.session.table(f"{people.fmt}.default.people").splits().version == version  # nothing new, no commit


@pytest.mark.full
def test_truncate_keeps_its_place(people: Shop) -> None:
    slot = people.slot()
    people.run("INSERT INTO shop.people VALUES (4, 'd')")
    people.run(
        "INSERT INTO shop.people VALUES (5, 'e')", "TRUNCATE shop.people", "INSERT INTO shop.people VALUES (4, 'D')"
    )
    people.run("INSERT INTO shop.people VALUES (6, 'f')")
    slot.follow(people.tables, limit=1)
    check(people)
    people.run("TRUNCATE shop.people")
    people.run("INSERT INTO shop.people VALUES (6, 'F')")
    people.run("TRUNCATE shop.people")
    slot.follow(people.tables)
    check(people)
    assert stored(people.tables["shop.people"]) == []


class Killed(Exception):
    """The end of a killed process."""


@pytest.mark.full
@pytest.mark.parametrize(
    "step", ["confirm", *(pytest.param(s, marks=pytest.mark.full) for s in ("truncate", "upsert"))]
)
def test_a_consumer_that_dies_loses_and_doubles_nothing(
    people: Shop, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer dies after each step, and PostgreSQL discards what was confirmed. A sum would show duplicates."""
    options = "'merge-engine' = 'aggregation', 'rowkind.field' = 'kind', 'fields.amount.aggregate-function' = 'sum'"
    sums = people.table("sums", "id INT, amount INT", options)
    people.run("CREATE TABLE shop.sums (id INT PRIMARY KEY, amount INT)", "ALTER TABLE shop.sums REPLICA IDENTITY FULL")

    def read(events: DataFrame, table: Table) -> DataFrame:
        summed = table.name == sums.name
        return cdc.debezium(events, table, position=None, preimages=True) if summed else cdc.debezium(events, table)

    people.run("INSERT INTO shop.sums VALUES (1, 5), (2, 7)", "UPDATE shop.sums SET amount = 6 WHERE id = 1")
    people.run("INSERT INTO shop.people VALUES (9, 'gone')", "TRUNCATE shop.people")
    people.run("INSERT INTO shop.people VALUES (1, 'z')", "DELETE FROM shop.sums WHERE id = 2")
    owner, call = {
        "truncate": (type(sums.connector.metadata), "truncate"),
        "upsert": (type(sums.connector.metadata), "finish_insert"),
        "confirm": (Server, "confirm"),
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, call, dies(getattr(owner, call)))
        with pytest.raises(Exception, match="Killed"):
            people.slot().follow(people.tables, read=read)
    people.server.restart()
    people.run("UPDATE shop.sums SET amount = 1 WHERE id = 1", "INSERT INTO shop.people VALUES (2, 'y')")
    people.slot().follow(people.tables, read=read)
    check(people)
    assert [row for row in stored(sums, "id", "amount") if row[1]] == people.rows("sums", "id, amount")


def dies(call: Callable[..., Any]) -> Callable[..., Any]:
    def dying(*args: Any, **kwargs: Any) -> Any:
        call(*args, **kwargs)
        raise Killed

    return dying


TYPES = {
    "b": ("boolean", "BOOLEAN"),
    "s": ("smallint", "INT"),
    "l": ("bigint", "BIGINT"),
    "n": ("numeric(30,10)", "DECIMAL(30,10)"),
    "r": ("real", "FLOAT"),
    "f": ("double precision", "DOUBLE"),
    "v": ("varchar(20)", "STRING"),
    "c": ("char(3)", "STRING"),
    "d": ("date", "DATE"),
    "t": ("timestamp", "TIMESTAMP_NTZ"),
    "z": ("timestamptz", "TIMESTAMP"),
    "x": ("bytea", "BINARY"),
    "u": ("uuid", "STRING"),
    "j": ("jsonb", "STRING"),
    "a": ("int[]", "ARRAY<INT>"),
    "w": ("text[]", "ARRAY<STRING>"),
    "o": ("shop.octets", "BINARY"),
}
ROWS = r"""
    (1, true, -32768, 9223372036854775807, 12345678901234567890.0123456789, 0.1, 0.1, 'it''s "x"', 'é', '1969-12-31',
     '2026-01-02 03:04:05.000006', '2026-01-02 03:04:05.000006+05:30', '\x00ff',
     '00000000-0000-0000-0000-000000000001', '{"a": [1, "b"]}', '{1,NULL,-3}', '{"a,b","NULL",NULL,"q\"\\",""}',
     '\x01'),
    (2, false, 0, 0, -0.5, 'NaN', '-Infinity', '', '', '0001-01-01', '9999-12-31 23:59:59.999999',
     '1970-01-01 00:00:00+00', '', NULL, 'null', '{}', '{}', ''),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""


def test_types(shop: Shop) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    shop.run("CREATE DOMAIN shop.octets AS bytea", f"CREATE TABLE shop.types (id INT PRIMARY KEY, {columns})")
    shop.run(f"INSERT INTO shop.types VALUES {ROWS}")
    table = shop.table(
        "types", ", ".join(["id INT", *(f"{name} {kind}" for name, (_, kind) in TYPES.items()), "lsn BIGINT"])
    )
    slot = shop.slot()
    slot.create(shop.tables)
    # compared as text: Python has no REAL, and NaN does not equal itself
    shown = {
        "d": "CAST(d AS STRING)", "t": "CAST(t AS STRING)", "z": "CAST(z AS STRING)", "x": "hex(x)", "o": "hex(o)",
        "r": "CAST(r AS STRING)", "f": "CAST(f AS STRING)",
    }  # fmt: skip

    def found() -> list[tuple[Any, ...]]:
        return sorted(tuple(r) for r in table.to_df().selectExpr("id", *(shown.get(n, n) for n in TYPES)).collect())

    texts = {
        **dict.fromkeys("dztrf", "{0}::text"), "x": "upper(encode({0}, 'hex'))", "o": "upper(encode({0}, 'hex'))",
        "u": "u::text", "j": "j::text", "z": "replace(z::text, '+00', '')",
    }  # fmt: skip
    expected = shop.rows("types", ", ".join(["id", *(texts.get(n, n).format(n) for n in TYPES)]))
    assert found() == expected
    shop.run("UPDATE shop.types SET id = id + 10")
    slot.follow(shop.tables)
    assert found() == [(key + 10, *rest) for key, *rest in expected]


LONG = "(SELECT string_agg(md5(i::text || {0}), '') FROM generate_series(1, 200) i)"
"""A text that stays long under compression."""


@pytest.mark.full
def test_toast_of_whole_rows(shop: Shop) -> None:
    shop.run("CREATE TABLE shop.pages (id INT PRIMARY KEY, title TEXT, body TEXT)")
    shop.run("ALTER TABLE shop.pages REPLICA IDENTITY FULL")
    shop.table("pages", "id INT, title STRING, body STRING, lsn BIGINT")
    slot = shop.slot()
    slot.create()
    shop.run(f"INSERT INTO shop.pages VALUES (1, 'a', {LONG.format(1)}), (2, 'b', {LONG.format(2)})")
    shop.run("UPDATE shop.pages SET title = upper(title)", "UPDATE shop.pages SET id = 3 WHERE id = 1")
    slot.follow(shop.tables)
    check(shop, "pages", "id, title, body")


@pytest.mark.full
def test_toast_that_is_not_logged(shop: Shop) -> None:
    shop.run("CREATE TABLE shop.pages (id INT PRIMARY KEY, title TEXT, body TEXT)")
    columns, options = "id INT, title STRING, body STRING, lsn BIGINT, body_lsn BIGINT", (
        "'merge-engine' = 'partial-update', 'rowkind.field' = 'kind', "
        "'fields.lsn.sequence-group' = 'title', 'fields.body_lsn.sequence-group' = 'body', "
        "'partial-update.remove-record-on-sequence-group' = 'lsn'")  # fmt: skip
    shop.table("pages", columns, options)
    read = functools.partial(cdc.debezium, watermark="lsn", unavailable={"body": "body_lsn"})
    shop.run(f"INSERT INTO shop.pages VALUES (1, 'a', {LONG.format(1)}), (2, 'b', {LONG.format(2)}), (3, 'c', 'short')")
    slot = shop.slot()
    slot.create(shop.tables, read=read)
    shop.run(
        "UPDATE shop.pages SET title = upper(title)", f"UPDATE shop.pages SET body = {LONG.format(3)} WHERE id = 2"
    )
    shop.run("UPDATE shop.pages SET title = NULL WHERE id = 2", "DELETE FROM shop.pages WHERE id = 3")
    slot.follow(shop.tables, read=read)
    check(shop, "pages", "id, title, body")
    shop.run("UPDATE shop.pages SET title = 'x'")
    with refused("BAD_DATA", "'body'", "REPLICA IDENTITY FULL"):
        slot.follow({"shop.pages": shop.table("whole", "id INT, title STRING, body STRING, lsn BIGINT")})


@pytest.mark.full
def test_a_large_transaction(people: Shop) -> None:
    people.run(
        "INSERT INTO shop.people SELECT i, 'n' || i FROM generate_series(10, 10009) i",
        "UPDATE shop.people SET name = name || '!' WHERE id % 3 = 0",
        "DELETE FROM shop.people WHERE id % 5 = 0",
    )
    people.slot().follow(people.tables, limit=100)
    check(people)


@pytest.mark.full
def test_several_tables(people: Shop) -> None:
    people.run('CREATE TABLE shop."Odd, name" (id INT PRIMARY KEY, "Größe" INT)', "CREATE TABLE shop.audit (x INT)")
    odd = people.table("odd", "id INT, `Größe` INT, lsn BIGINT")
    people.tables["shop.Odd, name"] = people.tables.pop("shop.odd")
    slot = people.slot()
    people.run('INSERT INTO shop."Odd, name" VALUES (1, 2)', "INSERT INTO shop.audit VALUES (1)")
    with refused("INVALID_ARGUMENTS", "'shop.audit'", "None"):
        slot.follow(people.tables)
    assert stored(odd, "id") == []
    people.tables["shop.audit"] = None
    people.run('TRUNCATE shop.people, shop."Odd, name"', "INSERT INTO shop.people VALUES (8, 'h')")
    slot.follow(people.tables)
    check(people)
    assert stored(odd, "id") == []


@pytest.mark.full
def test_columns_and_rows_of_a_publication(make_shop: Callable[[str], Shop]) -> None:
    shop = make_shop("parquet")
    shop.run("CREATE TABLE shop.people (id INT PRIMARY KEY, secret TEXT, name TEXT)")
    shop.run("DROP PUBLICATION shop", "CREATE PUBLICATION shop FOR TABLE shop.people (id, name) WHERE (id < 10)")
    shop.run("INSERT INTO shop.people VALUES (1, 's', 'a'), (10, 's', 'x')")
    table = shop.table("people", "id INT, secret STRING, name STRING, lsn BIGINT")
    slot = shop.slot()
    slot.create(shop.tables)
    shop.run(
        "INSERT INTO shop.people VALUES (2, 's', 'b'), (11, 's', 'y')", "UPDATE shop.people SET id = 12 WHERE id = 1"
    )
    slot.follow(shop.tables)
    assert stored(table, "id", "secret", "name") == [(2, None, "b")]


def test_what_the_slot_gives(people: Shop) -> None:
    people.run("INSERT INTO shop.people VALUES (4, 'd')", "DELETE FROM shop.people WHERE id = 1")
    people.run("TRUNCATE shop.people")
    with people.slot() as slot:
        batch = slot.changes()
        assert batch.events.column("op").to_pylist() == ["c", "d", "t"]
        assert set(batch.events.column("table").to_pylist()) == {"shop.people"}
        lsns, commits = (batch.events.column(name).to_pylist() for name in ("lsn", "commit_lsn"))
        assert lsns == sorted(set(lsns))
        assert commits[0] == commits[1] < commits[2] <= batch.lsn
        assert batch.last
        first = slot.changes(limit=1)
        assert (first.events.num_rows, first.lsn, first.last) == (2, commits[0], False)
        slot.confirm(first.lsn)
        slot.confirm(first.lsn - 1)
        assert slot.changes().events.column("op").to_pylist() == ["t"]
        slot.confirm(batch.lsn)
        assert slot.changes().events.num_rows == 0


def test_what_is_wrong_is_said(people: Shop) -> None:
    slot = people.slot()
    with refused("INVALID_ARGUMENTS", "'No'"):
        cdc.PostgresSlot("", "No", ["shop"])
    with refused("CONFIGURATION_INVALID", "PostgreSQL"):
        cdc.PostgresSlot("host=127.0.0.1 port=1", "trinity", ["shop"]).changes()
    with refused("INVALID_ARGUMENTS", '"trinity"', "already exists"):
        slot.create()
    with refused("CONFIGURATION_INVALID", "publication", "nowhere"):
        people.run("INSERT INTO shop.people VALUES (4, 'd')")
        people.slot("nowhere").changes()
    people.run("CREATE UNIQUE INDEX other ON shop.people (name)", "UPDATE shop.people SET name = 'c' WHERE id = 3")
    people.run(
        "ALTER TABLE shop.people ALTER name SET NOT NULL", "ALTER TABLE shop.people REPLICA IDENTITY USING INDEX other"
    )
    slot.follow(people.tables)
    people.run("DELETE FROM shop.people WHERE id = 1")
    with refused("INVALID_ARGUMENTS", "REPLICA IDENTITY", "'id'"):
        slot.follow(people.tables)
    slot.drop()
    slot.drop()
    with refused("CONFIGURATION_INVALID", "trinity"):
        slot.changes()


@pytest.mark.full
def test_a_copy_that_was_interrupted_is_known(people: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = people.slot()
    slot.drop()
    with monkeypatch.context() as patch:
        patch.setattr(Table, "upsert", dies(lambda *_, **__: None))
        with pytest.raises(Exception, match="Killed"):
            slot.create(people.tables)
    with refused("CONFIGURATION_INVALID", "filled whole", "drop"):
        slot.follow(people.tables)
    slot.drop()
    people.run("DELETE FROM shop.people WHERE id = 1")
    slot.create(people.tables)
    check(people)
