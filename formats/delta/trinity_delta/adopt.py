"""Changes that other engines made to Trinity's tables: adopted where the log describes them, else refused by name."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import Column, TableDefinition, TableHandle, parse_type
from trinity.storage.foreign import adopted_definition, adopted_properties
from trinity_delta.external import APPEND_ONLY, as_column, constraints
from trinity_delta.protocol import refused
from trinity_delta.schema import (
    DEFAULT,
    DEFINITION,
    FEED,
    MODE,
    PARTITIONED,
    TABLE,
    TEXT,
    definition_digest,
    every_field,
    fields_of,
    is_true,
    name_in_files,
    stored_as,
)

CLUSTERING: Final = "delta.clustering"
"""Domain metadata of Delta: the columns of CLUSTER BY."""


def is_own(actions: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the actions of a version are those of a table that Trinity made."""
    return any(_is_recorded(action["metaData"]) for action in actions if "metaData" in action)


def on_record(table: TableHandle, metadata: Mapping[str, Any]) -> TableDefinition:
    """Return the definition of a table as Trinity left it.

    Raises:
        TrinityError: NOT_SUPPORTED where another engine copied the table, or removed or changed the definition.
    """
    settings = metadata["configuration"]
    text, (sealed, _, digest) = settings.get(DEFINITION), settings.get(TABLE, "").partition(" ")
    if text is None or (digest and digest != definition_digest(text)):
        raise _definition_changed(table, "changed" if text else "taken away")
    try:
        known = TableDefinition.from_dict(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise _definition_changed(table, "changed") from error
    if (sealed or known.id or metadata["id"]) != metadata["id"]:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Delta table '{table.full_name}' is a copy that another engine made of a table of Trinity's (SHALLOW "
            "CLONE, CREATE TABLE LIKE, CONVERT TO DELTA): tombstones and the order of rows, which Trinity keeps beside "
            "the rows, did not come along. Copy rows by CREATE TABLE AS SELECT in Trinity, or copy the table's whole "
            "folder; DROP TABLE takes this one away.",
        )
    return known


def _is_recorded(metadata: Mapping[str, Any]) -> bool:
    """Return whether the table's configuration has a definition of Trinity, or has lost it."""
    settings = metadata.get("configuration", {})
    return DEFINITION in settings or settings.get(TABLE, "").partition(" ")[0] == metadata.get("id")


def _definition_changed(table: TableHandle, what: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"Another engine has {what} the property '{DEFINITION}' of Delta table '{table.full_name}', which says what "
        f"its key and its options are. Put back what Trinity wrote there by session.repair('{table.full_name}'). To "
        f"hand the table over to that engine take '{TABLE}' away, too.",
    )


def adopted(table: TableHandle, known: TableDefinition, metadata: Mapping[str, Any]) -> TableDefinition:
    """Return the definition with the columns, constraints and settings that Delta's log now has.

    A column is identified by its name in data files. A NOT NULL and a DEFAULT of Trinity stay until Trinity drops them,
    unless Delta has a DEFAULT of its own.

    Raises:
        TrinityError: NOT_SUPPORTED naming what cannot be adopted.
    """
    settings = metadata["configuration"]
    if known.stored_names and settings.get(MODE, "none") == "none":
        raise refused(table, "renamed columns, and no column mapping any more")
    by_name = {c.stored_name: c for c in known.columns}
    present = []
    for field in fields_of(metadata):
        column = as_column(table, field, metadata)
        # Trinity's own scan finds fields within a column by their names
        parts = [f["name"] for f in every_field([field]) if f is not field and name_in_files(f) != f["name"]]
        if parts:
            raise refused(table, f"the column '{column.name}', whose part '{parts[0]}' has another name in data files")
        was = by_name.get(column.stored_name)
        present.append((was, _adopted_column(was, column, field, known) if was else column))
    present.sort(key=lambda pair: pair[1].hidden)
    definition = adopted_definition(table.full_name, known, present)
    _check_partitions(table, definition, metadata)
    checks = (*(c for c in known.checks if not c.every), *constraints(metadata))
    properties = adopted_properties(definition.properties, settings, ("delta.",))
    return replace(definition, checks=checks, properties=properties)


def _adopted_column(was: Column, now: Column, field: Mapping[str, Any], known: TableDefinition) -> Column:
    """Return a column of Trinity's as the log now has it. Unless its stored type changed, it keeps its own type."""
    same = TEXT not in field["metadata"] and stored_as(parse_type(was.type)) == stored_as(parse_type(now.type))
    return replace(
        now,
        type=was.type if same else now.type,
        nullable=now.nullable and (was.nullable or was.name in known.primary_key),
        default=field["metadata"].get(DEFAULT, was.default),
        field_id=was.field_id,
    )


def _check_partitions(table: TableHandle, definition: TableDefinition, metadata: Mapping[str, Any]) -> None:
    if tuple(metadata["partitionColumns"]) != definition.partition_columns:
        now = ", ".join(metadata["partitionColumns"]) or "no column"
        raise refused(table, f"a partitioning by {now}, which another engine gave it")
    for key, value in PARTITIONED.items() if definition.partition_by else ():
        if str(metadata["configuration"].get(key)).lower() != value:
            raise refused(table, f"not '{key}' = '{value}', without which files lack their partition columns")


def check_removable(table: TableHandle, metadata: Mapping[str, Any], *, rewrites: bool) -> None:
    """Refuse to remove files with their rows where the table's settings forbid it.

    Args:
        table: the table.
        metadata: its ``metaData`` action.
        rewrites: whether other files get some of the rows: a change feed would show these as changed.

    Raises:
        TrinityError: NOT_SUPPORTED naming the setting.
    """
    settings = metadata["configuration"]
    for key in (APPEND_ONLY, *([FEED] if rewrites else [])):
        if is_true(settings, key):
            raise refused(table, f"'{key}' = 'true', under which Trinity takes no rows from files")


def check_dropped(table: TableHandle, changed: TableDefinition, clustering: Collection[str]) -> None:
    """Refuse to drop a column by which Delta clusters the table. Raises NOT_SUPPORTED."""
    for column in changed.dropped:
        if column.stored_name in clustering:
            raise refused(table, f"a clustering (CLUSTER BY) by column '{column.name}'")


def clustered_by(domain: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of Delta's clustering by their names in data files, from its domain metadata."""
    if domain.get("removed"):
        return ()
    return tuple(path[0] for path in json.loads(domain["configuration"]).get("clusteringColumns", ()))
