"""CREATE OR REPLACE TABLE: a new table, or other rows for one that is defined alike, by one commit."""

from __future__ import annotations

import pytest

from tests.support.refusals import refused
from trinity import Session

REPLACE = "CREATE OR REPLACE TABLE t PARTITIONED BY (word) AS SELECT id, word FROM s"


@pytest.fixture
def lake(local: Session, local_fmt: str) -> Session:
    """A table that a query has made, and that query's source."""
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE s (id INT, word STRING)")
    local.sql("INSERT INTO s VALUES (1, 'a'), (2, 'b')")
    assert local.sql(REPLACE).first().num_inserted_rows == 2
    return local


def rows(session: Session, version: int | None = None) -> list[tuple[int, str]]:
    return sorted((row["id"], row["word"]) for row in session.table("t").to_arrow(version=version).to_pylist())


def test_the_rows_are_replaced_by_one_commit(lake: Session) -> None:
    before, id_before = lake.table("t").version, lake.table("t").definition.id
    lake.sql("TRUNCATE TABLE s")
    lake.sql("INSERT INTO s VALUES (2, 'c')")
    done = lake.sql(REPLACE).first()
    assert (done.num_inserted_rows, done.num_deleted_rows) == (1, 2)
    assert (lake.table("t").version, lake.table("t").definition.id) == (before + 1, id_before)
    assert (rows(lake), rows(lake, before)) == ([(2, "c")], [(1, "a"), (2, "b")])
    lake.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (word) AS SELECT id + 1 AS id, word FROM t")
    assert rows(lake) == [(3, "c")]
    lake.sql("CREATE OR REPLACE TABLE t (id INT, word STRING) PARTITIONED BY (word)")
    assert (rows(lake), lake.table("t").version) == ([], before + 3)


def test_a_table_that_is_defined_otherwise_stays(lake: Session) -> None:
    before = lake.table("t").version
    for text, differing in (
        ("t AS SELECT id, word FROM s", "partitions"),
        ("t PARTITIONED BY (word) AS SELECT id, word, 1 AS more FROM s", "columns"),
        ("t (id BIGINT, word STRING) PARTITIONED BY (word)", "columns"),
        ("t (id INT COMMENT 'x', word STRING) PARTITIONED BY (word)", "columns"),
        ("t (id INT, word STRING, CHECK (id > 0)) PARTITIONED BY (word)", "CHECK"),
        ("t (id INT, word STRING) PARTITIONED BY (word) TBLPROPERTIES ('commit.retry.timeout' = '5 s')", "options"),
        ("t (id INT, word STRING, PRIMARY KEY (id, word)) PARTITIONED BY (word)", "keys"),
    ):
        with refused("NOT_SUPPORTED", f"'{lake.table('t').name}' is there", differing):
            lake.sql(f"CREATE OR REPLACE TABLE {text}")
    with refused("COLUMN_NOT_FOUND", "nothing"):
        lake.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (word) AS SELECT nothing AS id, word FROM s")
    assert (lake.table("t").version, rows(lake)) == (before, [(1, "a"), (2, "b")])


def test_a_keyed_table_can_only_be_emptied(lake: Session) -> None:
    text = "CREATE OR REPLACE TABLE k (id INT, word STRING, PRIMARY KEY (id))"
    lake.sql(text)
    lake.sql("INSERT INTO k VALUES (1, 'a')")
    lake.sql(text)
    assert lake.table("k").count() == 0
    lake.sql("INSERT INTO k VALUES (1, 'a')")
    with refused("NOT_SUPPORTED", "has a key", "TRUNCATE"):
        lake.sql("CREATE OR REPLACE TABLE k WITH ('primary-key' = 'id') AS SELECT id, word FROM s")
    assert lake.table("k").count() == 1


def test_what_or_replace_does_not_go_with(lake: Session) -> None:
    for text, code in (
        ("TABLE IF NOT EXISTS t (id INT)", "SYNTAX_ERROR"),
        ("TABLE t LIKE s", "NOT_SUPPORTED"),
        ("TABLE t LOCATION '/nowhere'", "NOT_SUPPORTED"),
        ("TEMPORARY TABLE t (id INT)", "NOT_SUPPORTED"),
    ):
        with refused(code):
            lake.sql(f"CREATE OR REPLACE {text}")
    assert len(rows(lake)) == 2
