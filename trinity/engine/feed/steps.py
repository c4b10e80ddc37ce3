"""The steps of a table from version to version, grouped by how their changes are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Final

from trinity.engine.feed.interval import Interval
from trinity.engine.reading.files import order_is_lost
from trinity.errors import TrinityError
from trinity.spi import CommitOperation, DataFile, Deletes, HistoryEntry, SplitSource, Tier
from trinity.target import Target

FIRST: Final = -1
"""The moment before the first of consecutive appends. All other moments are versions."""


@dataclass(frozen=True)
class Step:
    """One commit that may have changed rows: the versions before and after it."""

    before: SplitSource
    after: SplitSource

    @property
    def version(self) -> int:
        """Number of the version that the commit made."""
        return self.after.version

    @property
    def native(self) -> bool:
        """True when the version needs the format's own reader: its files do not show which rows changed."""
        return self.after.native is not None or self.before.native is not None

    @cached_property
    def added(self) -> list[DataFile]:
        """Files that are new, or whose deleted rows changed."""
        return _files_not_in(self.after.files, self.before.files)

    @cached_property
    def removed(self) -> list[DataFile]:
        """Files of the version before that are gone, or whose deleted rows changed."""
        return _files_not_in(self.before.files, self.after.files)

    @property
    def appends(self) -> bool:
        """True when the commit only added row versions, and their files tell the order of arrival."""
        after, before = self.after, self.before
        if self.native or self.removed or order_is_lost(after):
            return False
        return all(file.tier is Tier.LOG for file in self.added) and _file_states(after.sidecar) == _file_states(
            before.sidecar
        )

    @property
    def ingests(self) -> bool:
        """True when the commit only added rows; one that rewrote files (TRUNCATE, another engine) ingested none."""
        return not self.native and not self.removed and all(file.tier is Tier.LOG for file in self.added)

    def follows(self, other: Step) -> bool:
        """Return True when no files were rewritten between the other step and this one."""
        before, after = self.before, other.after
        same = _file_states(before.files) == _file_states(after.files) and _file_states(before.sidecar) == _file_states(
            after.sidecar
        )
        return same and before.definition.primary_key == after.definition.primary_key


def steps(target: Target, before: HistoryEntry | None, entries: Sequence[HistoryEntry]) -> list[Step]:
    """Return the steps that may have changed rows.

    They begin after the commit ``before``; without one, with an empty table.

    Raises:
        TrinityError: INVALID_ARGUMENTS for the oldest readable version, unless it made the table: the version before it
            is not known; NOT_SUPPORTED where the table was replaced in between, and as :func:`splits_within`.
    """
    if before is None and entries and entries[0].operation != CommitOperation.CREATE:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Changes of table '{target.name}' in version {entries[0].version}, its oldest readable one, are not known "
            "any more; ask for those after it.",
        )
    splits = cache(partial(splits_within, target))
    found = []
    for earlier, later in pairwise([before, *entries]):
        if later is None or later.keeps_rows:
            continue
        after = splits(later.version)
        known = splits(earlier.version) if earlier else replace(after, files=(), sidecar=(), native=None)
        step = _checked(Step(known, after), target)
        if step.added or step.removed or step.native:
            found.append(step)
    return found


def steps_of(target: Target, parts: Iterable[Interval]) -> list[Step]:
    """Return the steps in the parts of a table's history. Raises as :func:`steps`."""
    return [step for part in parts for step in steps(target, part.before, part.entries)]


def splits_within(target: Target, version: int) -> SplitSource:
    """Return the files of a version in a feed. Raises NOT_SUPPORTED where another engine made it unreadable."""
    try:
        return target.splits(version)
    except TrinityError as error:
        if error.code != "NOT_SUPPORTED":
            raise
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Changes of table '{target.name}' are not known across version {version}, which another engine made "
            "unreadable. Mend the table, unless that is done, and ask for changes after the version that did so; a "
            f"stream starts anew with a new checkpoint. Of version {version}: {error.message}",
        ) from error


def makes_another(target: Target, history: Sequence[HistoryEntry], index: int) -> bool:
    """Return True for a commit that replaced the table, or that took back a replacement (L13)."""
    if history[index].operation != CommitOperation.RESTORE or not index:
        return history[index].operation == CommitOperation.REPLACE
    try:
        before, after = (target.splits(entry.version).definition for entry in history[index - 1 : index + 1])
    except TrinityError as error:
        if error.code != "NOT_SUPPORTED":
            raise
        return False  # others made a version unreadable; the restore mends that
    return before.replaced != after.replaced


def another_table(target: Target, version: int) -> TrinityError:
    """Return the error for changes across a version that replaced the table."""
    return TrinityError(
        "NOT_SUPPORTED",
        f"Version {version} made another table of '{target.name}'; ask for changes after it. A stream starts anew with "
        "a new checkpoint; a table that follows is emptied, and follows under another name.",
    )


def _checked(step: Step, target: Target) -> Step:
    before, after = step.before.definition, step.after.definition
    if before.replaced != after.replaced or (before.id and after.id and before.id != after.id):
        raise another_table(target, step.version)
    return step


def runs(found: Iterable[Step]) -> list[list[Step]]:
    """Group steps that are handled together: consecutive appends. Every other step is a group by itself."""
    together: list[list[Step]] = []
    for step in found:
        last = together[-1][-1] if together else None
        if last and last.appends and step.appends and step.follows(last):
            together[-1].append(step)
        else:
            together.append([step])
    return together


def _files_not_in(files: Iterable[DataFile], others: Iterable[DataFile]) -> list[DataFile]:
    known = _file_states(others)
    return [file for file in files if (file.path, file.deletes) not in known]


def _file_states(files: Iterable[DataFile]) -> frozenset[tuple[str, Deletes | None]]:
    return frozenset((file.path, file.deletes) for file in files)
