"""The commits from one checkpoint of a log to the next."""

from __future__ import annotations

__all__ = ["checkpoint_step"]


def checkpoint_step(interval: int, files: int) -> int:
    """Return the versions from one checkpoint to the next: the interval, doubled as files double from 40 intervals on.

    A checkpoint lists all files. So each commit pays for less than 40 of them, however many the table has, and a reader
    opens at most one commit for every 20 files.
    """
    return interval << max(0, (files // (20 * interval)).bit_length() - 1)
