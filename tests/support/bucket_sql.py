"""Operations of Spark and of this process on tables in a bucket, in every store: merge, change, compact, read."""

from __future__ import annotations

import pyarrow as pa

from tests.support.bucket_lake import FIRST
from trinity import Session

ROWS = "SELECT k, v FROM t ORDER BY k"


def check_keyed(session: Session, fmt: str) -> None:
    """Check row versions, a compaction, a MERGE and an UPDATE of a keyed table, and a read of its past."""
    session.sql("CREATE TABLE t (k INT, ts BIGINT, v STRING, PRIMARY KEY (k)) TBLPROPERTIES ('watermark-key' = 'ts')")
    table = session.table("t")
    table.upsert(pa.table({"k": [1, 2, 3], "ts": [1, 1, 1], "v": ["a", "b", "c"]}))
    table.upsert(session.spark.sql("SELECT 1 AS k, 2L AS ts, 'x' AS v UNION ALL SELECT 2, 0L, 'late'"))
    assert [tuple(row) for row in session.sql(ROWS).collect()] == [(1, "x"), (2, "b"), (3, "c")]
    assert table.compact(full=True).rows == 3
    session.sql(
        "MERGE INTO t USING (SELECT 3 AS k, 9L AS ts UNION ALL SELECT 4, 9L) s ON t.k = s.k "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, ts, v) VALUES (s.k, s.ts, 'new')"
    )
    session.sql("UPDATE t SET v = 'y', ts = 9 WHERE k = 2")
    assert not table.compact("minor").skipped
    assert [tuple(row) for row in session.sql(ROWS).collect()] == [(1, "x"), (2, "y"), (4, "new")]
    assert session.sql(f"SELECT count(*) FROM t VERSION AS OF {FIRST[fmt] + 1}").collect()[0][0] == 3


def check_plain(session: Session, fmt: str) -> None:
    """Check a rewrite of a plain table in partitions, its changes, and the compaction of the one with two files."""
    session.sql("CREATE TABLE t (k INT, v STRING) PARTITIONED BY (v)")
    session.sql("INSERT INTO t VALUES (1, 'a/b'), (2, 'c d'), (3, 'c d')")
    session.sql("DELETE FROM t WHERE k = 2")
    assert [tuple(row) for row in session.sql(ROWS).collect()] == [(1, "a/b"), (3, "c d")]
    changes = session.table("t").changes(FIRST[fmt] + 1)
    assert [(row["k"], row["_change_type"]) for row in changes.collect()] == [(2, "delete")]
    session.sql("INSERT INTO t VALUES (4, 'c d')")
    assert session.table("t").compact(full=True).rows == 2
    assert [row["k"] for row in session.sql(ROWS).collect()] == [1, 3, 4]


def check_resolved(session: Session) -> None:
    """Check a read of a resolved table whose old versions are gone."""
    session.sql("CREATE TABLE t (k INT, v STRING, PRIMARY KEY (k))")
    table = session.table("t")
    table.upsert(pa.table({"k": list(range(100)), "v": ["a"] * 100}))
    table.compact(full=True)
    table.upsert(pa.table({"k": [7], "v": ["b"]}))
    table.compact("resolve")
    table.vacuum("0 seconds")
    found = session.sql("SELECT v, count(*) FROM t GROUP BY v ORDER BY v").collect()
    assert [tuple(row) for row in found] == [("a", 99), ("b", 1)]
