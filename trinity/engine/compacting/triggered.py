"""Compaction by the writer itself, once the log is as ``compaction.trigger.*`` says: beside it, and one at a time.

A process that ends waits for a compaction that it began: the thread is none of those that Python stops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from trinity.engine.compacting.health import due_commits, log_share
from trinity.engine.target import Target
from trinity.merge.strength import Strength
from trinity.merge.triggers import CompactionTrigger

__all__ = ["THREAD", "begin_when_due"]

THREAD: Final = "trinity compaction of"
"""Beginning of a thread's name; the table's follows."""

_one: Final = threading.Lock()
_mutex: Final = threading.Lock()
_waiting: Final[set[tuple[str, str]]] = set()
"""Tables with a compaction that is under way, or waits for that of another table: (location, name)."""


def begin_when_due(table: Target, trigger: CompactionTrigger, compact: Callable[[Strength], None]) -> None:
    """Begin a compaction when one is due and none of the table has begun; returns at once.

    Args:
        table: the table, after a commit.
        trigger: its options.
        compact: compacts by a strength, and raises nothing.
    """
    if _identity(table) in _waiting:  # which spares a look at the table
        return
    splits = table.splits()
    strength = trigger.due(log_share(splits), due_commits(splits, trigger))
    if strength is None or not _claimed(table):
        return
    threading.Thread(target=_run, name=f"{THREAD} {table.name}", args=[table, strength, compact]).start()


def _run(table: Target, strength: Strength, compact: Callable[[Strength], None]) -> None:
    try:
        with _one:
            compact(strength)
    finally:
        with _mutex:
            _waiting.discard(_identity(table))


def _claimed(table: Target) -> bool:
    with _mutex:
        if _identity(table) in _waiting:
            return False
        _waiting.add(_identity(table))
        return True


def _identity(table: Target) -> tuple[str, str]:
    return table.handle.location, table.handle.full_name
