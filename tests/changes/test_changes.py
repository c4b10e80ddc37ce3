"""The change feed through the public API, on every format: C1 to C5, checked by reads of every version."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.changes import applied, defined_changes, feed, rows_at
from tests.support.tables import oldest_version, put
from trinity import Column, Session, Table, TrinityError
from trinity.cli.main import app
from trinity.cli.tail import follow, print_changes
from trinity.engine.feed.spark.change_feed import COMMITS_IN_EXPRESSION

pytestmark = pytest.mark.inner

TABLES = {
    "deduplicate": "'watermark-key' = 'ts', 'tombstone-key' = 'gone'",
    "arrival": "",
    "first-row": "'merge-engine' = 'first-row'",
    "partial-update": "'merge-engine' = 'partial-update', 'fields.ts.sequence-group' = 'v,n'",
    "aggregation": "'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum'",
}
"""Merge engine -> options."""


def table_of_engine(session: Session, fmt: str, engine: str) -> Table:
    name = f"{fmt}.default.t"
    options = f"TBLPROPERTIES ({TABLES[engine]})" if TABLES[engine] else ""
    gone = ", gone BOOLEAN" if "gone" in options else ""
    session.sql(f"CREATE TABLE {name} (id INT, ts BIGINT, v STRING, n BIGINT{gone}, PRIMARY KEY (id)) {options}")
    return session.table(name)


def newest(table: Table) -> int:
    return table.splits().version


def lived(table: Table) -> Table:
    """Commit every kind of change to a table, and return it."""
    put(table, (1, 10, "a", 1), (2, 10, "b", 2), (3, 10, "c", 3))
    put(table, (1, 20, "d", 4), (2, 5, "late", 5), (4, 20, "e", 6))
    put(table, (4, 20, "e", 6))
    deletes = table.properties.get("merge-engine") != "first-row"
    if deletes:
        table.delete([{"id": 2}])
    put(table, (2, 30, "back", 7), (5, 30, None, None))
    table.compact()
    put(table, (5, 40, "f", 8), (5, 41, "g", 9), (3, 1, "old", 10))
    table.compact(full=True)
    put(table, (1, 50, "h", 11), (6, 50, "i", 12))
    if deletes:
        table.delete("id = 3")
    put(table, (3, 60, "j", 13), (1, 2, "late", 14))
    return table


@pytest.mark.full  # the conformance suite's check draws them
@pytest.mark.parametrize("engine", TABLES)
def test_the_feed_is_what_reads_of_each_version_say(session: Session, fmt: str, engine: str) -> None:
    table = lived(table_of_engine(session, fmt, engine))
    first, last = oldest_version(table), newest(table)
    found = feed(table, first)
    assert found == defined_changes(table, first, last)
    assert {kind for kind, _, _ in found} >= {"insert"}
    middle = (first + last) // 2
    assert feed(table, middle) == defined_changes(table, middle, last)
    assert applied(rows_at(table, middle), feed(table, middle)) == rows_at(table)
    net = feed(table, first, deduplication_mode="netChanges")
    assert applied(rows_at(table, first), net) == rows_at(table)
    assert len(net) == len(rows_at(table))


def test_the_times_of_many_commits(session: Session) -> None:
    table = table_of_engine(session, "parquet", "arrival")
    for n in range(3):
        put(table, (1, n, "a", n), (n, n, "b", n))
    found = feed(table, 0)
    assert {version for _, version, _ in found} == {1, 2, 3}
    with COMMITS_IN_EXPRESSION.set_to(1):
        assert feed(table, 0) == found


@pytest.mark.tiered
def test_row_changes_and_rewrites(session: Session, fmt: str) -> None:
    table = table_of_engine(session, fmt, "deduplicate")
    put(table, *((k, 10, f"v{k}", k) for k in range(6)))
    session.sql(f"UPDATE {table.name} SET v = 'u', n = n + 1 WHERE id < 3")
    session.sql(
        f"MERGE INTO {table.name} t USING (SELECT explode(array(0, 4, 9)) AS id) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 40 "
        "WHEN NOT MATCHED THEN INSERT (id, ts, v, n) VALUES (s.id, 1, 'm', 0)"
    )
    session.sql(f"DELETE FROM {table.name} WHERE id = 1")
    session.sql(f"TRUNCATE TABLE {table.name}")
    put(table, (1, 1, "new", 1))
    first = oldest_version(table)
    assert feed(table, first) == defined_changes(table, first, newest(table))


@pytest.mark.full
def test_columns_are_those_of_the_last_version(session: Session, tiered_fmt: str) -> None:
    table = table_of_engine(session, tiered_fmt, "deduplicate")
    put(table, (1, 10, "a", 1), (2, 10, "b", 2))
    table.add_column(Column("m", "map<string,int>"))
    session.sql(f"UPDATE {table.name} SET m = map('x', 1, 'y', 2) WHERE id = 1")
    table.rename_column("v", "w")
    session.sql(f"UPDATE {table.name} SET m = map('y', 2, 'x', 1) WHERE id = 1")
    session.sql(f"UPDATE {table.name} SET n = 3 WHERE id = 2")
    table.drop_column("n")
    first, last = oldest_version(table), newest(table)
    found = feed(table, first)
    assert found == defined_changes(table, first, last)
    assert not any(version == last - 1 for _, version, _ in found)  # n alone, which is dropped
    assert [c.name for c in table.definition.visible] == table.changes(first).columns[:-3]


@pytest.mark.full
@pytest.mark.tiered
def test_plain_tables(session: Session, fmt: str) -> None:
    session.sql(f"CREATE TABLE {fmt}.default.p (id INT, m MAP<STRING, INT>)")
    table = session.table(f"{fmt}.default.p")
    session.sql(f"INSERT INTO {table.name} VALUES (1, map('a', 1, 'b', 2)), (1, map('b', 2, 'a', 1)), (2, NULL)")
    session.sql(f"INSERT INTO {table.name} VALUES (3, NULL), (3, NULL)")
    session.sql(f"UPDATE {table.name} SET id = id + 10 WHERE id = 1")
    table.compact()
    session.sql(f"DELETE FROM {table.name} WHERE id >= 3")
    first, last = oldest_version(table), newest(table)
    assert feed(table, first) == defined_changes(table, first, last)
    net = feed(table, first, deduplication_mode="netChanges")
    assert applied(rows_at(table, first), net) == rows_at(table)
    assert {kind for kind, _, _ in net} == {"insert"}


def test_forms(session: Session, tiered_fmt: str) -> None:
    table = table_of_engine(session, tiered_fmt, "arrival")
    put(table, (1, 1, "a", 1))
    put(table, (1, 2, "b", 1))
    put(table, (1, 3, "a", 1), (2, 3, "c", 1))
    first = oldest_version(table)
    kinds = [(kind, version - first) for kind, version, _ in feed(table, first)]
    pair = ["update_preimage", "update_postimage"]
    assert sorted(kinds) == sorted([("insert", 1), *((k, v) for v in (2, 3) for k in pair), ("insert", 3)])
    split = feed(table, first + 1, compute_updates=False)
    assert sorted((kind, version - first) for kind, version, _ in split) == [
        ("delete", 2), ("delete", 3), ("insert", 2), ("insert", 3), ("insert", 3),
    ]  # fmt: skip
    assert {kind for kind, _, _ in feed(table, first, preimages=False)} == {"insert", "update_postimage"}
    assert [(k, r[0]) for k, _, r in feed(table, first + 1, deduplication_mode="netChanges")] == [
        ("update_preimage", 1), ("update_postimage", 1), ("insert", 2),
    ]  # fmt: skip


@pytest.mark.full
@pytest.mark.tiered
def test_bounds(session: Session, fmt: str) -> None:
    table = table_of_engine(session, fmt, "arrival")
    for n in range(3):
        put(table, (n, n, "a", n))
    first = oldest_version(table)

    def versions(*bounds: Any, **inclusive: bool) -> list[int]:
        return sorted(version - first for _, version, _ in feed(table, *bounds, **inclusive))

    assert versions(first, first + 2) == [1, 2]
    assert versions(first + 1, first + 3, start_inclusive=True) == [1, 2, 3]
    assert versions(first, start_inclusive=True) == [1, 2, 3]
    assert versions(first, first + 2, end_inclusive=False) == [1]
    assert versions(first + 3) == []
    times = {row.version - first: row.timestamp for row in table.history().collect()}
    assert versions(times[1]) == [2, 3]
    assert versions(times[1], times[2], start_inclusive=True) == [1, 2]
    assert versions("2020-01-01") == [1, 2, 3]
    with pytest.raises(TrinityError, match="which is after") as raised:
        table.changes(first + 2, first)
    assert raised.value.code == "INVALID_ARGUMENTS"
    with pytest.raises(TrinityError, match=f"oldest is {first}"):
        table.changes(first + 9)


@pytest.mark.tiered
def test_what_was_vacuumed_is_not_known(session: Session, fmt: str) -> None:
    table = table_of_engine(session, fmt, "arrival")
    put(table, (1, 1, "a", 1))
    put(table, (1, 2, "b", 1))
    table.compact(full=True)
    table.vacuum("0 seconds")
    kept = oldest_version(table)
    with pytest.raises(TrinityError, match=f"oldest is {kept}"):
        table.changes(kept - 1)
    put(table, (1, 3, "c", 1))
    assert feed(table, kept, start_inclusive=True) == defined_changes(table, kept, newest(table))
    put(table, (1, 4, "d", 1))
    table.vacuum("0 seconds")
    with pytest.raises(TrinityError, match="not known any more"):
        table.changes(oldest_version(table), start_inclusive=True)


@pytest.mark.tiered
def test_a_column_of_the_feeds_name_is_refused(session: Session, fmt: str) -> None:
    session.sql(f"CREATE TABLE {fmt}.default.c (id INT, _change_type STRING, PRIMARY KEY (id))")
    with pytest.raises(TrinityError, match=r"'_change_type'.*rename it"):
        session.table(f"{fmt}.default.c").changes("2020-01-01")


@pytest.mark.full
def test_sql(session: Session, tiered_fmt: str) -> None:
    table = table_of_engine(session, tiered_fmt, "arrival")
    put(table, (1, 1, "a", 1))
    put(table, (1, 2, "b", 1), (2, 2, "c", 1))
    put(table, (1, 3, "a", 1))
    session.sql(f"USE {tiered_fmt}.default")
    first = oldest_version(table)

    def shown(text: str) -> list[tuple[str, int, int]]:
        found = session.sql(f"SELECT _change_type, _commit_version, id FROM {text} ORDER BY 2, 3, 1 DESC").collect()
        return [(kind, version - first, key) for kind, version, key in found]

    whole = [
        ("insert", 1, 1), ("update_preimage", 2, 1), ("update_postimage", 2, 1), ("insert", 2, 2),
        ("update_preimage", 3, 1), ("update_postimage", 3, 1),
    ]  # fmt: skip
    assert shown(f"t CHANGES FROM VERSION {first}") == whole
    assert shown(f"t CHANGES FROM VERSION {first + 1} EXCLUSIVE TO VERSION {first + 2} AS c") == whole[1:4]
    assert shown(f"t CHANGES FROM VERSION {first} TO VERSION {first + 2} EXCLUSIVE") == whole[:1]
    assert shown(f"table_changes('t', {first + 2}, {first + 3})") == whole[1:]
    assert shown(f"table_changes('{table.name}', {first + 3}) AS c") == whole[4:]
    assert shown("t CHANGES FROM TIMESTAMP '2020-01-01' TO TIMESTAMP current_timestamp()") == whole
    assert shown("table_changes('t', '2020-01-01')") == whole
    assert shown(
        f"t CHANGES FROM VERSION {first + 2} WITH (deduplicationMode = 'netChanges', computeUpdates = 'false')"
    ) == [("insert", 2, 2), ("insert", 3, 1), ("delete", 3, 1)]
    both = f"SELECT count(*) AS n FROM t JOIN t CHANGES FROM VERSION {first + 2} c ON t.id = c.id AND t.v = c.v"
    assert [row.n for row in session.sql(both).collect()] == [3]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("t CHANGES FROM 3", "SYNTAX_ERROR", "VERSION or TIMESTAMP is missing"),
        ("t CHANGES FROM VERSION", "SYNTAX_ERROR", "version or a time is missing"),
        ("t CHANGES FROM VERSION 'x'", "INVALID_ARGUMENTS", "a version is a number"),
        ("t CHANGES FROM VERSION 77", "INVALID_ARGUMENTS", "no version 77"),
        ("t CHANGES FROM VERSION 0 WITH (mode = 'x')", "INVALID_ARGUMENTS", "'mode' is no option"),
        ("t CHANGES FROM VERSION 0 WITH (deduplicationMode = 'x')", "INVALID_ARGUMENTS", "it is dropCarryovers"),
        ("table_changes('nowhere', 1)", "TABLE_NOT_FOUND", "nowhere"),
    ],
)
def test_what_is_wrong_in_sql_is_said(session: Session, text: str, code: str, says: str) -> None:
    table_of_engine(session, "parquet", "arrival")
    session.sql("USE parquet.default")
    with pytest.raises(TrinityError, match=says) as raised:
        session.sql(f"SELECT * FROM {text}")
    assert raised.value.code == code


def test_tail_prints_changes_as_they_come(session: Session, tiered_fmt: str) -> None:
    table = table_of_engine(session, tiered_fmt, "arrival")
    put(table, (1, 1, "a", 1))
    first = newest(table)
    batches = [[(2, 2, "b", 1), (1, 2, "c", 1)], [(2, 3, "b", 2)]]

    def wait() -> bool:
        if batches:
            put(table, *batches.pop(0))
        else:
            table.compact(full=True)
        return table.splits().version < first + 3

    shown = io.StringIO()
    counts = [print_changes(rows, shown, lines=True) for rows in follow(table, first, wait)]
    lines = [json.loads(line) for line in shown.getvalue().splitlines()]
    assert counts == [3, 2]
    assert [(line["_commit_version"] - first, line["_change_type"], line["id"], line["v"]) for line in lines] == [
        (1, "update_preimage", 1, "a"), (1, "update_postimage", 1, "c"), (1, "insert", 2, "b"),
        (2, "update_preimage", 2, "b"), (2, "update_postimage", 2, "b"),
    ]  # fmt: skip


def test_the_command_tail(session: Session, warehouse: Path) -> None:
    table = table_of_engine(session, "parquet", "arrival")
    put(table, (1, 1, "a", 1))
    command = ["tail", "parquet.default.t", "-w", str(warehouse), "--after", "0", "--once"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0
    assert "| insert " in found.output
    assert CliRunner().invoke(app, ["tail", "parquet.default.nowhere", "-w", str(warehouse)]).exit_code == 2
    assert CliRunner().invoke(app, [*command, "-o", "xml"]).exit_code == 2
