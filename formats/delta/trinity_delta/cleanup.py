"""Cleaning up of a log that Trinity writes by itself: commits, checkpoints and checksums go as old as Delta's do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import takewhile
from typing import Final

from trinity.storage import ObjectStore
from trinity_delta.actions import LOG
from trinity_delta.settings import cleans_up, log_retention_ms

__all__ = ["clean_up"]

_FILE: Final = re.compile(r"(\d{20})\.(json|crc|checkpoint\..+)")
_DAY_MS: Final = timedelta(days=1) // timedelta(milliseconds=1)


def clean_up(
    store: ObjectStore,
    settings: Mapping[str, str],
    names: Iterable[str],
    modified_ms: Callable[[str], int],
    now_ms: int,
) -> None:
    """Deletes what the log says of versions that are too old, from the lowest number on.

    All versions stay that are not older than ``delta.logRetentionDuration`` at the last midnight (UTC), and what they
    are read from: the newest checkpoint that precedes them.

    Args:
        store: the table's folder.
        settings: its configuration.
        names: the names of the objects of its log.
        modified_ms: the time of one that is there, milliseconds since the epoch; asked from the oldest commit on.
        now_ms: the time, milliseconds since the epoch.
    """
    if not cleans_up(settings):
        return
    limit = now_ms - log_retention_ms(settings)
    limit -= limit % _DAY_MS
    found = sorted((int(match[1]), match[2], name) for name in names if (match := _FILE.fullmatch(name)))
    commits = ((number, name) for number, kind, name in found if kind == "json")
    newest = max((n for n, _ in takewhile(lambda commit: modified_ms(commit[1]) <= limit, commits)), default=-1)
    first = max((n for n, kind, _ in found if kind == "checkpoint.parquet" and n <= newest), default=0)
    store.delete(f"{LOG}/{name}" for n, _, name in found if n < first)
