"""Spark's views beside Trinity's tables: published ones, and temporary views as sources of statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trinity
from tests.support.refusals import refused
from tests.support.tables import Rows, sorted_query
from trinity import Session


@pytest.fixture
def opened(session: Session, tiered_fmt: str) -> Iterator[Session]:
    """Make a keyed table with a late row; drop the views in Spark afterwards."""
    session.use(tiered_fmt, "default")
    session.sql("CREATE TABLE t (id INT PRIMARY KEY, w INT) TBLPROPERTIES ('watermark-key' = 'w')")
    session.sql("INSERT INTO t VALUES (1, 5), (2, 5)")
    session.sql("INSERT INTO t VALUES (1, 4)")
    yield session
    for name in ("t", "u", "given", "cached"):
        session.spark.catalog.dropTempView(name)


def by_spark(session: Session) -> Rows:
    return sorted(tuple(row) for row in session.spark.table("t").collect())


def test_published_tables(opened: Session) -> None:
    opened.sql("CREATE TABLE u (id INT)")
    assert opened.publish() == ["t", "u"]
    assert by_spark(opened) == [(1, 5), (2, 5)]
    opened.sql("INSERT INTO t VALUES (3, 1)")
    assert by_spark(opened) == [(1, 5), (2, 5)]
    assert sorted_query(opened) == [(1, 5), (2, 5), (3, 1)]
    opened.sql("DELETE FROM t WHERE id = 1")  # the table, and not its view
    opened.sql("DROP TABLE u")
    assert opened.publish() == ["t"]
    assert by_spark(opened) == [(2, 5), (3, 1)]
    assert not opened.spark.catalog.tableExists("u")


def test_views_that_an_earlier_session_has_published(opened: Session, tiered_fmt: str, warehouse: Path) -> None:
    opened.publish()
    with trinity.connect(warehouse, spark=opened.spark) as again:
        again.use(tiered_fmt, "default")
        again.sql("DELETE FROM t WHERE id = 1")
        assert again.publish() == ["t"]
        assert by_spark(again) == [(2, 5)]


def test_views_of_another_warehouse(opened: Session, tiered_fmt: str, tmp_path: Path) -> None:
    opened.publish()
    with trinity.connect(tmp_path, spark=opened.spark) as other:
        other.use(tiered_fmt, "default")
        assert other.publish() == []
        assert by_spark(opened) == [(1, 5), (2, 5)]
        other.sql("CREATE TABLE t (id INT)")
        assert other.sql("SELECT count(*) FROM t").first()[0] == 2  # a temporary view wins over a table
        with refused("INVALID_ARGUMENTS", "'t'", "drop or rename"):
            other.publish()


def test_no_view_of_others_is_replaced(opened: Session) -> None:
    opened.spark.range(7).createOrReplaceTempView("t")
    with refused("INVALID_ARGUMENTS", "'t'", "drop or rename"):
        opened.publish()
    assert opened.spark.table("t").count() == 7
    assert opened.sql("SELECT count(*) FROM t").first()[0] == 7  # a temporary view wins over a table
    assert opened.sql("SELECT count(*) FROM default.t").first()[0] == 2


def test_temporary_views_are_sources_of_statements(opened: Session) -> None:
    opened.spark.createDataFrame([(2, 6), (4, 6)], "id INT, w INT").createOrReplaceTempView("given")
    opened.sql(
        "MERGE INTO t USING given s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert sorted_query(opened) == [(1, 5), (2, 6), (4, 6)]
    opened.sql("CREATE OR REPLACE TEMPORARY VIEW given AS SELECT id + 4 AS id, w + 1 AS w FROM t")
    opened.sql("INSERT INTO t SELECT * FROM given WHERE id = 5")
    assert sorted_query(opened) == [(1, 5), (2, 6), (4, 6), (5, 6)]
    opened.sql("CACHE TABLE cached AS SELECT 5 AS id, 9 AS w")
    opened.sql("UPDATE t SET w = (SELECT max(w) FROM cached) WHERE id IN (SELECT id FROM cached)")
    opened.sql("DELETE FROM t WHERE EXISTS (SELECT 1 FROM given g WHERE g.id = t.id + 4 AND t.id = 1)")
    assert sorted_query(opened) == [(2, 6), (4, 6), (5, 9)]
