"""C3: the change feed skips a commit that its adapter says kept the rows, and no other, whatever the format's word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from trinity import Column, Table
from trinity.memory import MemoryFormat, MemoryMetadata
from trinity.spi import CommitOperation, Connector, ConnectorContext, HistoryEntry, TableHandle

ROWS = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("v", pa.int32())])


def put(table: Table, *rows: tuple[int, int]) -> None:
    table.upsert(pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], ROWS))


def history_and_changes(
    tmp_path: Path, word: str, listed: CommitOperation, *, same_rows: bool = False
) -> tuple[list[str], list[tuple[int, int, int, str]]]:
    """Return a history and the changes after the first append, of an adapter with a word of its own for a commit."""

    class Metadata(MemoryMetadata):
        def history(self, table: TableHandle) -> list[HistoryEntry]:
            found = super().history(table)
            return [replace(e, operation=word, same_rows=same_rows) if e.operation == listed else e for e in found]

    class WithAWord(MemoryFormat):
        def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
            connector = super().create(catalog, options, context)
            connector.metadata = Metadata(catalog, str(tmp_path))
            return connector

    with trinity.connect(catalogs={"c": {"connector": WithAWord}}, catalog="c", engine="local") as session:
        columns = [Column("k", "int", nullable=False), Column("v", "int")]
        table = session.create_table("t", columns, primary_key=["k"])
        put(table, (1, 1))
        put(table, (1, 2), (2, 2))
        table.compact(full=True)
        changes = table.changes(1).to_arrow().to_pylist()
        operations = table.history().to_arrow().column("operation").to_pylist()
    return operations, sorted((c["_commit_version"], c["k"], c["v"], c["_change_type"]) for c in changes)


CHANGES = [(2, 1, 1, "update_preimage"), (2, 1, 2, "update_postimage"), (2, 2, 2, "insert")]


@pytest.mark.parametrize("word", ["replace", "optimize", "vacuum end", "rewrite"])
def test_the_changes_of_a_commit_with_an_unknown_word_are_shown(word: str, tmp_path: Path) -> None:
    found = history_and_changes(tmp_path, word, CommitOperation.APPEND)
    assert found == (["compact", word, word, "create"], CHANGES)


def test_a_commit_that_is_said_to_keep_the_rows_is_skipped(tmp_path: Path) -> None:
    operations, changes = history_and_changes(tmp_path, "rewrite", CommitOperation.APPEND, same_rows=True)
    assert (operations, changes) == (["compact", "rewrite", "rewrite", "create"], [])


def test_a_compaction_with_an_unknown_word_has_no_changes_either(tmp_path: Path) -> None:
    found = history_and_changes(tmp_path, "rewrite", CommitOperation.COMPACT)
    assert found == (["rewrite", "append", "append", "create"], CHANGES)
