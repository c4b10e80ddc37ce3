"""Batches of rows for streams, the rows that a table has of them, and streams in a process of their own."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.support.crash import run_until_killed

_CHILD = Path(__file__).parent.parent / "crash" / "stream.py"

SCHEMA = "id INT, ts BIGINT, n INT"

Row = tuple[int, int, int]
"""id, ts, n."""


def drawn(draw: random.Random, count: int) -> list[list[Row]]:
    """Batches of rows: some are late, some tie, and no two rows are the same."""
    return [
        [(draw.randrange(12), 10 * batch - draw.choice([0, 0, 0, 10, 25]), 10 * batch + n) for n in range(5)]
        for batch in range(count)
    ]


def write(folder: Path, batches: list[list[Row]]) -> None:
    """The batches as JSON files of a new folder, which Spark takes in their order."""
    folder.mkdir()
    for number, batch in enumerate(batches):
        rows = (json.dumps(dict(zip(("id", "ts", "n"), row, strict=True))) for row in batch)
        (folder / f"{number}.json").write_text("\n".join(rows))
        os.utime(folder / f"{number}.json", (number, number))


def made_of(batches: list[list[Row]], keyed: bool) -> Counter[Row]:
    """The table's rows (U1, K4); all rows of a plain table."""
    rows = [row for batch in batches for row in batch]
    if not keyed:
        return Counter(rows)
    newest: dict[int, Row] = {}
    for row in rows:
        if row[0] not in newest or row[1] >= newest[row[0]][1]:
            newest[row[0]] = row
    return Counter(newest.values())


def is_killed(words: tuple[object, ...], environment: Mapping[str, str]) -> bool:
    """Runs ``crash/stream.py`` to its end; True when it was killed."""
    return run_until_killed(_CHILD, words, environment)
