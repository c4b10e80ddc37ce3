"""The choice, by their sizes, of the files that a compaction concatenates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from trinity.spi import DataFile, arrival_order
from trinity.storage.merge_sinks import FILE_BYTES


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
    """Return groups of files to concatenate; a group lies in one partition.

    Partitions that have no more files than their size needs are left out.
    """
    groups: list[list[DataFile]] = []
    for found in by_partition_values(files).values():
        if len(found) > files_for(found):
            groups += [chunk for chunk in _chunks(found) if len(chunk) > 1]
    return groups


def in_groups(files: Sequence[DataFile], count: int) -> list[list[DataFile]]:
    """Split files, in arrival order, into at most ``count`` groups of about the same size."""
    total, before = sum(f.size for f in files) or 1, 0
    groups: dict[int, list[DataFile]] = {}
    for file in sorted(files, key=arrival_order):
        groups.setdefault(before * count // total, []).append(file)
        before += file.size
    return list(groups.values())


def _chunks(files: Sequence[DataFile]) -> list[list[DataFile]]:
    chunks: list[list[DataFile]] = [[]]
    for file in files:
        if chunks[-1] and sum(f.size for f in chunks[-1]) + file.size > FILE_BYTES.value:
            chunks.append([])
        chunks[-1].append(file)
    return chunks
