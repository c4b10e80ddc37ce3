"""The order of rows in Delta's terms: who made a file, and what the table remembers (L3)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from trinity.spi import Origin, RowOrder, TableDefinition
from trinity_delta.actions import ORDER_DOMAIN, TAG_TIER, Action, by_kind, domain

__all__ = ["order_actions", "order_after", "order_since", "origin_of"]

_COPYING: Final = ("UPDATE", "DELETE")
"""Delta's operations that add data, but only rows that existed before."""


def origin_of(added: Mapping[str, Any], *, alone: bool) -> Origin:
    """Return the maker of a file.

    Args:
        added: its ``add`` action.
        alone: True when its commit is known, and removed no file.
    """
    if TAG_TIER in (added.get("tags") or {}):
        return Origin.OWN
    return Origin.ADDED if alone else Origin.REWRITTEN


def order_after(order: RowOrder, found: Mapping[str, list[Any]], definition: TableDefinition, version: int) -> RowOrder:
    """Return the order of rows that is remembered after a commit."""
    for entry in found.get("domainMetadata", ()):
        if entry["domain"] == ORDER_DOMAIN and not entry.get("removed"):
            return RowOrder.from_json(entry["configuration"])
    if not definition.stamped or not any(_brings_rows(a, found) for a in found.get("add", ())):
        return order
    return replace(order, strangers=version)


def _brings_rows(added: Mapping[str, Any], found: Mapping[str, list[Any]]) -> bool:
    """Return whether another engine's file may have rows that did not exist before its commit."""
    info = found.get("commitInfo", [{}])[0]
    inserted = (info.get("operationMetrics") or {}).get("numTargetRowsInserted")
    copied = info.get("operation") in _COPYING or (info.get("operation") == "MERGE" and inserted == "0")
    return TAG_TIER not in (added.get("tags") or {}) and bool(added["dataChange"]) and not copied


def order_since(
    order: RowOrder,
    definition: TableDefinition,
    version: int,
    commits: Iterable[tuple[int, Iterable[Mapping[str, Any]] | None]],
) -> RowOrder:
    """Return the order of rows that is remembered at a version that was rebuilt from a checkpoint.

    Args:
        order: the order that Trinity's newest commit has remembered.
        definition: the table's definition.
        version: the version.
        commits: number and actions of the commits since then; None for one whose file is gone.
    """
    for number, actions in commits:
        if actions is None:  # it may have added rows
            return replace(order, strangers=version)
        order = order_after(order, by_kind(actions), definition, number)
    return order


def order_actions(definition: TableDefinition, order: RowOrder, version: int) -> list[Action]:
    """Return the actions by which a commit remembers the order of rows; none for a table without stamps."""
    if not definition.stamped:
        return []
    return [domain(ORDER_DOMAIN, json.loads(replace(order, through=version).to_json()))]
