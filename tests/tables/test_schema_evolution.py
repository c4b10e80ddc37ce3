"""ALTER TABLE on every format: old files and old versions read right, and no dropped value reappears."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.tables import sorted_query
from trinity import Session
from trinity.errors import TrinityError
from trinity.spi import SinkId

Rows = list[tuple[Any, ...]]


@pytest.fixture
def opened(session: Session, fmt: str) -> Session:
    """Set the current schema to each format in turn."""
    session.use(fmt, "default")
    return session


def columns(session: Session, table: str = "t") -> list[str]:
    return session.table(table).to_df().columns


def not_altered(session: Session, code: str, text: str) -> str:
    """Return the message of a statement's error; check that the table has no new version."""
    before = session.table("t").splits().version
    with pytest.raises(TrinityError) as caught:
        session.sql(text)
    assert caught.value.code == code, caught.value.message
    assert session.table("t").splits().version == before
    return caught.value.message


@pytest.mark.tiered
def test_the_life_of_a_keyed_table(opened: Session, fmt: str) -> None:
    """Columns swap names, a dropped name is used again, types widen, and files of every age are live at once."""
    opened.sql("CREATE TABLE t (id INT PRIMARY KEY, a STRING, b STRING, w INT) TBLPROPERTIES ('watermark-key' = 'w')")
    opened.sql("INSERT INTO t VALUES (1, 'a1', 'b1', 1), (2, 'a2', 'b2', 1), (9, 'a9', 'b9', 1)")
    table = opened.table("t")
    table.compact(full=True)
    old = table.splits().version
    opened.sql("INSERT INTO t VALUES (2, 'late', 'late', 0)")
    with_late = table.splits().version

    # a and b change places, through a third name; the watermark is renamed with its option
    opened.sql("ALTER TABLE t RENAME COLUMN a TO x")
    opened.sql("ALTER TABLE t RENAME COLUMN b TO a")
    opened.sql("ALTER TABLE t RENAME COLUMN x TO b")
    opened.sql("ALTER TABLE t RENAME COLUMN w TO seq")
    assert table.properties["watermark-key"] == "seq"
    assert sorted_query(opened, "SELECT id, a, b, seq FROM t") == [
        (1, "b1", "a1", 1),
        (2, "b2", "a2", 1),
        (9, "b9", "a9", 1),
    ]
    opened.sql("INSERT INTO t (id, a, b, seq) VALUES (1, 'B1', 'A1', 2), (3, 'B3', 'A3', 2)")

    # statistics and pushed filters belong to the column, not to the name
    assert sorted_query(opened, "SELECT id FROM t WHERE a = 'b2'") == [(2,)]
    assert sorted_query(opened, "SELECT id FROM t WHERE b >= 'a1' AND b < 'b'") == [(2,), (9,)]

    opened.sql("ALTER TABLE t DROP COLUMN b")
    opened.sql("ALTER TABLE t ADD COLUMN b STRING AFTER id")
    assert columns(opened) == ["id", "b", "a", "seq"]
    assert sorted_query(opened) == [(1, None, "B1", 2), (2, None, "b2", 1), (3, None, "B3", 2), (9, None, "b9", 1)]

    opened.sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    opened.sql("ALTER TABLE t ALTER COLUMN seq SET DATA TYPE bigint", dialect="trino")
    opened.sql("INSERT INTO t VALUES (3000000000, 'new', 'y', 4000000000), (2, 'new', 'z', 3)")
    opened.sql("DELETE FROM t WHERE id = 9")
    opened.sql("UPDATE t SET b = 'set' WHERE id = 3")
    now = [(1, None, "B1", 2), (2, "new", "z", 3), (3, "set", "B3", 2), (3000000000, "new", "y", 4000000000)]
    assert sorted_query(opened) == now
    assert sorted_query(opened, "SELECT id FROM t WHERE id = 1") == [(1,)]
    table.compact()
    assert sorted_query(opened) == now
    table.compact(full=True)
    assert sorted_query(opened) == now
    opened.sql("INSERT INTO t VALUES (1, 'after', 'compaction', 5), (9, 'too', 'late', 1)")
    assert sorted_query(opened) == [(1, "after", "compaction", 5), *now[1:], (9, "too", "late", 1)]

    then = [(1, "a1", "b1", 1), (2, "a2", "b2", 1), (9, "a9", "b9", 1)]
    assert table.to_df(version=old).columns == ["id", "a", "b", "w"]
    assert sorted(map(tuple, table.to_df(version=old).collect())) == then
    assert sorted(map(tuple, table.to_df(version=with_late).collect())) == then


@pytest.mark.tiered
def test_a_plain_partitioned_table(opened: Session, fmt: str) -> None:
    opened.sql("CREATE TABLE t (n INT, region STRING, amount DECIMAL(6,2), f FLOAT) PARTITIONED BY (region)")
    opened.sql("INSERT INTO t VALUES (1, 'eu', 1.25, 0.5), (2, 'us', 2.50, 1.5), (3, NULL, NULL, NULL)")
    opened.sql("ALTER TABLE t RENAME COLUMN region TO area")
    opened.sql("ALTER TABLE t ALTER COLUMN amount TYPE DECIMAL(12,2)")
    opened.sql("ALTER TABLE t ALTER COLUMN f TYPE DOUBLE")
    opened.sql("INSERT INTO t VALUES (4, 'eu', 1234567890.12, 1e300)")
    assert sorted_query(opened, "SELECT n FROM t WHERE area = 'eu'") == [(1,), (4,)]
    opened.sql("UPDATE t SET n = n + 10 WHERE area = 'eu'")  # rewrites files of both ages
    opened.sql("DELETE FROM t WHERE area = 'us'")
    found = [(n, area, None if a is None else float(a), f) for n, area, a, f in sorted_query(opened)]
    assert found == [(11, "eu", 1.25, 0.5), (14, "eu", 1234567890.12, 1e300), (3, None, None, None)]
    opened.table("t").compact(full=True)
    assert len(sorted_query(opened)) == 3
    assert "PARTITIONED BY (area)" in opened.sql("SHOW CREATE TABLE t").collect()[0][0].replace("`", "")
    message = not_altered(opened, "NOT_SUPPORTED", "ALTER TABLE t DROP COLUMN area")
    assert "partition" in message


@pytest.mark.full
def test_sequence_groups_keep_what_rows_carry(session: Session, tiered_fmt: str) -> None:
    """Which columns a row carries is recorded by column, not by position (P1)."""
    lake = session
    lake.use(tiered_fmt, "default")
    lake.sql(
        "CREATE TABLE t (k INT PRIMARY KEY, a INT, b INT, s INT, c INT, d INT) TBLPROPERTIES ("
        "'merge-engine' = 'partial-update', 'fields.s.sequence-group' = 'c,d', 'fields.d.aggregate-function' = 'sum')"
    )
    lake.sql("INSERT INTO t VALUES (1, 1, 1, 1, 1, 1)")
    lake.sql("UPDATE t SET b = NULL WHERE k = 1")  # carries b alone
    lake.sql("ALTER TABLE t ALTER COLUMN b FIRST")
    lake.sql("ALTER TABLE t RENAME COLUMN s TO version")
    lake.sql("ALTER TABLE t RENAME COLUMN d TO total")
    assert lake.table("t").properties["fields.version.sequence-group"] == "c,total"
    assert sorted_query(lake, "SELECT k, a, b, version, c, total FROM t") == [(1, 1, None, 1, 1, 1)]
    lake.sql("ALTER TABLE t DROP COLUMN a")
    lake.sql("ALTER TABLE t ADD COLUMN e INT")
    lake.sql("INSERT INTO t (k, version, c, total, e) VALUES (1, 0, 7, 10, 5)")  # late: only the sum counts
    lake.sql("UPDATE t SET e = NULL WHERE k = 1")
    wanted = [(1, None, 1, 1, 11, None)]
    assert sorted_query(lake, "SELECT k, b, version, c, total, e FROM t") == wanted
    lake.table("t").compact(full=True)
    assert sorted_query(lake, "SELECT k, b, version, c, total, e FROM t") == wanted
    lake.sql("ALTER TABLE t DROP COLUMN c")
    assert lake.table("t").properties["fields.version.sequence-group"] == "total"
    assert "all that the sequence group" in not_altered(lake, "NOT_SUPPORTED", "ALTER TABLE t DROP COLUMN total")
    assert "sequence" in not_altered(lake, "NOT_SUPPORTED", "ALTER TABLE t DROP COLUMN version")


@pytest.mark.full
def test_nullability_defaults_and_comments(session: Session, tiered_fmt: str) -> None:
    session.use(tiered_fmt, "default")
    session.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL DEFAULT 1, n INT)")
    session.sql("INSERT INTO t VALUES (1, 1, NULL)")
    session.sql("ALTER TABLE t ALTER COLUMN v DROP NOT NULL")
    session.sql("ALTER TABLE t ALTER COLUMN v DROP DEFAULT")
    session.sql("ALTER TABLE t ALTER COLUMN v COMMENT 'what'")
    session.sql("INSERT INTO t (id) VALUES (2)")
    assert sorted_query(session) == [(1, 1, None), (2, None, None)]
    assert "NULL in some rows" in not_altered(
        session, "CONSTRAINT_VIOLATION", "ALTER TABLE t ALTER COLUMN n SET NOT NULL"
    )
    session.sql("DELETE FROM t WHERE id = 2")
    session.sql("ALTER TABLE t ALTER COLUMN v SET NOT NULL")
    session.sql("ALTER TABLE t ALTER COLUMN v SET DEFAULT 1 + 6")
    assert session.table("t").definition.column("v").comment == "what"
    session.sql("INSERT INTO t (id) VALUES (3)")
    not_altered(session, "CONSTRAINT_VIOLATION", "INSERT INTO t VALUES (4, NULL, 0)")
    assert sorted_query(session) == [(1, 1, None), (3, 7, None)]
    session.sql("ALTER TABLE t DROP COLUMN IF EXISTS nope")
    session.sql("ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT")
    session.sql("ALTER TABLE t CHANGE n m BIGINT COMMENT 'both'")
    assert [(c.name, c.type, c.comment) for c in session.table("t").definition.visible[2:]] == [("m", "bigint", "both")]


@pytest.mark.tiered
def test_a_new_column_with_a_default_that_spark_evaluates(opened: Session, fmt: str) -> None:
    """By Spark and by this process, after a dropped column of the same name, in base, log and plain files."""
    for key in ("", " PRIMARY KEY"):
        opened.sql(f"CREATE TABLE t (id INT{key}, note STRING)")
        opened.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        opened.table("t").compact(full=True)
        opened.sql("INSERT INTO t VALUES (3, 'c')")
        opened.sql("ALTER TABLE t DROP COLUMN note")
        before = opened.table("t").version
        opened.sql("ALTER TABLE t ADD COLUMN note INT DEFAULT ascii('A')")
        assert opened.table("t").version == before + 1
        opened.sql("INSERT INTO t (id) VALUES (4)")
        assert sorted_query(opened, "SELECT id FROM t WHERE note = 65") == [(1,), (2,), (3,), (4,)]
        opened.table("t").compact(full=True)
        assert sorted_query(opened) == [(n, 65) for n in (1, 2, 3, 4)]
        assert sorted_query(opened, f"SELECT * FROM t VERSION AS OF {before}") == [(1,), (2,), (3,)]
        opened.sql("DROP TABLE t")


def test_what_is_refused(session: Session, tiered_fmt: str) -> None:
    session.use(tiered_fmt, "default")
    session.sql(
        "CREATE TABLE t (id INT PRIMARY KEY, w INT, gone BOOLEAN, v INT, p STRUCT<q: INT>) "
        "TBLPROPERTIES ('watermark-key' = 'w', 'tombstone-key' = 'gone')"
    )
    for column, role in {"id": "primary key", "w": "watermark", "gone": "tombstone"}.items():
        assert role in not_altered(session, "NOT_SUPPORTED", f"ALTER TABLE t DROP COLUMN {column}")
    assert "'v'" in not_altered(session, "COLUMN_NOT_FOUND", "ALTER TABLE t DROP COLUMN vv")
    not_altered(session, "COLUMN_NOT_FOUND", "ALTER TABLE t RENAME COLUMN vv TO x")
    not_altered(session, "COLUMN_ALREADY_EXISTS", "ALTER TABLE t RENAME COLUMN v TO W")
    not_altered(session, "COLUMN_NOT_FOUND", "ALTER TABLE t ALTER COLUMN v AFTER nope")
    not_altered(session, "INVALID_ARGUMENTS", "ALTER TABLE t RENAME COLUMN v TO _trinity_x")
    for narrower in ("SMALLINT", "STRING", "DECIMAL(10,0)", "DOUBLE"):
        assert "no wider" in not_altered(session, "TYPE_MISMATCH", f"ALTER TABLE t ALTER COLUMN v TYPE {narrower}")
    not_altered(session, "NOT_SUPPORTED", "ALTER TABLE t ALTER COLUMN id DROP NOT NULL")
    not_altered(session, "TYPE_MISMATCH", "ALTER TABLE t ADD COLUMN x INT DEFAULT 'five'")
    not_altered(session, "NOT_SUPPORTED", "ALTER TABLE t ADD COLUMN x INT DEFAULT v")
    assert "SET NOT NULL" in not_altered(session, "NOT_SUPPORTED", "ALTER TABLE t ADD COLUMN x INT NOT NULL DEFAULT 5")
    assert "whole columns" in not_altered(session, "NOT_SUPPORTED", "ALTER TABLE t RENAME COLUMN p.q TO r")
    # one statement is one commit: the second part is refused, and so the first is not done
    not_altered(session, "COLUMN_ALREADY_EXISTS", "ALTER TABLE t ADD COLUMNS (x INT, v INT)")
    assert columns(session) == ["id", "w", "gone", "v", "p"]


def test_files_written_across_a_change(opened: Session, fmt: str) -> None:
    """An append and a compaction begin before columns swap names, and end afterwards."""
    opened.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    opened.sql("INSERT INTO t VALUES (1, 10, 100)")
    table = opened.table("t")
    metadata = table.connector.metadata
    insert = metadata.begin_insert(table.handle)
    sink = table.connector.sinks.create_page_sink(insert.target, SinkId())
    values = {"id": [2], "a": [20], "b": [200]}
    arrays = [pa.array(values.get(f.name, [None]), f.type) for f in insert.target.storage]
    sink.append_page(pa.RecordBatch.from_arrays(arrays, schema=insert.target.storage))
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        table.rename_column(old, new)
    metadata.finish_insert(insert, sink.finish())
    assert sorted_query(opened, "SELECT id, a, b FROM t") == [(1, 100, 10), (2, 200, 20)]
    assert sorted_query(opened, "SELECT id FROM t WHERE a = 200") == [(2,)]
    bounds = [f.bounds("id") for f in table.splits().files]
    assert sorted(bounds, key=repr) == [(1, 1), (2, 2)]
