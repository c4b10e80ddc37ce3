"""The column for stamps in Iceberg's terms: files have it under a fixed field id before the schema has it (L3)."""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa
from pyiceberg.table.update import AssertCurrentSchemaId, TableRequirement, TableUpdate

from trinity.spi import STAMP, InsertTableHandle, MergeTableHandle, RowOrder
from trinity.storage import FIELD_ID, definition_after, order_with
from trinity_iceberg.order import order_of
from trinity_iceberg.schema import STAMP_ID, definition_updates
from trinity_iceberg.snapshot import Snapshots
from trinity_iceberg.state import State

__all__ = ["STAMP_FIELD", "appended_order", "column_updates"]

STAMP_FIELD: Final = pa.field(STAMP, pa.int64(), True, {FIELD_ID: str(STAMP_ID).encode()})


def column_updates(
    state: State, merge: MergeTableHandle
) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    """Return the updates that add the column for stamps and others to the table, and their requirements.

    They are empty unless the row change needs such columns.
    """
    metadata, definition = state.metadata, state.definition
    after = definition_after(merge, definition)
    if after == definition:
        return (), ()
    same = AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id})
    return definition_updates(metadata, definition, after), (same,)


def appended_order(insert: InsertTableHandle, state: State, snapshots: Snapshots) -> RowOrder | None:
    """Return the order of rows to remember with an append; None for a table without stamps."""
    if not state.definition.stamped:
        return None
    live = partial(snapshots.live, insert.table, state)
    return order_with(insert, order_of(state.metadata), state.version, live)
