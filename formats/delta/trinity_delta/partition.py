"""Partition values in Delta's log: text by the protocol's "Partition Value Serialization", and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import TableDefinition, parse_type
from trinity.storage import identity_only

__all__ = ["check_partitions", "from_delta_partition", "to_delta_partition"]

_TEXTS: Final = ("string", "char", "varchar", "binary")


def check_partitions(definition: TableDefinition) -> None:
    """Refuse a partitioning that Delta does not have: transforms, and binary columns. Raises NOT_SUPPORTED."""
    identity_only(definition, "Delta")
    for name in definition.partition_columns:
        if parse_type(definition.column(name).type).name == "binary":
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{definition.full_name}' cannot be partitioned by column '{name}' of type binary: Delta keeps "
                "partition values as text. Use a string column.",
            )


def to_delta_partition(partition: Mapping[str, Any], definition: TableDefinition) -> dict[str, str | None]:
    """Return the ``partitionValues`` of a file.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION for an empty string, which Delta reads as NULL.
    """
    return {name: _text(name, value, definition) for name, value in partition.items()}


def _text(name: str, value: Any, definition: TableDefinition) -> str | None:
    if value is None:
        return None
    if value == "":
        raise TrinityError(
            "CONSTRAINT_VIOLATION",
            f"'' (an empty string) in partition column '{name}' of table '{definition.full_name}': Delta reads it as "
            "NULL there. Write another value.",
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime):
        # an instant is written with its zone, or readers would read it in their session's zone
        zone = "Z" if value.tzinfo is not None else ""
        clock = value.astimezone(dt.UTC).replace(tzinfo=None) if zone else value
        return clock.isoformat(sep="T" if zone else " ", timespec="microseconds") + zone
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def from_delta_partition(values: Mapping[str, str | None], definition: TableDefinition) -> dict[str, Any]:
    """Return the partition of a file of any writer, by stored names. Values that are not understood are left out."""
    found = {}
    for column in map(definition.column, definition.partition_columns):
        name = column.stored_name
        if name not in values:
            continue
        try:
            found[name] = _value(values[name], parse_type(column.type).name)
        except (ValueError, ArithmeticError):
            continue
    return found


def _value(text: str | None, kind: str) -> Any:
    if text is None or (text == "" and kind not in _TEXTS):
        return None
    if text == "":  # NULL by the protocol, and '' to Spark: the reader of the file decides
        raise ValueError(text)
    if kind == "boolean":
        return text.lower() == "true"
    if kind in ("tinyint", "smallint", "int", "bigint", "time"):  # TIME is stored as microseconds
        return int(text)
    if kind == "decimal":
        return Decimal(text)
    if kind == "date":
        return dt.date.fromisoformat(text)
    if kind == "timestamp":
        value = dt.datetime.fromisoformat(text)
        if value.tzinfo is None:  # written in some session's zone: the instant is not known
            raise ValueError(text)
        return value
    return dt.datetime.fromisoformat(text) if kind == "timestamp_ntz" else text
