"""Row changes of tables in Parquet files: the part that all formats share (S1-S6, L7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from trinity.errors import TrinityError
from trinity.merge.spec import merge_spec
from trinity.spi import (
    CommitResult,
    ConnectorMetadata,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    RowChangeParadigm,
    TableDefinition,
    TableHandle,
    TransactionId,
    VacuumResult,
    row_change_stamp,
)
from trinity.storage.commits import Change
from trinity.storage.folder_names import no_table
from trinity.storage.position_deletes import DeletesFragment, deletes_of_fragments

ROW_ID = "_trinity_row_id"
"""Name of the row id column of a merge page."""


class RowChanges(ConnectorMetadata):
    """The writes of an adapter that uses the shared sinks: the part that all formats share.

    An adapter adds ``begin_insert``, ``begin_rewrite`` and :meth:`commit`, and for new columns with a DEFAULT
    :meth:`begin_insert_after`.
    """

    def begin_insert_after(self, table: TableHandle, after: TableDefinition) -> InsertTableHandle:
        """Begin what a row change inserts whose commit gives the table another definition, as in ``begin_merge``."""
        raise TrinityError(
            "NOT_SUPPORTED", f"The connector of '{table.full_name}' does not support new columns with a DEFAULT."
        )

    def commit(self, change: Change) -> CommitResult:
        """Commit what a statement has written, by :func:`~trinity.storage.commit_change` in a commit loop."""
        raise NotImplementedError

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self.commit(Change.of_insert(insert, fragments, txn))

    def finish_merge(
        self, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self.commit(Change.of_merge(merge, fragments, txn))

    def finish_replace(self, merge: MergeTableHandle, fragments: Sequence[bytes]) -> CommitResult:
        return self.commit(Change.of_replace(merge, fragments))

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        return self.commit(Change("truncate", table, txn=txn, replace_sidecar=True))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        return self.commit(Change.of_rewrite(rewrite, fragments, replace_sidecar=replace_sidecar))

    def finish_resolve(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], deletes: Sequence[bytes]
    ) -> CommitResult:
        change = Change.of_rewrite(rewrite, fragments, replace_sidecar=True)
        return self.commit(replace(change, operation="resolve", deletes=self.read_deletes(rewrite, deletes)))

    def read_deletes(self, rewrite: RewriteTableHandle, deletes: Sequence[bytes]) -> Sequence[DeletesFragment]:
        """Read the fragments of delete sinks; return one for each data file."""
        return deletes_of_fragments(deletes)

    def check_pinned(self, table: TableHandle) -> None:
        """Check that the name of a handle leads to the table that it is pinned to. Raises TABLE_NOT_FOUND."""
        if table.id is None:
            return
        try:
            self.get_table_definition(table)
        except TrinityError as error:
            if error.code != "TRANSACTION_CONFLICT":
                raise
            raise no_table(table.full_name) from error

    def owns(self, table: TableHandle) -> bool:
        try:
            return super().owns(table)
        except TrinityError as error:
            if error.code in ("BAD_DATA", "NOT_SUPPORTED") and self.left_by_trinity(table):
                return True
            raise

    def left_by_trinity(self, table: TableHandle) -> bool:
        """Return whether what is left of an unreadable table proves that Trinity made it."""
        return False

    def begin_merge(
        self,
        table: TableHandle,
        update_case_columns: Mapping[int, tuple[str, ...]],
        after: TableDefinition | None = None,
    ) -> MergeTableHandle:
        insert = self.begin_insert(table) if after is None else self.begin_insert_after(table, after)
        if insert.target.stamp is not None:
            stamp = row_change_stamp(insert.table.version or 0)
            insert = replace(insert, target=replace(insert.target, stamp=stamp))
        definition = insert.definition
        return MergeTableHandle(
            insert.table,
            insert,
            ROW_ID,
            dict(update_case_columns),
            _paradigm(definition),
            insert_layout=definition.primary_key or definition.partition_columns,
            update_layout=definition.primary_key or ("file",),
            before=None if after is None else self.get_table_definition(insert.table),
        )


def _paradigm(definition: TableDefinition) -> RowChangeParadigm:
    """Return the paradigm of the merge engine; else of the property ``row-change-paradigm``; else delete and insert."""
    if definition.keyed and merge_spec(definition).by_column:
        return RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
    wanted = definition.properties.get("row-change-paradigm")
    return RowChangeParadigm[wanted.upper()] if wanted else RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW


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
