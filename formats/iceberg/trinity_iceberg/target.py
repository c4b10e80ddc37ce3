"""The place where sinks write into an Iceberg table."""

from __future__ import annotations

from typing import Final

from trinity.spi import TableDefinition, TableHandle, WriteTarget
from trinity.storage import ObjectStore, stamped, write_target
from trinity_iceberg.partition import check_partitions
from trinity_iceberg.schema import evolved_schema, statistics_columns, with_field_ids
from trinity_iceberg.stamping import STAMP_FIELD
from trinity_iceberg.state import State
from trinity_iceberg.storage_schema import storage_schema

__all__ = ["DATA_FOLDER", "target_of"]

DATA_FOLDER: Final = "data"


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
    definition, schema = state.definition, state.schema
    if after is not None:
        schema = evolved_schema(state.metadata, definition, after)
        definition = with_field_ids(after, schema)
    check_partitions(table.full_name, definition, state.loaded.spec(), schema)
    folder, statistics = ObjectStore(table.location).path(DATA_FOLDER), statistics_columns(definition, schema)
    target = write_target(folder, definition, storage_schema(schema), statistics=statistics)
    return stamped(definition, target, stamp, STAMP_FIELD)
