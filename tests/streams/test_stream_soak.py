"""A long stream, with compactions and vacuums beside it, and a reader that follows the changes (C2, C3, L4)."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.changes import applied, feed, rows_at
from tests.support.streams import SCHEMA, drawn, made_of, write
from trinity import Session

BATCHES = {"parquet": 500, "delta": 100, "iceberg": 100}
ROUNDS = 5
"""Reads of the table between two vacuums."""


@pytest.mark.full
def test_a_reader_follows_a_long_stream(session: Session, tmp_path: Path, fmt: str) -> None:
    session.sql(f"CREATE TABLE {fmt}.default.t ({SCHEMA}, PRIMARY KEY (id)) TBLPROPERTIES ('watermark-key' = 'ts')")
    table = session.table(f"{fmt}.default.t")
    batches = drawn(random.Random(fmt), BATCHES[fmt])
    write(tmp_path / "input", batches)
    files = session.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "input"))
    reached, seen, looks = table.splits().version, Counter[tuple[Any, ...]](), 0
    query = table.stream_writer(files, checkpoint=tmp_path / "checkpoint", available_now=True, compact_every=20)
    active, operations = True, set[str]()
    while active:
        active = query.isActive  # checked first, so that a last round reads the last commits
        newest = table.splits().version
        seen, reached = applied(seen, feed(table, reached, newest)), newest
        operations |= {entry.operation for entry in table.connector.metadata.history(table.handle)}
        looks += 1
        if looks % ROUNDS == 0:
            table.vacuum("1 minute")
    query.awaitTermination()
    assert query.lastProgress.batchId == BATCHES[fmt] - 1  # type: ignore[union-attr]
    assert seen == rows_at(table) == made_of(batches, keyed=True)
    assert looks > ROUNDS
    assert "compact" in operations
