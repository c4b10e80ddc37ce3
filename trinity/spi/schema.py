"""Tables as Trinity sees them: columns, keys and properties, the same for every format."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from trinity.calls import public
from trinity.errors import TrinityError, nearest
from trinity.hidden import HIDDEN_PREFIX
from trinity.spi.partition import PartitionField, parse_partition
from trinity.spi.types import arrow_type

ROW_KIND = "_trinity_row_kind"
"""INT column: NULL or 0 for an added row, 1 for a row that is kept but not shown, 3 for a deleted row, 4 for a row that
compaction folded. Only in keyed tables without a tombstone key (U6)."""

CARRIED = "_trinity_carried"
"""STRING column: one mark for each column of :attr:`TableDefinition.all_columns`: 0 if the row does not carry the
column; 1 if a row of SQL UPDATE carries it, even as NULL; + if an ingested row carries it. NULL for an ingested row
with every column. Only in ``partial-update`` and ``aggregation`` tables (P1)."""

STAMP = "_trinity_order"
"""BIGINT column: the row's stamp, which places its write among the commits (:mod:`trinity.spi.files`). NULL in rows of
other engines. Files of keyed tables have it in formats whose files other engines may rewrite. The table itself has it
from its first row change on (L3)."""

METADATA_VERSION: Final = 2
"""Version of Trinity's metadata of a table: the definition, the tiers of files, the sidecar, the txn records. It is
raised when an older release would misread a table; a definition has the lowest version that it needs."""

_VERSION_2: Final = ("history_changed", "keeps_last_values")
"""Attributes of a definition without which version 1 would misread the table."""

STORED_NAME = b"trinity.stored_name"
"""Metadata key of a field in a storage schema: the column's name in data files, if it has another one there."""


class NewerMetadata(TrinityError):
    """The refusal of a table whose metadata a newer release of Trinity wrote (L12)."""


@public
@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: as its creator wrote it; matched without regard to case (M10).
        type: as Spark writes it, in lower case: ``bigint``, ``decimal(10,2)``, ``array<int>``.
        nullable: False for NOT NULL.
        default: SQL text of the DEFAULT, or None.
        comment: text that SHOW and DESCRIBE show.
        field_id: unique among all columns that the table has ever had; None for hidden columns.
        stored: its name in data files, for a format that goes by names there: the name when the column was made, or
            another one if that was taken. None when it is ``name``.
        within: ids of the fields within a nested type, parents first, in a format whose other engines may rename, drop
            and add such fields. Not part of :meth:`TableDefinition.to_dict`.
        required: paths of the NOT NULL fields within a nested type, such as ``("a", "element", "b")``: names of fields,
            and ``element``, ``key`` and ``value``. Only other engines declare such fields. Not part of
            :meth:`TableDefinition.to_dict`.
    """

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    field_id: int | None = None
    stored: str | None = None
    within: tuple[int, ...] = field(default=(), compare=False)
    required: tuple[tuple[str, ...], ...] = field(default=(), compare=False)

    @property
    def hidden(self) -> bool:
        """True for Trinity's own columns."""
        return self.name.startswith(HIDDEN_PREFIX)

    @property
    def stored_name(self) -> str:
        """Name of the column in data files."""
        return self.stored or self.name

    @property
    def identity(self) -> object:
        """The identity of the column, which a new name does not change: its field id; without one, its name."""
        return self.name.lower() if self.field_id is None else self.field_id

    def demands_beyond(self, other: Column | None) -> list[str]:
        """Return dotted paths of what is NOT NULL here, the column or fields within, but not in another column."""
        within = [path for path in self.required if other is None or path not in other.required]
        itself = [()] if not self.nullable and (other is None or other.nullable) else []
        return [".".join((self.name, *path)) for path in (*itself, *within)]

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field of this column's values in memory."""
        return pa.field(self.name, arrow_type(self.type), self.nullable)


def stored_field(column: Column, kind: pa.DataType) -> pa.Field:
    """Return a column's field of a storage schema, nullable, for a format that finds columns by names in data files."""
    named = {STORED_NAME: column.stored.encode()} if column.stored else None
    return pa.field(column.name, kind, metadata=named)


def storage_schema(definition: TableDefinition) -> pa.Schema:
    """Return a table's storage schema in a format that has all types of Trinity and goes by names in data files.

    All fields are nullable: the engine checks NOT NULL when it writes.
    """
    return pa.schema([stored_field(column, column.to_arrow().type) for column in definition.columns])


def name_in_file(field: pa.Field) -> str:
    """Return the name that a field of a storage schema has in files."""
    stored = (field.metadata or {}).get(STORED_NAME)
    return str(field.name) if stored is None else str(stored.decode())


def stored_name(storage: pa.Schema, column: str) -> str:
    """Return the name of a column in files of a storage schema; a column that the schema lacks keeps its name."""
    index = storage.get_field_index(column)
    return column if index < 0 else name_in_file(storage.field(index))


def stored_schema(storage: pa.Schema) -> pa.Schema:
    """Return the storage schema with the column names of files."""
    return pa.schema([f.with_name(name_in_file(f)) for f in storage])


def _column_dict(column: Column) -> dict[str, Any]:
    return {name: value for name, value in vars(column).items() if name not in ("within", "required")}


@public
@dataclass(frozen=True)
class Check:
    """A CHECK constraint: no row may be stored for which it is false; NULL passes (M6).

    Attributes:
        name: unique in the table, without regard to case.
        expression: a condition in Spark SQL over the table's columns, by their bare names.
        every: True for a constraint of the format itself, which all stored rows must meet, even deleted ones.
    """

    name: str
    expression: str
    every: bool = False


@dataclass(frozen=True)
class TableDefinition:
    """The definition of a table: columns, key, partitioning, properties and constraints.

    Attributes:
        schema: name of the schema that holds the table.
        name: name of the table.
        columns: all stored columns in table order, hidden ones last.
        primary_key: key columns, empty for a plain table (K1).
        partition_by: partition fields: a column's name, or a transform of a column, such as ``bucket(8, id)``; in a
            keyed table their columns are part of the key (K5).
        properties: table properties, keys in their canonical spelling (lower case, hyphens).
        dropped: columns that were dropped; no new column gets their names in data files.
        checks: CHECK constraints. The engine enforces them; an adapter only stores them.
        replaced: the version in which this table took the place of another one of its name (L13); 0 for the first one.
        history_changed: True once an ALTER has changed whether compaction keeps row versions (E3): some base rows may
            be the fold of versions that were kept, and others not.
        keeps_last_values: True if compaction keeps row versions because of columns of ``last_value`` (E3). False where
            other columns or none need them, and, until an ALTER, in tables of releases that kept none for those.
        external: True for a table that Trinity did not make: it has no hidden columns, and Trinity may not replace its
            files. Not part of :meth:`to_dict`.
        id: unique among the tables that have had this name; empty for a table without one, such as one made before
            there were ids. A format with table ids of its own uses those.
        catalog: name of the catalog, for messages; empty when unknown. Not part of :meth:`to_dict`.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[Column, ...] = ()
    checks: tuple[Check, ...] = ()
    replaced: int = 0
    history_changed: bool = False
    keeps_last_values: bool = False
    external: bool = False
    id: str = field(default="", compare=False)
    catalog: str = field(default="", compare=False)

    @property
    def full_name(self) -> str:
        """``catalog.schema.table``, or ``schema.table`` when the catalog is not known."""
        return f"{self.catalog}.{self.schema}.{self.name}" if self.catalog else f"{self.schema}.{self.name}"

    @cached_property
    def visible(self) -> tuple[Column, ...]:
        """The columns that users see."""
        return tuple(c for c in self.columns if not c.hidden)

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The visible and the dropped columns, in the order in which they were made."""
        return tuple(sorted((*self.visible, *self.dropped), key=lambda c: c.field_id or 0))

    @property
    def stored_names(self) -> dict[str, str]:
        """Name in data files -> name, for columns where these differ."""
        return {c.stored: c.name for c in self.columns if c.stored and c.stored != c.name}

    def demands_beyond(self, other: TableDefinition) -> list[str]:
        """Return the constraints on rows that this definition has and another one lacks, as SQL text for messages.

        They are NOT NULL, the DEFAULT of a new column, and CHECK.
        """
        before = {c.identity: c for c in other.columns}
        filled = [path for c in self.columns for path in c.demands_beyond(before.get(c.identity))]
        checks = [f"CHECK ({check.expression})" for check in self.checks if check not in other.checks]
        given = [f"{c.name} DEFAULT {c.default}" for c in self.columns if c.default and c.identity not in before]
        return [*(f"{name} NOT NULL" for name in filled), *given, *checks]

    @property
    def keyed(self) -> bool:
        """True when the table has a primary key."""
        return bool(self.primary_key)

    @property
    def stamped(self) -> bool:
        """True when the table has the column :data:`STAMP`."""
        return any(c.name == STAMP for c in self.columns)

    def with_stamps(self) -> TableDefinition:
        """Return this definition with the column :data:`STAMP`."""
        return self if self.stamped else self.with_columns([*self.columns, Column(STAMP, "bigint")])

    @property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The partition fields, parsed."""
        names = [c.name for c in self.columns] if self.partition_by else []
        return tuple(parse_partition(text, names) for text in self.partition_by)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that the partition fields use, each once."""
        return tuple(dict.fromkeys(f.column for f in self.partition_fields))

    def column(self, name: str) -> Column:
        """Return the column of a name, in any case.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, with the nearest name.
        """
        return self.columns[self.place(name)]

    def place(self, name: str) -> int:
        """Return the index of a column, by its name in any case, among all columns. Raises as :meth:`column`."""
        found = self._indexes.get(name.lower())
        if found is not None:
            return found
        known = [c.name for c in self.visible]
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"Table '{self.full_name}' has no column '{name}'.{nearest(name, known)} It has: {', '.join(known)}.",
        )

    @cached_property
    def _indexes(self) -> Mapping[str, int]:
        return {column.name.lower(): index for index, column in enumerate(self.columns)}

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema of the table's rows in memory, hidden columns included."""
        return pa.schema([c.to_arrow() for c in self.columns])

    def with_columns(self, columns: Iterable[Column]) -> TableDefinition:
        """Return this definition with other columns."""
        return replace(self, columns=tuple(columns))

    def with_history_of(self, other: TableDefinition) -> TableDefinition:
        """Return this definition with what another one says of the row versions that compaction keeps (E3)."""
        return replace(self, history_changed=other.history_changed, keeps_last_values=other.keeps_last_values)

    def with_properties(self, properties: Mapping[str, str]) -> TableDefinition:
        """Return this definition with other properties."""
        return replace(self, properties=dict(properties))

    def with_key(self, names: Iterable[str]) -> TableDefinition:
        """Return this definition with another key, names in any case. Raises COLUMN_NOT_FOUND."""
        return replace(self, primary_key=tuple(self.column(name).name for name in names))

    def with_new_id(self) -> TableDefinition:
        """Return this definition with a new, unique id."""
        return replace(self, id=uuid.uuid4().hex)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready form, which :meth:`from_dict` reads."""
        found = asdict(replace(self, columns=(), dropped=()))
        columns = {"columns": list(map(_column_dict, self.columns)), "dropped": list(map(_column_dict, self.dropped))}
        optional = [name for name in ("replaced", *_VERSION_2) if not found[name]]
        kept = {name: v for name, v in (found | columns).items() if name not in ("external", "catalog", *optional)}
        return {"metadata_version": self.needed_version, **kept}

    @property
    def needed_version(self) -> int:
        """The lowest version of Trinity's metadata that describes the table.

        It is 2 with :attr:`history_changed` or :attr:`keeps_last_values`.
        """
        return 2 if any(getattr(self, name) for name in _VERSION_2) else 1

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableDefinition:
        """Return the definition that :meth:`to_dict` wrote; visible columns without a field id get one.

        Raises:
            NewerMetadata: when a newer release wrote it, and this one would misread the table (L12).
        """
        version = data.get("metadata_version", 1)  # the first definitions had none
        if version > METADATA_VERSION:
            raise NewerMetadata(
                "NOT_SUPPORTED",
                f"A newer release of Trinity wrote table '{data['schema']}.{data['name']}': its metadata have version "
                f"{version}, and this release reads up to {METADATA_VERSION}. Upgrade trinity-merge here. repair() is "
                "no remedy: it would take back what the newer release wrote.",
            )
        return cls(
            schema=data["schema"],
            name=data["name"],
            columns=tuple(Column(**c) for c in data["columns"]),
            primary_key=tuple(data["primary_key"]),
            partition_by=tuple(data["partition_by"]),
            properties=dict(data["properties"]),
            dropped=tuple(Column(**c) for c in data.get("dropped", ())),
            checks=tuple(Check(**c) for c in data.get("checks", ())),
            replaced=data.get("replaced", 0),
            **{name: data.get(name, False) for name in _VERSION_2},
            id=data.get("id", ""),
        ).numbered()

    def numbered(self) -> TableDefinition:
        """Return this definition with a field id for every visible column; columns that have one keep it."""
        taken = itertools.count(1 + max((c.field_id or 0 for c in (*self.columns, *self.dropped)), default=0))
        return self.with_columns(
            c if c.hidden or c.field_id is not None else replace(c, field_id=next(taken)) for c in self.columns
        )
