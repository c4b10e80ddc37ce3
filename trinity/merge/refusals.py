"""Refusals that options have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trinity.errors import TrinityError
from trinity.merge.options import keeps_versions

if TYPE_CHECKING:
    from trinity.spi import TableDefinition

__all__ = ["not_compacted", "not_own_keyed", "refused"]


def not_compacted(definition: TableDefinition) -> str | None:
    """The reason why a writer compacts no such table, as the end of a sentence; None where it does."""
    if keeps_versions(definition.properties):
        return "does not go with 'keep-versions', under which nothing is compacted"
    return not_own_keyed(definition)


def not_own_keyed(definition: TableDefinition) -> str | None:
    """The reason why an option is none of a table without key, or of others', as the end of a sentence."""
    if not definition.keyed:
        return "needs a PRIMARY KEY, and the table has none"
    if definition.external:
        return "is for tables that Trinity made: others commit to this one, and its files are not Trinity's"
    return None


def refused(definition: TableDefinition, message: str) -> TrinityError:
    """INVALID_TABLE_PROPERTY that names the table."""
    return TrinityError("INVALID_TABLE_PROPERTY", f"Table '{definition.full_name}': {message}")
