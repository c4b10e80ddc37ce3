"""Clean-up of a log that only Trinity writes: it keeps commits, checkpoints and checksums as long as Delta does."""

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
    """Delete log files of versions that are too old, from the lowest number on.

    Versions not older than ``delta.logRetentionDuration`` at the last midnight (UTC) stay, and so does the newest
    checkpoint before them, from which they are read.

    Args:
        store: the table's folder.
        settings: its configuration.
        names: the names of the objects of its log.
        modified_ms: returns the time of an object, milliseconds since the epoch; called from the oldest commit on.
        now_ms: the present time, milliseconds since the epoch.
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
