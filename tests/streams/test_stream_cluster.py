"""Streams from tables where executors are processes of their own: the installed data source is found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.changes import feed, rows_at
from tests.support.streams import SCHEMA, is_killed
from trinity import Session, Table

CLUSTER = {"STREAM_MASTER": "local-cluster[2,1,1024]"}


def put_hundred(table: Table, n: int) -> None:
    ids, whole = pa.array(range(100), pa.int32()), pa.int32()
    table.upsert(pa.table({"id": ids, "ts": pa.repeat(n, 100), "n": pa.repeat(pa.scalar(n, whole), 100)}))
    table.delete([n])


@pytest.mark.full
def test_executors_read_rows_and_changes(session: Session, warehouse: Path, tmp_path: Path, fmt: str) -> None:
    session.sql(f"CREATE TABLE {fmt}.default.t ({SCHEMA}, PRIMARY KEY (id)) TBLPROPERTIES ('watermark-key' = 'ts')")
    session.sql(f"CREATE TABLE {fmt}.default.copy (id INT, ts BIGINT, n INT, kind STRING, at BIGINT)")
    source, copy = session.table(f"{fmt}.default.t"), session.table(f"{fmt}.default.copy")
    words = (warehouse, copy.name, tmp_path / "checkpoint", "changes", source.name)
    put_hundred(source, 1)
    begun = source.splits().version
    assert not is_killed(words, CLUSTER)
    put_hundred(source, 2)
    assert not is_killed(words, CLUSTER)
    wanted = feed(source, begun)
    wanted.update(("insert", begun, row) for row in rows_at(source, begun).elements())
    found = copy.to_df().collect()
    assert Counter((row.kind, row["at"], (row.id, row.ts, row.n)) for row in found) == wanted
