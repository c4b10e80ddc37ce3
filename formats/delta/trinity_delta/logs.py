"""The logs of a catalog's tables: Trinity's own commits, and on a disk those of Delta's own classes.

On a disk Trinity makes all commits to its own tables, of rows, columns and settings, as long as it supports all their
settings and features, and those of rows to tables that others made. Delta's classes make the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from trinity.errors import TrinityError
from trinity.spi import ConnectorContext, TableDefinition
from trinity.storage import Location
from trinity_delta.jvm import DeltaJvm
from trinity_delta.own_log import OwnLog
from trinity_delta.protocol import are_kept
from trinity_delta.schema import CONSTRAINT, configuration

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
    """The operations on a table's log outside of a transaction."""

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


class Logs:
    """The logs of a catalog's tables, by location. The first use of Delta's own classes starts Spark."""

    def __init__(self, context: ConnectorContext) -> None:
        self._context = context
        self._delta: DeltaJvm | None = None
        self._own = OwnLog()

    def jvm(self) -> DeltaJvm:
        """Return Delta in the JVM."""
        spark = self._context.spark()
        if self._delta is None or self._delta.spark is not spark:
            self._delta = DeltaJvm(spark)
        return self._delta

    def at(self, location: str, settings: Mapping[str, str]) -> DeltaLog:
        """Return the log of a table's folder: Trinity's own, or that of Delta's classes if the settings need these."""
        own = not Location.of(location).on_disk or are_kept(settings)
        return self._own if own else self.jvm()

    def checked(self, location: str, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return a table's configuration, with Delta's spelling of Delta's settings.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY for a setting that cannot be set.
        """
        own = {key: text for key, text in wanted.items() if key.startswith("delta.")}
        return {**wanted, **self.at(location, own).checked_configuration(own)}

    def settings(
        self, location: str, present: Mapping[str, str], changed: TableDefinition, needed: Mapping[str, str]
    ) -> dict[str, str]:
        """Return a table's configuration after a change of its definition, with the settings that this needs.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY for a setting that cannot be set.
        """
        checked = self.checked(location, configuration(changed, needed=needed))
        kept = {f"{CONSTRAINT}{c.name}" for c in changed.checks if c.every}
        gone = {k for k in present if k.startswith(CONSTRAINT)} - kept
        return {k: v for k, v in {**present, **checked}.items() if k not in gone}

    def forget(self, location: str) -> None:
        """Forget what a running Spark knows of a table, which was dropped or is about to be made."""
        if Location.of(location).on_disk and self._context.spark_runs():
            with contextlib.suppress(TrinityError):  # a Spark without Delta remembers nothing
                self.jvm().forget(location)
