"""Refusals that several options share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trinity.errors import TrinityError
from trinity.merge.options import keeps_versions

if TYPE_CHECKING:
    from trinity.spi import TableDefinition

__all__ = ["not_compacted", "not_own_keyed", "refused"]


def not_compacted(definition: TableDefinition) -> str | None:
    """Return why no writer compacts a table, as the end of a sentence; None where it does."""
    if keeps_versions(definition.properties):
        return "does not go with 'keep-versions', under which nothing is compacted"
    return not_own_keyed(definition)


def not_own_keyed(definition: TableDefinition) -> str | None:
    """Return why an option does not fit a table, as the end of a sentence: it has no key, or is external; else None."""
    if not definition.keyed:
        return "needs a PRIMARY KEY, and the table has none"
    if definition.external:
        return "is for tables that Trinity made: others commit to this one, and its files are not Trinity's"
    return None


def refused(definition: TableDefinition, message: str) -> TrinityError:
    """Return the error INVALID_TABLE_PROPERTY, whose message names the table."""
    return TrinityError("INVALID_TABLE_PROPERTY", f"Table '{definition.full_name}': {message}")
