"""Cleaning up of a log in an object store: commits, checkpoints and checksums that are old enough go, as Delta's do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from trinity.storage import Entry, ObjectStore
from trinity_delta.actions import LOG
from trinity_delta.settings import cleans_up, log_retention_ms

__all__ = ["clean_up"]

_FILE: Final = re.compile(rf"{LOG}/(\d{{20}})\.(json|crc|checkpoint\.parquet)")
_DAY_MS: Final = timedelta(days=1) // timedelta(milliseconds=1)


def clean_up(store: ObjectStore, settings: Mapping[str, str], log: Sequence[Entry], now_ms: int) -> None:
    """Deletes what the log says of versions that are too old, from the lowest number on.

    All versions stay that are not older than ``delta.logRetentionDuration`` at the last midnight (UTC), and what they
    are read from: the newest checkpoint that precedes them.

    Args:
        store: the table's folder.
        settings: its configuration.
        log: the objects of its log.
        now_ms: the time, milliseconds since the epoch.
    """
    if not cleans_up(settings):
        return
    limit = now_ms - log_retention_ms(settings)
    limit -= limit % _DAY_MS
    found = [(int(match[1]), match[2], entry) for entry in log if (match := _FILE.fullmatch(entry.path))]
    newest = max((n for n, kind, entry in found if kind == "json" and entry.modified_ms <= limit), default=-1)
    first = max((n for n, kind, _ in found if kind.startswith("checkpoint") and n <= newest), default=0)
    store.delete(entry.path for n, _, entry in sorted(found, key=lambda one: one[0]) if n < first)
