"""Cases of a client of Spark Connect whose tables lie in a bucket; tests/spark/test_spark_connect.py runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.bucket_lake import FIRST
from tests.support.refusals import refused
from trinity import Column, Session

PLACE = os.environ["TRINITY_TESTS_PLACE"]
COLUMNS = [Column("id", "string"), Column("ts", "bigint"), Column("amount", "double")]


def settings(fmt: str, folder: Path, place: str, **options: Any) -> dict[str, Any]:
    database = {"uri": f"sqlite:///{folder}/catalog.db"} if fmt == "iceberg" else {}
    return {"lake": {"connector": fmt, "warehouse": place, **database, **options}}


@pytest.fixture(params=FIRST)
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """Yield a session whose Spark is the server in SPARK_REMOTE."""
    fmt = str(request.param)
    with trinity.connect(catalogs=settings(fmt, tmp_path, f"{PLACE}/{fmt}")) as session:
        assert type(session.spark).__module__ == "pyspark.sql.connect.session"
        yield session


def test_tables_in_a_bucket(there: Session) -> None:
    table = there.create_table("t", COLUMNS, primary_key=["id"], properties={"watermark-key": "ts"})
    table.upsert(pa.table({"id": ["a", "b", "c"], "ts": [1, 1, 1], "amount": [1.0, 2.0, 3.0]}))
    assert table.compact(full=True).rows == 3
    table.upsert(there.spark.sql("SELECT 'b' AS id, 2L AS ts, 20.0D AS amount UNION ALL SELECT 'a', 0L, 9.0D"))
    there.sql(
        "MERGE INTO t USING (SELECT 'c' AS id UNION ALL SELECT 'd') s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, ts, amount) VALUES (s.id, 3, 4.0)"
    )
    there.sql("UPDATE t SET amount = amount + 1 WHERE id = 'a'")
    now = [("a", 2.0), ("b", 20.0), ("d", 4.0)]
    for compact in ("minor", "resolve", "full"):
        table.compact(compact)
        found = there.sql("SELECT id, amount FROM t ORDER BY id").collect()
        assert [tuple(row) for row in found] == now, compact
    assert table.vacuum("0 seconds").files > 0
    assert len(table.to_df(where="amount > 3").collect()) == 2


def test_a_server_that_reaches_another_store_is_refused(tmp_path: Path) -> None:
    """The server does not get the client's own options."""
    options = {"storage_options": {"endpoint": os.environ["TRINITY_TESTS_ELSEWHERE"]}}
    with (
        trinity.connect(catalogs=settings("parquet", tmp_path, f"{PLACE}/elsewhere", **options)) as session,
        refused("CONFIGURATION_INVALID", "Python on the server", PLACE, "AWS_ENDPOINT_URL"),
    ):
        _ = session.spark


def test_a_server_whose_spark_reaches_another_store_than_its_python_is_refused(tmp_path: Path) -> None:
    place = os.environ["TRINITY_TESTS_UNREAD"]
    with (
        trinity.connect(catalogs=settings("parquet", tmp_path, place)) as session,
        refused("CONFIGURATION_INVALID", "Spark on the server", place, "hadoop-aws"),
    ):
        _ = session.spark
