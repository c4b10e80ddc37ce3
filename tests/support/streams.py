"""Batches of rows for streams, the table's rows after them, and streams in a process of their own."""

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
    """Draw batches of rows, some late, some with equal timestamps, no two of them equal."""
    return [
        [(draw.randrange(12), 10 * batch - draw.choice([0, 0, 0, 10, 25]), 10 * batch + n) for n in range(5)]
        for batch in range(count)
    ]


def write(folder: Path, batches: list[list[Row]]) -> None:
    """Write the batches as JSON files to a new folder. Spark reads them in their order."""
    folder.mkdir()
    for number, batch in enumerate(batches):
        rows = (json.dumps(dict(zip(("id", "ts", "n"), row, strict=True))) for row in batch)
        (folder / f"{number}.json").write_text("\n".join(rows))
        os.utime(folder / f"{number}.json", (number, number))


def made_of(batches: list[list[Row]], keyed: bool) -> Counter[Row]:
    """Return the rows of the table that the batches make: all rows of a plain table, else the winners (U1, K4)."""
    rows = [row for batch in batches for row in batch]
    if not keyed:
        return Counter(rows)
    newest: dict[int, Row] = {}
    for row in rows:
        if row[0] not in newest or row[1] >= newest[row[0]][1]:
            newest[row[0]] = row
    return Counter(newest.values())


def is_killed(words: tuple[object, ...], environment: Mapping[str, str]) -> bool:
    """Run ``crash/stream.py`` until it ends. Return whether it was killed."""
    return run_until_killed(_CHILD, words, environment)
