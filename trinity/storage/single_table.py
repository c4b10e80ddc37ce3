"""Metadata of one table outside of any catalog: versions and writes, but no names and no maintenance."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from trinity.errors import TrinityError
from trinity.spi import (
    CommitResult,
    ConnectorMetadata,
    TableDefinition,
    TableHandle,
    TransactionId,
    VacuumResult,
)
from trinity.storage.row_changes import RowChanges

__all__ = ["SingleTable", "not_ours"]


def not_ours(table: str, what: str) -> TrinityError:
    """Return NOT_SUPPORTED, for what Trinity does only to tables that it made."""
    return TrinityError(
        "NOT_SUPPORTED",
        f"Table '{table}' is external: Trinity appends row versions to it, and leaves {what} to the engine that made "
        "it.",
    )


class SingleTable(RowChanges):
    """Base class of the metadata that :meth:`~trinity.spi.Connector.open_external` returns.

    An adapter adds ``get_splits``, ``history``, ``begin_insert``, ``begin_rewrite`` and ``commit``.
    """

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        return ConnectorMetadata.truncate(self, table, txn)

    def list_schemas(self) -> list[str]:
        return []

    def list_tables(self, schema: str) -> list[str]:
        return []

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        return None

    def create_schema(self, schema: str) -> NoReturn:
        raise not_ours(schema, "schemas")

    def drop_schema(self, schema: str) -> NoReturn:
        raise not_ours(schema, "schemas")

    def create_table(self, definition: TableDefinition) -> NoReturn:
        raise not_ours(definition.full_name, "CREATE TABLE")

    def drop_table(self, table: TableHandle) -> NoReturn:
        raise not_ours(table.full_name, "the removal of its files")

    def rename_table(self, table: TableHandle, schema: str, name: str) -> NoReturn:
        raise not_ours(table.full_name, "its name")

    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> NoReturn:
        raise not_ours(table.full_name, "its columns")

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        raise not_ours(table.full_name, "vacuum")
