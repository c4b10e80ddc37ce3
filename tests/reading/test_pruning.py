"""Files that remain after pruning by the bounds of their columns (L9)."""

from __future__ import annotations

import pytest

from trinity import Column
from trinity.engine.reading.files import prune
from trinity.engine.reading.predicate import Predicate
from trinity.spi import ColumnStats, DataFile, TableDefinition

pytestmark = pytest.mark.inner

TABLE = TableDefinition("default", "t", (Column("k", "int"), Column("b", "boolean")))
FILES = [
    DataFile("/t/0", 1, 10, stats={"k": ColumnStats(0, 9, 0), "b": ColumnStats(False, False, 0)}),
    DataFile("/t/1", 1, 10, stats={"k": ColumnStats(10, 19, 1), "b": ColumnStats(False, True, 0)}),
]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("k = 5", "0"),
        ("5 = k", "0"),
        ("5 <=> k", "0"),
        ("9 < k", "1"),
        ("k BETWEEN 12 AND 30", "1"),
        ("k IN (30, 4)", "0"),
        ("k IN (30, NULL)", "01"),
        ("k <> 5", "01"),
        ("NOT 5 = k", "01"),
        ("k IS NULL", "1"),
        ("k = 5 OR 12 = k", "01"),
        ("b", "1"),
        ("NOT b", "01"),
        ("k = 5 AND b", ""),
        ("k = b", "01"),
    ],
)
def test_files_that_a_predicate_leaves(where: str, left: str) -> None:
    assert "".join(f.path[-1] for f in prune(FILES, Predicate.of(TABLE, where))) == left
