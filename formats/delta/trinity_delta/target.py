"""The place where sinks write into a Delta table."""

from __future__ import annotations

from trinity.spi import TableDefinition, TableHandle, WriteTarget
from trinity.storage import stamped, statistics_columns, write_target
from trinity_delta.external import external_storage
from trinity_delta.schema import storage_schema
from trinity_delta.state import State

__all__ = ["target_of"]


def target_of(
    table: TableHandle, state: State, stamp: int, after: TableDefinition | None = None
) -> tuple[TableDefinition, WriteTarget]:
    """Return the definition and the target for the sinks of a statement.

    Args:
        table: the table.
        state: the version that the statement is pinned to.
        stamp: the stamp of rows without one.
        after: the definition that the statement gives to the table; by default that of the version.
    """
    definition = after or state.definition
    external = definition.external
    storage = external_storage(definition, state.metadata) if external else storage_schema(definition)
    clustering = [c.name for c in definition.columns if c.stored_name in state.clustering]
    statistics = tuple(dict.fromkeys((*statistics_columns(definition), *clustering)))
    target = write_target(table.location, definition, storage, statistics=statistics)
    return stamped(definition, target, stamp)
