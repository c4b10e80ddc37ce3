"""The shape of a table: columns, key, merge engine and options, as far as reads depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from trinity_conformance.model.values import Json, Value, decode, sql_literal

DEDUPLICATE: Final = "deduplicate"
PRODUCER: Final = "changelog-producer"


@dataclass(frozen=True)
class Column:
    """One column: its name, its type text (of :data:`~trinity_conformance.model.values.POOLS`), NOT NULL or not."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Group:
    """A sequence group (G1).

    Attributes:
        sequence: its sequence columns, compared left to right.
        columns: the columns that it protects.
    """

    sequence: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """A keyed table, or a plain one.

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
        engine: the merge engine.
        groups: the sequence groups (G1).
        functions: column -> aggregate function (A1).
        default_function: ``fields.default-aggregate-function``.
        function_options: column -> option, as ``list-agg-delimiter`` -> value.
        remove_on_delete: ``partial-update.`` or ``aggregation.remove-record-on-delete`` (D3, E1).
        remove_on_groups: sequence columns of ``partial-update.remove-record-on-sequence-group`` (D5).
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
    engine: str = DEDUPLICATE
    groups: tuple[Group, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)
    default_function: str | None = None
    function_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    remove_on_delete: bool = False
    remove_on_groups: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in table order."""
        return tuple(c.name for c in self.columns)

    @property
    def producer(self) -> str:
        """Value of ``changelog-producer``, which decides what the change feed shows (C6)."""
        return self.properties.get(PRODUCER, "none")

    def type_of(self, name: str) -> str:
        """Return the type text of a column."""
        return next(c.type for c in self.columns if c.name == name)

    def group_of(self, name: str) -> Group | None:
        """Return the group that protects a column."""
        return next((g for g in self.groups if name in g.columns), None)

    def function_of(self, name: str) -> str | None:
        """Return the aggregate function of a column; None where it has none (A1, A5, G7, E1)."""
        ordering = {*self.watermark, *(s for g in self.groups for s in g.sequence)}
        if name in (*self.key, *ordering, self.row_kind):
            return None
        if self.engine == "aggregation":
            return self.functions.get(name, self.default_function or "last_non_null_value")
        if self.group_of(name) is None:  # outside groups only last_non_null_value is accepted, as P1 says anyway
            return None
        return self.functions.get(name, self.default_function)

    def without_races(self) -> Shape:
        """Return a table on which no commit is retried for a race: one process writes, so there is none."""
        return replace(self, properties={**self.properties, "commit.retry.timeout": "0 seconds"})

    def options(self) -> dict[str, str]:
        """Return the table properties of this shape."""
        found = {**self.properties, **self._engine_options()}
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

    def _engine_options(self) -> dict[str, str]:
        found = {} if self.engine == DEDUPLICATE else {"merge-engine": self.engine}
        found |= {f"fields.{','.join(g.sequence)}.sequence-group": ",".join(g.columns) for g in self.groups}
        found |= {f"fields.{c}.aggregate-function": name for c, name in self.functions.items()}
        found |= {f"fields.{c}.{o}": value for c, given in self.function_options.items() for o, value in given.items()}
        if self.default_function:
            found["fields.default-aggregate-function"] = self.default_function
        if self.remove_on_delete:
            found[f"{self.engine}.remove-record-on-delete"] = "true"
        if self.remove_on_groups:
            found["partial-update.remove-record-on-sequence-group"] = ",".join(self.remove_on_groups)
        return found

    def ddl(self, table: str) -> str:
        """Return ``CREATE TABLE`` in Spark's syntax."""
        lines = [f"{c.name} {_spelled(c.type)}{'' if c.nullable else ' NOT NULL'}" for c in self.columns]
        lines += [f"PRIMARY KEY ({', '.join(self.key)})"] if self.key else []
        text = f"CREATE TABLE {table} (\n  " + ",\n  ".join(lines) + "\n)"
        if self.partition_by:
            text += f"\nPARTITIONED BY ({', '.join(self.partition_by)})"
        options = ", ".join(f"'{k}' = {sql_literal('string', v)}" for k, v in sorted(self.options().items()))
        return text + (f"\nTBLPROPERTIES ({options})" if options else "")

    def decode_row(self, row: tuple[Json, ...], names: tuple[str, ...] | None = None) -> dict[str, Value]:
        """Return a row of JSON values as Python values by column name.

        Args:
            row: the values.
            names: the columns of the values, in table order; all by default. The others read NULL.
        """
        given = dict(zip(names or self.names, row, strict=True))
        return {c.name: decode(c.type, given.get(c.name)) for c in self.columns}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Shape:
        """Return the shape that :meth:`to_json` wrote."""
        lists = {n: tuple(data.get(n, ())) for n in ("key", "partition_by", "watermark", "remove_on_groups")}
        groups = tuple(Group(tuple(g["sequence"]), tuple(g["columns"])) for g in data.get("groups", ()))
        columns = tuple(Column(**c) for c in data["columns"])
        return cls(**{**data, **lists, "columns": columns, "groups": groups})


def _spelled(type_text: str) -> str:
    """Return the type for DDL: names of a struct's fields keep their case."""
    return type_text if "<" in type_text else type_text.upper()
