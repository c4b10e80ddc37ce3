"""The log as the adapter commits to it: by Trinity's own puts, or by Delta's own classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

__all__ = ["DeltaLog", "Transaction"]

Action = Mapping[str, Any]


class Transaction(Protocol):
    """One optimistic transaction on a version of a table. Its methods raise CommitRaced, and TrinityErrors."""

    def read_txn(self, application: str) -> None:
        """Declare a read of an application's record: a concurrent commit of the same one conflicts."""

    def read_whole_table(self) -> None:
        """Declare a read of all rows: any concurrent commit of rows conflicts."""

    def alter(self, change: Mapping[str, Any]) -> None:
        """Commit other values of fields of the ``metaData`` action."""

    def update(self, change: Mapping[str, Any]) -> None:
        """Change fields of the ``metaData`` action with the next commit."""

    def vacuum(self, mark: Action, retained_ms: int) -> None:
        """Commit the note that files of versions older than ``retained_ms`` milliseconds are about to be deleted."""

    def commit(
        self, actions: Sequence[Action], *, operation: str, tags: Mapping[str, str] = MappingProxyType({})
    ) -> int:
        """Commit a change of rows, and return the version.

        Args:
            actions: the change.
            operation: ``Write`` (an append), ``Update``, ``Optimize``, ``Truncate`` or ``Replace``.
            tags: tags for the ``commitInfo``.

        Raises:
            CommitRaced: a concurrent commit conflicts with what this transaction read or removed.
        """

    def restore(self, actions: Sequence[Action], version: int) -> int:
        """Commit the actions that bring back the files of an earlier version, and return the new one.

        Raises:
            CommitRaced: as :meth:`commit`.
        """


class DeltaLog(Protocol):
    """What is done with a table's log without a transaction."""

    @property
    def preferred(self) -> Mapping[str, str]:
        """Settings of a new table that a user may override."""

    def checked_configuration(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return table configuration with Delta's own spelling of its keys.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY for what cannot be set.
        """

    def create(self, name: str, location: str, metadata: Mapping[str, Any]) -> None:
        """Commit the first version, with the given ``metaData`` action."""
