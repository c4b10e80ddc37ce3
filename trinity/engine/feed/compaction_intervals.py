"""Compaction intervals: the commits from one full compaction to the next, shown as one by a changelog producer (C6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from trinity.engine.feed.interval import Interval
from trinity.engine.feed.steps import another_table, makes_another
from trinity.errors import TrinityError
from trinity.spi import CommitOperation, DataFile, HistoryEntry, Tier
from trinity.target import Target

_DEFINES: Final = frozenset({CommitOperation.CREATE, CommitOperation.ALTER})
"""Operations that concern columns and properties alone."""


@dataclass(frozen=True)
class CompactionInterval:
    """The commits after a full compaction, or from the table's first commit, up to that of the next full compaction.

    ``before`` is the commit of the full compaction that they follow; None where they are the table's first.
    """

    before: HistoryEntry | None
    entries: Sequence[HistoryEntry]

    @property
    def version(self) -> int:
        """The version of the full compaction at its end."""
        return self.entries[-1].version


def compaction_intervals(target: Target, parts: Iterable[Interval]) -> Iterator[CompactionInterval]:
    """Yield the intervals that end in the given parts of a table's history.

    Raises:
        TrinityError: INVALID_ARGUMENTS for an interval whose beginning was vacuumed; NOT_SUPPORTED where the table was
            replaced in between.
    """
    for part in parts:
        history = part.history
        for index in range(part.first, part.stop):
            if makes_another(target, history, index):
                raise another_table(target, history[index].version)
            if _is_full_compaction(target, history, index):
                first = _beginning(target, history, index)
                if first is None:
                    raise _vacuumed_error(target, history, history[index].version)
                yield CompactionInterval(history[first - 1] if first else None, history[first : index + 1])


def starting_commit(target: Target, history: Sequence[HistoryEntry], version: int) -> HistoryEntry:
    """Return the commit whose rows are the starting state of a feed after ``version``: the last full compaction.

    Before the first full compaction it is the commit that created or replaced the table.

    Raises:
        TrinityError: INVALID_ARGUMENTS where that commit was vacuumed.
    """
    first = _beginning(target, history, sum(entry.version <= version for entry in history))
    if first is None:
        raise _vacuumed_error(target, history, version)
    return history[max(first - 1, 0)]


def _is_full_compaction(target: Target, history: Sequence[HistoryEntry], index: int) -> bool:
    """Return True when a commit folded everything into a new base."""
    if history[index].operation != CommitOperation.COMPACT:
        return False
    after = target.splits(history[index].version)
    if not index:  # the version before was vacuumed: there is nothing to compare
        return _only_base(after.files)
    known = {file.path for file in target.splits(history[index - 1].version).files}
    added = [file for file in after.files if file.path not in known]
    return any(file.tier is Tier.BASE for file in added) or _only_base(after.files)


def commits_since_full_compaction(target: Target, at_most: int) -> int:
    """Return the number of commits that changed rows since the last interval ended; at most ``at_most``."""
    history = target.connector.metadata.history(target.handle)
    found = 0
    for index in range(len(history) - 1, -1, -1):
        if found == at_most or _ends_interval(target, history, index):
            break
        found += not history[index].keeps_rows and history[index].operation not in _DEFINES
    return found


def _ends_interval(target: Target, history: Sequence[HistoryEntry], index: int) -> bool:
    """Return True for a full compaction, and for a commit that replaced the table."""
    return makes_another(target, history, index) or _is_full_compaction(target, history, index)


def _beginning(target: Target, history: Sequence[HistoryEntry], end: int) -> int | None:
    """Return the index of the first commit of the interval that goes on at index ``end``; None if it was vacuumed."""
    for index in range(end - 1, -1, -1):
        if _ends_interval(target, history, index):
            return index + 1
    return 0 if history[0].operation == CommitOperation.CREATE else None


def _vacuumed_error(target: Target, history: Sequence[HistoryEntry], version: int) -> TrinityError:
    return TrinityError(
        "INVALID_ARGUMENTS",
        f"Changes of table '{target.name}' in version {version} are those since the full compaction before it, which "
        f"was vacuumed: the oldest version is {history[0].version}. Ask for changes after a later full compaction.",
    )


def _only_base(files: Sequence[DataFile]) -> bool:
    return all(file.tier is Tier.BASE for file in files)
