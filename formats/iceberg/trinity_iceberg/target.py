"""The place where sinks write into an Iceberg table."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa

from trinity.spi import STAMP, TableDefinition, TableHandle, WriteTarget
from trinity.storage import FIELD_ID, ObjectStore, stamped, write_target
from trinity_iceberg.partition import check_partitions, spec_updates
from trinity_iceberg.schema import STAMP_ID, evolved_schema, statistics_columns, with_field_ids
from trinity_iceberg.state import State
from trinity_iceberg.storage_schema import storage_schema

__all__ = ["DATA_FOLDER", "target_of"]

DATA_FOLDER: Final = "data"
_STAMPS: Final = pa.field(STAMP, pa.int64(), True, {FIELD_ID: str(STAMP_ID).encode()})
"""The column for stamps: files have it under a fixed field id before the schema has it (L3)."""


def target_of(
    table: TableHandle, state: State, stamp: int, after: TableDefinition | None = None
) -> tuple[TableDefinition, WriteTarget]:
    """Return the definition and the target for the sinks of a statement.

    Args:
        table: the table.
        state: the version that the statement is pinned to.
        stamp: the stamp of rows without one.
        after: the definition that the statement gives to the table; by default that of the version.

    Raises:
        TrinityError: NOT_SUPPORTED for a partitioning that Trinity does not write.
    """
    before, schema, spec = state.definition, state.schema, state.loaded.spec()
    definition = before
    if after is not None:
        schema = evolved_schema(state.metadata, before, after)
        definition = with_field_ids(after, schema)
    if definition.replaced != before.replaced:
        spec, _ = spec_updates(state.metadata, definition, schema)
        gone = (c for c in before.all_columns if c.field_id not in schema.field_ids)
        definition = replace(definition, dropped=tuple(gone))
    check_partitions(table.full_name, definition, spec, schema)
    folder, statistics = ObjectStore(table.location).path(DATA_FOLDER), statistics_columns(definition, schema)
    target = write_target(folder, definition, storage_schema(schema), statistics=statistics)
    return stamped(definition, target, stamp, _STAMPS)
