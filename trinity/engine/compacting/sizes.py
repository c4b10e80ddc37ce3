"""The choice, by their sizes, of the files that a compaction concatenates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from trinity.spi import DataFile, arrival_order
from trinity.storage.merge_sinks import FILE_BYTES

_GOOD_SHARE: Final = 0.75
"""Share of the target size from which a file is not rewritten for more rows."""


def files_for(files: Iterable[DataFile]) -> int:
    """Return how many files of the target size hold the bytes of ``files``."""
    return max(1, math.ceil(sum(f.size for f in files) / FILE_BYTES.value))


def by_partition_values(files: Sequence[DataFile]) -> dict[frozenset[tuple[str, Any]], list[DataFile]]:
    """Return the files of each partition, in arrival order."""
    found: defaultdict[frozenset[tuple[str, Any]], list[DataFile]] = defaultdict(list)
    for file in sorted(files, key=arrival_order):
        found[frozenset(file.partition.items())].append(file)
    return found


def crowded(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """Return groups of small files to concatenate, each in one partition and of the target size at most.

    A small file that fits to no other is left out, and so are files of a good size.
    """
    small = [f for f in files if f.size < FILE_BYTES.value * _GOOD_SHARE]
    chunks = [chunk for found in by_partition_values(small).values() for chunk in _chunks(found)]
    return [chunk for chunk in chunks if len(chunk) > 1]


def _chunks(files: Sequence[DataFile]) -> list[list[DataFile]]:
    chunks: list[list[DataFile]] = [[]]
    for file in files:
        if chunks[-1] and sum(f.size for f in chunks[-1]) + file.size > FILE_BYTES.value:
            chunks.append([])
        chunks[-1].append(file)
    return chunks
