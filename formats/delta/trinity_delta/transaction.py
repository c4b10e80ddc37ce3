"""The log as the adapter commits to it: by puts of its own, or by Delta's own classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

__all__ = ["DeltaLog", "Transaction"]

Action = Mapping[str, Any]


class Transaction(Protocol):
    """One optimistic transaction on a version of a table. It raises CommitRaced, and TrinityErrors."""

    def read_txn(self, application: str) -> None:
        """Declares a read of an application's record: a concurrent commit of the same one conflicts."""

    def read_whole_table(self) -> None:
        """Declares a read of all rows: any concurrent commit of rows conflicts."""

    def alter(self, change: Mapping[str, Any]) -> None:
        """Commits other values of fields of the ``metaData`` action."""

    def update(self, change: Mapping[str, Any]) -> None:
        """Gives fields of the ``metaData`` action other values with what is committed next."""

    def vacuum(self, mark: Action, retained_ms: int) -> None:
        """Commits what says that the files of versions older than ``retained_ms`` milliseconds are about to go."""

    def commit(
        self, actions: Sequence[Action], *, operation: str, tags: Mapping[str, str] = MappingProxyType({})
    ) -> int:
        """Commits a change of rows, and returns the version.

        Args:
            actions: the change.
            operation: ``Write`` (an append), ``Update``, ``Optimize`` or ``Truncate``.
            tags: what the ``commitInfo`` says beside it.

        Raises:
            CommitRaced: a concurrent commit conflicts with what this transaction read or removed.
        """


class DeltaLog(Protocol):
    """The logs of tables, as far as they do not begin with a transaction."""

    @property
    def preferred(self) -> Mapping[str, str]:
        """Settings of a new table that a user may give another value."""

    def checked_configuration(self, given: Mapping[str, str]) -> dict[str, str]:
        """Table configuration with Delta's own spelling of its keys.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY for what cannot be set.
        """

    def create(self, name: str, location: str, metadata: Mapping[str, Any]) -> None:
        """Commits the first version, with the ``metaData`` action given."""
