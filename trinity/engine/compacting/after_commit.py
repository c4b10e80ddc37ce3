"""The work after a commit, which all writes call: changelogs and compactions, as the table's properties say.

The commit stands even if this work fails: an error here is logged, and never raised. A full compaction after every N
commits is a part of the write. Other compactions run in threads of this process, one at a time, and the writer does not
wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trinity.calls import as_trinity
from trinity.engine.compacting.health import due_commits, log_share
from trinity.loggers import logger
from trinity.merge.compaction_strength import Strength
from trinity.merge.properties import (
    ChangelogProducer,
    CompactionTrigger,
    changelog_producer,
    commits_between,
    compaction_trigger,
)
from trinity.spi import CommitResult, TableDefinition
from trinity.target import Target

if TYPE_CHECKING:
    from trinity.engine.program import Counts

_log = logger("trinity.compacting")


def after_commit(table: Target, definition: TableDefinition, done: CommitResult | Counts) -> None:
    """Write the changes of a commit of rows (C6), and compact or start a compaction, as the table's properties say.

    ``definition`` is the table's definition that the writer saw. Nothing is due after a skipped commit.
    """
    if done.skipped:
        return
    if changelog_producer(definition.properties) is ChangelogProducer.LOOKUP:
        _try(table, "write the changes", done.version, lambda: _store_changes_of(table, done.version))
    if (every := commits_between(definition.properties)) is not None:
        _try(table, "compact", done.version, lambda: _compact_when_due(table, every))
    if (trigger := compaction_trigger(definition.properties)) is not None:
        _try(table, "compact", done.version, lambda: _begin_when_due(table, trigger, done.version))


def compact_newest(table: Target, strength: Strength, every: int | None = None) -> CommitResult:
    """Compact the newest version, and write its changes. Raises as :meth:`trinity.Table.compact`.

    A minor compaction folds by levels of ``every`` commits; for None it folds the whole log.
    """
    from trinity.engine.compacting.compact import compact

    splits = table.splits()
    done = compact(table.session, table.connector, table.handle, splits, strength, every)
    producer = changelog_producer(splits.definition.properties)
    if not done.skipped and producer is ChangelogProducer.FULL_COMPACTION:
        _try(table, "write the changes", done.version, lambda: _store_changes_of(table, done.version))
    return done


def _store_changes_of(table: Target, version: int) -> None:
    from trinity.engine.feed.steps import makes_another
    from trinity.engine.feed.stored_changes import store_changes

    history = table.connector.metadata.history(table.handle)
    if any(entry.version == version and makes_another(table, history, n) for n, entry in enumerate(history)):
        return  # a commit that replaced the table has no changes (L13)
    changes = store_changes(table, history, [version])[0]
    _log.debug("%s: the changes of version %d are on disk: %d rows.", table.name, version, changes.rows)


def _compact_when_due(table: Target, every: int) -> None:
    from trinity.engine.feed.compaction_intervals import commits_since_full_compaction

    if commits_since_full_compaction(table, every) >= every:
        compact_newest(table, Strength.FULL)


def _try(table: Target, what: str, version: int, work: Callable[[], object]) -> None:
    try:
        work()
    except Exception as error:
        known = as_trinity(error)
        if known.code == "TRANSACTION_CONFLICT":
            _log.info("%s: after version %d another writer was faster: %s", table.name, version, known.message)
        else:
            _log.warning("%s: version %d is committed, but to %s fails: %s", table.name, version, what, known)


THREAD: Final = "trinity compaction of"
"""Beginning of a compaction thread's name; the table's name follows."""

_one: Final = threading.Lock()
_mutex: Final = threading.Lock()
_waiting: Final[set[tuple[str, str]]] = set()
"""Tables with a compaction that runs, or waits for another table's to end: (location, name)."""


def _begin_when_due(table: Target, trigger: CompactionTrigger, version: int) -> None:
    """Begin a compaction once the log is as ``compaction.trigger.*`` says. A process that ends waits for it."""
    if _identity(table) in _waiting:  # so that the table need not be looked at
        return
    splits = table.splits()
    strength = trigger.due(log_share(splits), due_commits(splits, trigger))
    if strength is not None:
        begin(table, lambda: _try(table, "compact", version, lambda: compact_newest(table, strength, trigger.commits)))


def begin(table: Target, compact: Callable[[], object], *, daemon: bool = False) -> bool:
    """Start a compaction and return at once; return False when a compaction of the table already runs or waits.

    ``compact`` raises nothing. A daemon ends with the process.
    """
    with _mutex:
        if _identity(table) in _waiting:
            return False
        _waiting.add(_identity(table))
    try:
        threading.Thread(target=_run, name=f"{THREAD} {table.name}", args=[table, compact], daemon=daemon).start()
    except BaseException:  # the system has no thread left, or the writer is interrupted
        _end(table)
        raise
    return True


def _run(table: Target, compact: Callable[[], object]) -> None:
    try:
        with _one:
            compact()
    finally:
        _end(table)


def _end(table: Target) -> None:
    with _mutex:
        _waiting.discard(_identity(table))


def _identity(table: Target) -> tuple[str, str]:
    return table.handle.location, table.handle.full_name
