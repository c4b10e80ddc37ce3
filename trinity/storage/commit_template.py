"""The one template of a commit of rows; an adapter gives its steps.

Each attempt goes through the same steps in the same order: the application's transaction is not on record yet (L4); the
new files are there; the table's columns and settings take the change; its rows meet what the table demands (M6); what
the statement has read is as it was (L7, K6, R1). Then the adapter puts the next version, and does what is useful after.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from trinity.merge.options import commit_timeout_s
from trinity.spi import (
    CommitResult,
    DataFile,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    TableDefinition,
    TableHandle,
    Tier,
    TransactionId,
    from_fragments,
    from_merge_fragments,
)
from trinity.storage.commits import commit_loop
from trinity.storage.conflicts import FileChange, check_rewrite, check_scope
from trinity.storage.orphans import check_present
from trinity.storage.position_deletes import DeletesFragment
from trinity.storage.targets import commit_result
from trinity.storage.txns import is_recorded

__all__ = ["Attempt", "Change", "commit_change", "on_newest"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Change:
    """What a statement commits, and what it has seen of the table.

    Attributes:
        operation: ``append``, ``merge``, ``truncate``, ``compact`` or ``resolve``, as ``history()`` shows it.
        table: the handle, pinned to the version that the statement saw.
        files: new files in their order, those of a sidecar among them.
        removed: paths of the files that they replace; of a truncation all that are live.
        txn: the application's transaction.
        insert: what an append or a row change began with.
        merge: what a row change began with.
        rewrite: what a compaction began with.
        deletes: rows that it deletes by position, of files that stay (R1).
        replace_sidecar: whether the files of the present sidecar go.
    """

    operation: str
    table: TableHandle
    files: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    txn: TransactionId | None = None
    insert: InsertTableHandle | None = None
    merge: MergeTableHandle | None = None
    rewrite: RewriteTableHandle | None = None
    deletes: Sequence[DeletesFragment] = ()
    replace_sidecar: bool = False

    @classmethod
    def of_insert(cls, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None) -> Change:
        """Return an append; arguments as of ``finish_insert``."""
        return cls("append", insert.table, from_fragments(list(fragments)), txn=txn, insert=insert)

    @classmethod
    def of_merge(cls, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None) -> Change:
        """Return a row change; arguments as of ``finish_merge``."""
        files, removed = from_merge_fragments(fragments)
        return cls("merge", merge.table, files, removed, txn, insert=merge.insert, merge=merge)

    @classmethod
    def of_rewrite(cls, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool) -> Change:
        """Return a compaction; arguments as of ``finish_rewrite``."""
        files, removed = from_fragments(list(fragments)), frozenset(f.path for f in rewrite.replaced)
        return cls("compact", rewrite.table, files, removed, rewrite=rewrite, replace_sidecar=replace_sidecar)

    @property
    def written(self) -> TableDefinition | None:
        """The table as the statement saw it, under which its files were written; None for a truncation."""
        begun = self.rewrite or self.insert
        return begun.definition if begun else None

    @property
    def rows(self) -> list[DataFile]:
        """The new files that hold rows of the table."""
        return [f for f in self.files if f.tier is not Tier.SIDECAR]

    @property
    def sidecar(self) -> tuple[DataFile, ...]:
        """The new files of a sidecar."""
        return tuple(f for f in self.files if f.tier is Tier.SIDECAR)


class Attempt(ABC):
    """One attempt at a commit: the newest version of a table as it was loaded, and an adapter's steps upon it."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Its number."""

    @property
    @abstractmethod
    def definition(self) -> TableDefinition:
        """The table."""

    @property
    @abstractmethod
    def txns(self) -> Mapping[str, int]:
        """Application -> highest version on record."""

    @abstractmethod
    def live(self) -> Collection[DataFile]:
        """Return the live files."""

    def has_sidecar(self) -> bool:
        """Return True for a version with a sidecar that is not among the live files."""
        return False

    @abstractmethod
    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        """Return what each commit since a statement's version did, compactions left out; None when nobody knows."""

    def check_files(self, change: Change) -> None:
        """Check that the new files are there. Raises TRANSACTION_CONFLICT naming one that is gone."""
        check_present(change.table, change.files, (path for made in change.deletes for path in made.deletes.paths))

    def check_table(self, change: Change) -> None:
        """Check that the table's columns and settings, which others may have changed, take the change.

        Raises:
            TrinityError: NOT_SUPPORTED naming a setting; TRANSACTION_CONFLICT for files that would be misread.
        """

    @abstractmethod
    def put(self, change: Change) -> int:
        """Put the version that a change makes of this one: the commit point.

        Returns:
            its number.

        Raises:
            CommitRaced: another writer's version is there by now.
            TrinityError: for a change that is not committed; COMMIT_STATE_UNKNOWN when nobody can say.
        """

    def after(self, change: Change, version: int) -> None:
        """Do what is useful after a commit and no part of it: nothing that fails here is told."""


def commit_change(attempt: Attempt, change: Change) -> CommitResult:
    """Check a change against the newest version, and commit it upon that.

    Raises:
        CommitRaced: another writer was first.
        TrinityError: TRANSACTION_CONFLICT for what others have done since the statement began; what a step raises.
    """
    if is_recorded(attempt.txns, change.txn):
        return CommitResult(attempt.version, skipped=True)
    told = change.files
    if change.operation == "truncate":
        told = tuple(attempt.live())
        change = replace(change, removed=frozenset(f.path for f in told))
    attempt.check_files(change)
    attempt.check_table(change)
    nothing = not (told or change.txn)
    if nothing and (change.operation == "append" or (change.operation == "truncate" and not attempt.has_sidecar())):
        return CommitResult(attempt.version)
    if change.insert is not None:
        change.insert.check_demands(attempt.definition)
    if change.merge is not None:
        check_scope(change.merge, attempt.changes(change.merge), attempt.live(), change.removed)
    if change.rewrite is not None:
        check_rewrite(change.rewrite, attempt.live(), {made.of for made in change.deletes})
    version = attempt.put(change)
    attempt.after(change, version)
    return commit_result(version, told, change.deletes)


def on_newest(table: TableHandle, known: TableDefinition, attempt: Callable[[TableHandle], _T]) -> _T:
    """Load the newest version, check, commit, until no other writer comes between; as long as the table's options say.

    Args:
        table: the table.
        known: what is known of it: which one it is, and its options.
        attempt: makes one attempt, by the handle of the newest version of that very table.

    Raises:
        TrinityError: as of :func:`~trinity.storage.commit_loop`.
    """
    newest = table.pinned(None, table.id or known.id)
    return commit_loop(table.location, lambda: attempt(newest), commit_timeout_s(known.properties))
