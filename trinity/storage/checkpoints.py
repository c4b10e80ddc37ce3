"""The commits from one checkpoint of a log to the next."""

from __future__ import annotations

__all__ = ["checkpoint_step"]


def checkpoint_step(interval: int, files: int) -> int:
    """Versions from one checkpoint to the next: the interval, doubled with each doubling of files from 40 intervals on.

    Checkpoints repeat all files. So each commit pays for less than 40 of them, whatever its table holds, and a reader
    opens a commit for every 20 files at most.

    Args:
        interval: the table's, versions.
        files: data files that it has.
    """
    return interval << max(0, (files // (20 * interval)).bit_length() - 1)
