"""Definitions of tables that others made: their own properties may name key and options (design §3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from trinity.errors import TrinityError
from trinity.merge import MergeSpec, canonical_properties
from trinity.spi import Column, TableDefinition

__all__ = ["foreign_definition", "split_key"]

_PREFIX: Final = "trinity."
_KEY: Final = ("primary-key", "primary_key")


def split_key(properties: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """(key columns of the property ``primary-key``, the other properties)."""
    texts = [v for k, v in properties.items() if k.lower() in _KEY]
    names = [name.strip() for name in ",".join(texts).split(",") if name.strip()]
    return tuple(names), {k: v for k, v in properties.items() if k.lower() not in _KEY}


def foreign_definition(
    name: tuple[str, str],
    columns: Sequence[Column],
    partition_by: Sequence[str],
    properties: Mapping[str, str],
    own_prefixes: tuple[str, ...] = (),
    identifier: Sequence[str] = (),
) -> TableDefinition:
    """The definition of a table that another engine made.

    Args:
        name: (schema, table) by which the session knows it.
        columns: its columns.
        partition_by: its partition fields.
        properties: its properties. ``trinity.primary-key``, or ``primary-key``, names its key, and other options of
            keyed tables are then read beside it, with or without ``trinity.`` before them.
        own_prefixes: prefixes of the format's own properties, which are shown as they are.
        identifier: its key where no property names one.

    Raises:
        TrinityError: what a CREATE TABLE with this key and these options would raise.
    """
    own = {k: v for k, v in properties.items() if k.startswith(own_prefixes or ("\0",))}
    bare = {k.removeprefix(_PREFIX): v for k, v in properties.items() if k not in own}
    key, options = split_key(bare)
    draft = TableDefinition(*name, tuple(columns), key or tuple(identifier), tuple(partition_by), external=True)
    if not draft.keyed:
        return draft.with_properties({**own, **_known({k: v for k, v in options.items() if k == "comment"})})
    keyed = draft.with_key(draft.primary_key).with_properties({**own, **_known(options)})
    MergeSpec.of(keyed)
    return keyed


def _known(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are Trinity's; a table of others may have any properties."""
    found: dict[str, str] = {}
    for key, value in options.items():
        try:
            found |= canonical_properties({key: value})
        except TrinityError:
            continue
    return found
