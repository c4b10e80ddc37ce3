"""Names are data (N1): names that need quotes in SQL."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.odd_names import QUICK, quoted
from tests.support.refusals import refused
from trinity import Column, Session
from trinity.names import split_name

pytestmark = pytest.mark.inner

QUOTES = {"spark": "`", "trino": '"', "postgres": '"', "duckdb": '"'}
KEY, TIME, VALUE = "k.1", "w`s", "ünï-x"


@pytest.mark.full
@pytest.mark.parametrize("partitioned", [False, pytest.param(True, marks=pytest.mark.full)])
def test_names_that_want_quotes(session: Session, tiered_fmt: str, partitioned: bool) -> None:
    table = session.create_table(
        f"{tiered_fmt}.default.odd",
        [Column(KEY, "int"), Column(TIME, "bigint"), Column(VALUE, "string")],
        primary_key=[KEY],
        partition_by=[KEY] if partitioned else [],
        properties={"watermark-key": TIME},
    )
    key, time, value = (f"`{name.replace('`', '``')}`" for name in (KEY, TIME, VALUE))

    def put(*rows: tuple[int, int, str]) -> None:
        table.upsert(pa.table(dict(zip((KEY, TIME, VALUE), map(list, zip(*rows, strict=True)), strict=True))))

    def read(where: str | None = None) -> set[tuple[object, ...]]:
        return {tuple(r) for r in table.to_df(where=where).collect()}

    put((1, 1, "a"), (2, 2, "b"), (3, 1, "c"))
    put((1, 2, "a2"), (2, 1, "late"))
    for full in (False, True):
        table.compact(full=full)
        assert read() == {(1, 2, "a2"), (2, 2, "b"), (3, 1, "c")}
    put((4, 1, "d"), (3, 0, "late"))
    assert read(f"{key} >= 3 AND {value} <> 'x'") == {(3, 1, "c"), (4, 1, "d")}
    session.sql(f"USE {tiered_fmt}.default")
    session.sql(f"UPDATE odd SET {value} = concat({value}, '!') WHERE {key} = 1")
    session.sql(
        f"MERGE INTO odd t USING (VALUES (2, 'm'), (5, 'e')) s(id, {value}) ON t.{key} = s.id WHEN MATCHED THEN "
        f"UPDATE SET {value} = s.{value} WHEN NOT MATCHED THEN INSERT ({key}, {time}, {value}) "
        f"VALUES (s.id, 1, s.{value})"
    )
    session.sql(f"DELETE FROM odd WHERE {key} = 3 OR {value} = 'none'")
    table.delete([4])
    assert read() == {(1, 2, "a2!"), (2, 2, "m"), (5, 1, "e")}
    table.compact(full=True)
    assert read() == {(1, 2, "a2!"), (2, 2, "m"), (5, 1, "e")}


def tables(session: Session) -> list[str]:
    return [row.tableName for row in session.sql("SHOW TABLES").collect()]


@QUICK
@given(st.lists(st.text(min_size=1), min_size=1, max_size=3), st.data())
def test_a_dotted_name_is_read_as_it_was_written(parts: list[str], data: st.DataObject) -> None:
    marks = [data.draw(st.sampled_from('`"')) for _ in parts]
    assert split_name(".".join(map(quoted, parts, marks))) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", 'a"b', "`a`b", "``", "a.``.b"])
def test_what_is_no_dotted_name_is_refused(text: str) -> None:
    with refused("INVALID_ARGUMENTS", "no name"):
        split_name(text)


LOOKALIKES = ["victim", '"victim"', "`victim`", "v.w", '"v"."w"', "x`y", "x.y", "it's"]


@pytest.mark.tiered
def test_a_table_is_dropped_and_altered_by_its_own_name(session: Session, fmt: str) -> None:
    session.sql(f"USE {fmt}.default")
    for name in LOOKALIKES:
        session.sql(f"CREATE TABLE {quoted(name)} (k INT)")
    assert tables(session) == sorted(LOOKALIKES)
    session.sql("ALTER TABLE `x``y` SET PROPERTIES comment = 'mine'")
    session.sql("ALTER TABLE `x``y` ADD COLUMN (extra INT)")
    session.sql("ALTER TABLE `x``y` ALTER COLUMN extra FIRST")
    session.sql("ALTER TABLE `x``y` CHANGE extra more INT")
    assert [c.name for c in session.table("`x``y`").definition.columns] == ["more", "k"]
    assert [c.name for c in session.table("`x.y`").definition.columns] == ["k"]
    left = sorted(LOOKALIKES)
    for name, by_sql in zip(reversed(LOOKALIKES), [True, False] * len(LOOKALIKES), strict=False):
        session.sql(f"DROP TABLE {quoted(name)}") if by_sql else session.drop_table(quoted(name))
        left.remove(name)
        assert tables(session) == left


@pytest.mark.tiered
def test_dropping_a_schema_by_cascade_drops_its_tables_only(session: Session, fmt: str) -> None:
    for schema, table in product(("a", "a.b"), ("c", "b.c", '"c"')):
        session.sql(f"CREATE SCHEMA IF NOT EXISTS {fmt}.{quoted(schema)}")
        session.sql(f"CREATE TABLE {fmt}.{quoted(schema)}.{quoted(table)} (k INT)")
    session.sql(f"DROP SCHEMA {fmt}.`a.b` CASCADE")
    session.use(fmt, "a")
    assert tables(session) == ['"c"', "b.c", "c"]


@pytest.mark.parametrize("dialect", ["spark", *[pytest.param(d, marks=pytest.mark.full) for d in list(QUOTES)[1:]]])
def test_every_statement_means_the_name_that_it_names(session: Session, tiered_fmt: str, dialect: str) -> None:
    session.sql(f"USE {tiered_fmt}.default")
    name = '"a`.b"'
    t = quoted(name, QUOTES[dialect])
    full = f"{tiered_fmt}.{quoted('default', QUOTES[dialect])}.{t}"

    def run(text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in session.sql(text, dialect=dialect).collect()]

    run(f"CREATE TABLE {t} (k INT, v VARCHAR(9))")
    session.create_table("`a``.b`", [Column("k", "int")]).append(pa.table({"k": [7]}))
    run(f"INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    run(f"UPDATE {t} SET v = 'c' WHERE {full}.k = 1")
    run(f"DELETE FROM {full} WHERE {t}.k = 2")
    run(
        f"MERGE INTO {t} USING (SELECT k + 1 AS k FROM {full}) s ON {t}.k = s.k "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'd')"
    )
    assert sorted(run(f"SELECT {t}.k, {t}.v FROM {full}")) == [(1, "c"), (2, "d")]
    assert [row[0] for row in run(f"SHOW COLUMNS FROM {t}")] == ["k", "v"]
    assert [row[0] for row in run(f"DESCRIBE {full}")] == ["k", "v"]
    (shown,) = run(f"SHOW CREATE TABLE {t}")[0]
    if dialect == "spark":
        assert len(run(f"SELECT * FROM {t} VERSION AS OF {session.table(quoted(name)).splits().version}")) == 2
        run(f"CREATE TEMPORARY VIEW `vi.e``w` AS SELECT * FROM {full}")
        assert len(run("SELECT * FROM `vi.e``w`")) == 2
        run("DROP VIEW `vi.e``w`")
    run(f"CREATE TABLE {quoted('copy.of', QUOTES[dialect])} AS SELECT * FROM {t}")
    run(f"TRUNCATE TABLE {t}")
    assert run(f"SELECT * FROM {t}") == []
    run(f"DROP TABLE {t}")
    session.sql(str(shown))
    assert tables(session) == [name, "a`.b", "copy.of"]
    assert session.table("`a``.b`").to_df().collect() == [(7,)]
    assert session.table("`copy.of`").to_df().count() == 2


def test_a_missing_name_with_quotes_is_named_as_sql_takes_it(session: Session) -> None:
    with refused("TABLE_NOT_FOUND", "default.`no``ne`"):
        session.sql("SELECT * FROM `no``ne`")
    with refused("TABLE_NOT_FOUND", "default.`no.``ne`"):
        session.table("`no.``ne`")
