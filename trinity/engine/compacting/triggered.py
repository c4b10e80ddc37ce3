"""Compactions that a writer begins, in threads of this process, one at a time; the writer does not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from trinity.engine.compacting.health import due_commits, log_share
from trinity.engine.target import Target
from trinity.merge.options import CompactionTrigger
from trinity.merge.strength import Strength

__all__ = ["THREAD", "begin", "begin_when_due"]

THREAD: Final = "trinity compaction of"
"""Beginning of a thread's name; the table's follows."""

_one: Final = threading.Lock()
_mutex: Final = threading.Lock()
_waiting: Final[set[tuple[str, str]]] = set()
"""Tables with a compaction that is under way, or waits for that of another table: (location, name)."""


def begin_when_due(table: Target, trigger: CompactionTrigger, compact: Callable[[Strength], None]) -> None:
    """Begin a compaction once the log is as ``compaction.trigger.*`` says, as :func:`begin` does.

    A process that ends waits for it.

    Args:
        table: the table, after a commit.
        trigger: its options.
        compact: compacts by a strength, and raises nothing.
    """
    if _identity(table) in _waiting:  # which spares a look at the table
        return
    splits = table.splits()
    strength = trigger.due(log_share(splits), due_commits(splits, trigger))
    if strength is not None:
        begin(table, lambda: compact(strength))


def begin(table: Target, compact: Callable[[], object], *, daemon: bool = False) -> bool:
    """Begin a compaction and return at once; return False where one of the table has begun, or waits for another's.

    Args:
        table: the table.
        compact: compacts it, and raises nothing.
        daemon: True for a compaction that ends with the process.
    """
    with _mutex:
        if _identity(table) in _waiting:
            return False
        _waiting.add(_identity(table))
    threading.Thread(target=_run, name=f"{THREAD} {table.name}", args=[table, compact], daemon=daemon).start()
    return True


def _run(table: Target, compact: Callable[[], object]) -> None:
    try:
        with _one:
            compact()
    finally:
        with _mutex:
            _waiting.discard(_identity(table))


def _identity(table: Target) -> tuple[str, str]:
    return table.handle.location, table.handle.full_name
