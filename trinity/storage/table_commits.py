"""Commits that write no rows: ALTER, restore and vacuum. They are made by attempts, as commits of rows are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, TypeVar

from trinity.spi import CommitOperation, CommitResult, DataFile, TableDefinition, TableHandle, VacuumResult
from trinity.storage.commits import Attempt, Newest, RowChanges, commit_result
from trinity.storage.entries import Entry
from trinity.storage.orphans import delete_around
from trinity.storage.readable import check_still_there, oldest_needed

_T = TypeVar("_T")
_N = TypeVar("_N", bound=Newest)


class TableAttempt(Attempt[_N]):
    """An attempt at a commit of rows, an ALTER, a restore or a vacuum.

    The steps raise what :meth:`~trinity.storage.Attempt.put` raises.
    """

    @abstractmethod
    def redefine(self, definition: TableDefinition) -> int | None:
        """Put the next version, with another definition; return the number of that version.

        None if that version only prepares the table for the definition; then another attempt must follow.
        """

    @abstractmethod
    def at(self, version: int | None) -> _N:
        """Return a version; None stands for the newest one. Raises INVALID_ARGUMENTS for an unreadable version."""

    @abstractmethod
    def files(self, version: _N) -> Collection[DataFile]:
        """Return the files of a version, sidecar files included."""

    @abstractmethod
    def restore(self, then: _N, definition: TableDefinition) -> int | None:
        """Put the next version, with the rows of an earlier version and a definition, and return its number.

        None if the newest version has these rows and this definition already; then nothing is put.
        """

    @abstractmethod
    def forget(self, oldest: int, older_than_ms: int) -> int | None:
        """Forget the versions before the oldest needed one.

        Args:
            oldest: the oldest version that is needed.
            older_than_ms: the vacuum's limit, milliseconds since the epoch.

        Returns:
            the number of the newest version then; None if there was no version to forget.
        """


class TableCommits(RowChanges):
    """The part of an adapter that commits. The adapter adds its attempts, and the deletion of unneeded files."""

    @abstractmethod
    def run_attempts(
        self, table: TableHandle, use: Callable[[TableAttempt[Any]], _T], known: TableDefinition | None = None
    ) -> _T: ...

    @abstractmethod
    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        """Delete the data files that no readable version needs, and return them."""

    def newest_definition(self, table: TableHandle) -> TableDefinition:
        """Return the definition of the table's newest version; a vacuum begins with it."""
        return self.get_table_definition(replace(table, version=None))

    def oldest_kept(self, table: TableHandle, needed: int) -> int:
        """Return the oldest version that is readable after a vacuum. By default it is the oldest needed version."""
        return needed

    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> None:
        def alter(attempt: TableAttempt[Any]) -> bool:
            if (changed := change(attempt.newest.definition)) == attempt.newest.definition:
                return True
            if (version := attempt.redefine(changed)) is not None:
                attempt.log_commit(CommitOperation.ALTER, CommitResult(version))
            return version is not None

        while not self.run_attempts(table, alter):
            pass

    def restore(
        self, table: TableHandle, change: Callable[[TableDefinition, TableDefinition], TableDefinition]
    ) -> CommitResult:
        def go_back(attempt: TableAttempt[Any]) -> CommitResult:
            newest, then = attempt.newest, attempt.at(table.version)
            definition, files = change(newest.definition, then.definition), attempt.files(then)
            check_still_there(table, files, attempt.files(newest))
            done = commit_result(newest.version, files)  # before the commit: it may read footers
            if (version := attempt.restore(then, definition)) is None:
                return CommitResult(newest.version, skipped=True)
            return attempt.log_commit(CommitOperation.RESTORE, replace(done, version=version))

        return self.run_attempts(table, go_back)

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        definition = self.newest_definition(table)
        table = table.pinned(None, definition.id)
        oldest = oldest_needed(self.history(table), older_than_ms)

        def forget(attempt: TableAttempt[Any]) -> bool:
            if (version := attempt.forget(oldest, older_than_ms)) is not None:
                attempt.log_commit(CommitOperation.VACUUM, CommitResult(version))
            return version is not None

        gone = delete_around(
            lambda: self.delete_unneeded(table, older_than_ms), lambda: self.run_attempts(table, forget, definition)
        )
        return VacuumResult(len(gone), sum(entry.size for entry in gone), self.oldest_kept(table, oldest))
