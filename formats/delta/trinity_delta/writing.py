"""The place where sinks write into a Delta table, and what a commit of theirs does beside adding files."""

from __future__ import annotations

from trinity.spi import RowOrder, TableDefinition, TableHandle, WriteTarget
from trinity.storage import stamped, statistics_columns, write_target
from trinity_delta.actions import Action
from trinity_delta.external import external_storage
from trinity_delta.order import order_action
from trinity_delta.schema import storage_schema
from trinity_delta.state import State

__all__ = ["order_actions", "target_of"]


def target_of(table: TableHandle, state: State, stamp: int) -> tuple[TableDefinition, WriteTarget]:
    """The definition and the target that sinks are told.

    Args:
        table: the table.
        state: the version that the statement is pinned to.
        stamp: that of rows without one.
    """
    definition = state.definition
    external = definition.external
    storage = external_storage(definition, state.metadata) if external else storage_schema(definition)
    clustering = [c.name for c in definition.columns if c.stored_name in state.clustering]
    statistics = tuple(dict.fromkeys((*statistics_columns(definition), *clustering)))
    target = write_target(table.location, definition, storage, statistics=statistics)
    return stamped(definition, target, stamp)


def order_actions(definition: TableDefinition, order: RowOrder, number: int) -> list[Action]:
    """The actions by which a commit remembers the order of rows, in a table whose rows have stamps."""
    return [order_action(order, number)] if definition.stamped else []
