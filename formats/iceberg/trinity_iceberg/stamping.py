"""The column for stamps in Iceberg's terms: files have it under a fixed field id before the schema has (L3)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.update import AssertCurrentSchemaId, TableRequirement, TableUpdate

from trinity.spi import STAMP, InsertTableHandle, RowOrder, TableDefinition
from trinity.storage import FIELD_ID, order_with, stamps_missing
from trinity_iceberg.carried import version_of
from trinity_iceberg.order import order_of
from trinity_iceberg.schema import STAMP_ID, definition_updates
from trinity_iceberg.snapshot import Snapshots

__all__ = ["STAMP_FIELD", "appended_order", "stamp_updates"]

STAMP_FIELD: Final = pa.field(STAMP, pa.int64(), True, {FIELD_ID: str(STAMP_ID).encode()})


def stamp_updates(
    table: Table, definition: TableDefinition, insert: InsertTableHandle
) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    """The column for stamps, if a row change needs it and the table lacks it: updates, and what must hold for them."""
    if not stamps_missing(insert, definition):
        return (), ()
    same = AssertCurrentSchemaId.model_validate({"current-schema-id": table.metadata.current_schema_id})
    return definition_updates(table.metadata, definition, definition.with_stamps()), (same,)


def appended_order(
    insert: InsertTableHandle, definition: TableDefinition, table: Table, snapshots: Snapshots
) -> RowOrder | None:
    """The order of rows that is to be remembered with an append; None where nothing is.

    Args:
        insert: the append.
        definition: the table by now.
        table: the same, as it was loaded.
        snapshots: its versions.
    """
    if not definition.stamped:
        return None
    newest = version_of(table.metadata.current_snapshot())
    return order_with(insert, order_of(table.metadata), newest, lambda: snapshots.live(insert.table, table))
