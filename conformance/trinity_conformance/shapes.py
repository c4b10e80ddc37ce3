"""The shape of a table: columns, key and options, as far as reads depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trinity_conformance.values import Json, Value, decode, sql_literal

__all__ = ["Column", "Shape"]


@dataclass(frozen=True)
class Column:
    """One column: its name, its type text (a key of :data:`~trinity_conformance.values.POOLS`), NOT NULL or not."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Shape:
    """A keyed ``deduplicate`` table, or a plain one.

    Attributes:
        columns: all columns in table order.
        key: primary key columns (K1); empty for a plain table.
        partition_by: partition columns, part of the key (K5).
        watermark: ordering columns (U1); empty: arrival alone (U2).
        alias: True when the watermark is given as ``sequence.field`` (U8).
        descending: True for ``sequence.field.sort-order`` = descending (U8).
        tombstone: the tombstone column (U3).
        tombstone_value: the option ``tombstone-string-key-value``.
        row_kind: the column of ``rowkind.field`` (U8).
        ignore_delete: the option ``ignore-delete`` (D1).
        properties: further table properties, without meaning for a read.
    """

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    watermark: tuple[str, ...] = ()
    alias: bool = False
    descending: bool = False
    tombstone: str | None = None
    tombstone_value: str | None = None
    row_kind: str | None = None
    ignore_delete: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in table order."""
        return tuple(c.name for c in self.columns)

    def type_of(self, name: str) -> str:
        """Type text of a column."""
        return next(c.type for c in self.columns if c.name == name)

    def options(self) -> dict[str, str]:
        """The table properties that say all this."""
        found = dict(self.properties)
        if self.watermark:
            found["sequence.field" if self.alias else "watermark-key"] = ",".join(self.watermark)
        if self.descending:
            found["sequence.field.sort-order"] = "descending"
        if self.tombstone:
            found["tombstone-key"] = self.tombstone
        if self.tombstone_value is not None:
            found["tombstone-string-key-value"] = self.tombstone_value
        if self.row_kind:
            found["rowkind.field"] = self.row_kind
        if self.ignore_delete:
            found["ignore-delete"] = "true"
        return found

    def ddl(self, table: str) -> str:
        """``CREATE TABLE`` in Spark's spelling."""
        lines = [f"{c.name} {c.type.upper()}{'' if c.nullable else ' NOT NULL'}" for c in self.columns]
        lines += [f"PRIMARY KEY ({', '.join(self.key)})"] if self.key else []
        text = f"CREATE TABLE {table} (\n  " + ",\n  ".join(lines) + "\n)"
        if self.partition_by:
            text += f"\nPARTITIONED BY ({', '.join(self.partition_by)})"
        options = ", ".join(f"'{k}' = {sql_literal('string', v)}" for k, v in sorted(self.options().items()))
        return text + (f"\nTBLPROPERTIES ({options})" if options else "")

    def decode_row(self, row: tuple[Json, ...]) -> dict[str, Value]:
        """A row of JSON values as Python values by column name."""
        return {c.name: decode(c.type, v) for c, v in zip(self.columns, row, strict=True)}

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Shape:
        """The shape that :meth:`to_json` wrote."""
        lists = {n: tuple(data[n]) for n in ("key", "partition_by", "watermark")}
        return cls(**{**data, **lists, "columns": tuple(Column(**c) for c in data["columns"])})
