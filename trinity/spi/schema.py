"""Tables as Trinity sees them: columns, keys and properties, the same for every format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from trinity.errors import TrinityError, nearest
from trinity.spi.partition import PartitionField, parse_partition
from trinity.spi.types import arrow_type

__all__ = ["CARRIED", "HIDDEN_PREFIX", "ROW_KIND", "Column", "TableDefinition"]

HIDDEN_PREFIX = "_trinity_"
"""Columns of this prefix are stored but never shown (design §4)."""

ROW_KIND = "_trinity_row_kind"
"""INT: NULL or 0 an added row, 3 a deleted one. Only in keyed tables without a tombstone key (U6)."""

CARRIED = "_trinity_carried"
"""STRING: a mark for each column in table order: 0 not carried; 1 carried, also when it is NULL; + carried as an
ingested row carries it. NULL for an ingested row with every column. Only in ``partial-update`` and ``aggregation``
tables (P1)."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: as its creator wrote it; matched without regard to case (M10).
        type: a type text of :mod:`trinity.spi.types`.
        nullable: False for NOT NULL.
        default: SQL text of the DEFAULT, or None.
        comment: what SHOW and DESCRIBE tell about it.
    """

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None

    @property
    def hidden(self) -> bool:
        """True for Trinity's own columns."""
        return self.name.startswith(HIDDEN_PREFIX)

    def to_arrow(self) -> pa.Field:
        """The Arrow field of this column's values in memory."""
        return pa.field(self.name, arrow_type(self.type), self.nullable)


@dataclass(frozen=True)
class TableDefinition:
    """What a table is, apart from its rows.

    Attributes:
        schema: name of the schema that holds the table.
        name: name of the table.
        columns: all stored columns in table order, hidden ones last.
        primary_key: key columns, empty for a plain table (K1).
        partition_by: partition fields: a column's name, or a transform of one such as ``bucket(8, id)``; in a keyed
            table their columns are part of the key (K5).
        properties: table properties, keys in their canonical spelling (lower case, hyphens).
        external: True for a table that Trinity did not make: it has no hidden columns, and its files are not Trinity's
            to replace. Not part of :meth:`to_dict`.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    external: bool = False

    @property
    def full_name(self) -> str:
        """``schema.table``."""
        return f"{self.schema}.{self.name}"

    @property
    def visible(self) -> tuple[Column, ...]:
        """The columns that users see."""
        return tuple(c for c in self.columns if not c.hidden)

    @property
    def keyed(self) -> bool:
        """True when the table has a primary key."""
        return bool(self.primary_key)

    @property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The partition fields, taken apart."""
        names = [c.name for c in self.columns] if self.partition_by else []
        return tuple(parse_partition(text, names) for text in self.partition_by)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that the partitioning is made of, each once."""
        return tuple(dict.fromkeys(f.column for f in self.partition_fields))

    def column(self, name: str) -> Column:
        """The column of that name, any case.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, with the nearest name.
        """
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        known = [c.name for c in self.visible]
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"Table '{self.full_name}' has no column '{name}'.{nearest(name, known)} It has: {', '.join(known)}.",
        )

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema of the table's rows in memory, hidden columns included."""
        return pa.schema([c.to_arrow() for c in self.columns])

    def with_columns(self, columns: Iterable[Column]) -> TableDefinition:
        """This definition with other columns."""
        return replace(self, columns=tuple(columns))

    def with_properties(self, properties: Mapping[str, str]) -> TableDefinition:
        """This definition with other properties."""
        return replace(self, properties=dict(properties))

    def with_key(self, names: Iterable[str]) -> TableDefinition:
        """This definition with another key, names in any case. Raises COLUMN_NOT_FOUND."""
        return replace(self, primary_key=tuple(self.column(name).name for name in names))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form, read back by :meth:`from_dict`."""
        return {name: value for name, value in asdict(self).items() if name != "external"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableDefinition:
        """The definition that :meth:`to_dict` wrote."""
        return cls(
            schema=data["schema"],
            name=data["name"],
            columns=tuple(Column(**c) for c in data["columns"]),
            primary_key=tuple(data["primary_key"]),
            partition_by=tuple(data["partition_by"]),
            properties=dict(data["properties"]),
        )
