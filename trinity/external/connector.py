"""The connector of a registered table: its format's, with the registered key and properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trinity.external.registry import Registration
from trinity.spi import (
    CommitResult,
    Connector,
    ConnectorMetadata,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    TransactionId,
)
from trinity.storage import SingleTable

__all__ = ["ExternalConnector"]


class _Metadata(SingleTable):
    """The adapter's metadata of the table, with the registered key and properties."""

    def __init__(self, inner: ConnectorMetadata, registration: Registration) -> None:
        self._inner = inner
        self._registration = registration

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        return self._registration.define(self._inner.get_table_definition(table))

    def get_splits(self, table: TableHandle) -> SplitSource:
        splits = self._inner.get_splits(table)
        return replace(splits, definition=self._registration.define(splits.definition))

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return self._inner.history(table)

    def since_checkpoint(self, table: TableHandle) -> int | None:
        return self._inner.since_checkpoint(table)

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        insert = self._inner.begin_insert(table)
        return replace(insert, definition=self._registration.define(insert.definition))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self._inner.finish_insert(insert, fragments, txn)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._inner.recorded_txn(table, application)

    def finish_merge(
        self, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self._inner.finish_merge(merge, fragments, txn)

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        return self._inner.begin_rewrite(table, replaced)

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        return self._inner.finish_rewrite(rewrite, fragments, replace_sidecar=replace_sidecar)


class ExternalConnector(Connector):
    """The connector of one registered table."""

    def __init__(self, inner: Connector, table: TableHandle, registration: Registration) -> None:
        opened = inner.open_external(table) if registration.location is not None else inner.metadata
        super().__init__(_Metadata(opened, registration), inner.sinks)
