"""Functions of keyed entries: maps, and arrays of rows with a key. Entries stay in order of first appearance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, valid
from trinity.errors import ErrorCode
from trinity.merge.functions.base import Field, ListFunction
from trinity.merge.kernels.entries import Entries
from trinity.merge.kernels.order import FoldOrder, equal_codes, first_of_each, order_codes, tuple_codes
from trinity.merge.kernels.rows import ColumnRows, Folded, picked
from trinity.spi import DataType
from trinity.syntax.quoting import quoted


def _put_entry(same: str, replaced: str, fits: str = "true") -> str:
    """Return Spark SQL: list ``b``, in which entry ``e`` replaces the entry with its key, or is added at the end."""
    there = f"transform(b, t -> IF({same}, {replaced}, t))"
    return f"CASE WHEN exists(b, t -> {same}) THEN {there} WHEN {fits} THEN concat(b, array(e)) ELSE b END"


class _Entries(ListFunction):
    """Base class of folds over lists of entries: STRUCT<key, value> of a map, or the rows of an array."""

    def fold(self, field: Field, rows: str) -> str:
        kind = self.entries_type(field)
        start = f"coalesce(a, CAST(array() AS {kind}))"
        added = f"aggregate({self.entries('x.v', field)}, {start}, (b, e) -> CAST({self.put(field)} AS {kind}))"
        step = added
        if self.retractable and field.retracts:
            removed = f"filter(a, t -> NOT exists({self.entries('x.v', field)}, e -> {self.same(field)}))"
            step = f"CASE WHEN NOT x.r THEN {added} WHEN a IS NULL THEN a ELSE {removed} END"
        return self.whole(f"aggregate({rows}, CAST(NULL AS {kind}), (a, x) -> {step})")

    @abstractmethod
    def entries_type(self, field: Field) -> str:
        """Return the type of the list of entries."""

    @abstractmethod
    def entries(self, value: str, field: Field) -> str:
        """Return Spark SQL: a value's entries as a list."""

    @abstractmethod
    def same(self, field: Field) -> str:
        """Return Spark SQL: true when ``t`` and ``e`` have the same key."""

    @abstractmethod
    def put(self, field: Field) -> str:
        """Return Spark SQL: list ``b`` with entry ``e`` put into it."""

    def whole(self, entries: str) -> str:
        """Return Spark SQL: the column's value, from the list of entries."""
        return entries


class MergeMap(_Entries):
    """The union of maps; a later value wins. A retract removes the keys of its map."""

    name = "merge_map"
    retractable = True

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return None if kind.name == "map" else "needs a map column"

    def entries_type(self, field: Field) -> str:
        key, value = field.type.children
        return f"ARRAY<STRUCT<key: {key}, value: {value}>>"

    def entries(self, value: str, field: Field) -> str:
        return f"map_entries({value})"

    def same(self, field: Field) -> str:
        return "t.key = e.key"

    def put(self, field: Field) -> str:
        return _put_entry(self.same(field), "e")

    def whole(self, entries: str) -> str:
        return f"map_from_entries({entries})"

    def not_in_arrow(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        floating = kind.children[0].has_floating
        return "has floating-point keys" if floating else None

    def folded(self, rows: ColumnRows) -> Folded:
        entries = self._entries(rows)
        maps = entries.values
        kept = entries.put(equal_codes(maps.field("key")))
        found = entries.lists(maps.take(as_arrow(kept)), kept)
        keys, items = found.values.field("key"), found.values.field("value")
        kind = rows.values.type
        return Folded(pa.MapArray.from_arrays(found.offsets, keys, items, kind, mask=found.is_null()))

    def _entries(self, rows: ColumnRows) -> Entries:
        return Entries.of(rows, self.counted(rows))


class MergeMapWithKeytime(MergeMap):
    """The union of maps whose values are rows with a time: the newest time wins, and a NULL value removes its key.

    Times are compared as text, as in Paimon; an entry without a time is left out.
    """

    name = "merge_map_with_keytime"
    retractable = False
    options: ClassVar[Mapping[str, str]] = {"ts-field": "the field of the row with its time; the last one by default"}

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        if kind.name != "map" or kind.children[1].name != "struct" or len(kind.children[1].fields) < 2:
            return "needs a map column whose values are structs of at least two fields"
        return _unknown_field(kind.children[1], (options["ts-field"],)) if "ts-field" in options else None

    def put(self, field: Field) -> str:
        time = quoted(_time_field(field.type.children[1], field.options))
        newer = f"IF(CAST(e.value.{time} AS STRING) > CAST(t.value.{time} AS STRING), e, t)"
        return (
            f"CASE WHEN e.value IS NULL THEN filter(b, t -> NOT ({self.same(field)})) "
            f"WHEN e.value.{time} IS NULL THEN b ELSE {_put_entry(self.same(field), newer)} END"
        )

    def not_in_arrow(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        row = kind.children[1]
        of = row.children[row.fields.index(_time_field(row, options))]
        if not (of.is_integer or of.name == "string"):
            return f"compares times of type {of.name} as text"
        return super().not_in_arrow(kind, options)

    def _entries(self, rows: ColumnRows) -> Entries:
        entries = super()._entries(rows)
        times = entries.values.field("value")
        gone = ~valid(times)
        times = _field(times, _time_field(rows.type.children[1], rows.options)).cast(pa.string())
        entries = replace(entries, retract=gone, newer=(order_codes(times), False))
        return entries.among(gone | valid(times))


def _time_field(row: DataType, options: Mapping[str, str]) -> str:
    return options.get("ts-field", row.fields[-1])


def _nested_key(options: Mapping[str, str]) -> tuple[str, ...]:
    return _fields(options, "nested-key")


class _Nested(_Entries):
    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        if kind.name != "array" or kind.children[0].name != "struct":
            return "needs a column that is an array of structs"
        names = (*_nested_key(options), *_fields(options, "nested-sequence-field"))
        if options.get("nested-key-null-strategy", "merge").lower() not in ("merge", "ignore", "error"):
            return "has nested-key-null-strategy merge, ignore or error"
        if not _nested_key(options) and {"nested-key-null-strategy", "nested-sequence-field"} & set(options):
            return "needs 'nested-key' for its other options"
        return _unknown_field(kind.children[0], names)

    def bad_value(self, values: pa.Array, options: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
        if options.get("nested-key-null-strategy", "merge").lower() != "error":
            return None
        rows = values.flatten().drop_null()
        for name in _nested_key(options):
            if _field(rows, name).null_count:
                return "CONSTRAINT_VIOLATION", f"NULL in field '{name}' of the nested key"
        return None

    def entries_type(self, field: Field) -> str:
        return str(field.type)

    def entries(self, value: str, field: Field) -> str:
        counts = ["e IS NOT NULL"]
        if field.options.get("nested-key-null-strategy", "merge").lower() == "ignore":
            counts += [f"e.{quoted(k)} IS NOT NULL" for k in _nested_key(field.options)]
        return f"filter({value}, e -> {' AND '.join(counts)})"

    def same(self, field: Field) -> str:
        key = _nested_key(field.options)
        return " AND ".join(f"t.{quoted(k)} <=> e.{quoted(k)}" for k in key) if key else "t <=> e"

    def _entries(self, rows: ColumnRows) -> Entries:
        entries = Entries.of(rows, self.counted(rows))
        counts = valid(entries.values)
        if rows.options.get("nested-key-null-strategy", "merge").lower() == "ignore":
            for name in _nested_key(rows.options):
                counts &= valid(_field(entries.values, name))
        return entries.among(counts)

    def _codes(self, entries: Entries, key: tuple[str, ...]) -> np.ndarray:
        if not key:
            return equal_codes(entries.values)
        return tuple_codes([equal_codes(_field(entries.values, name)) for name in key])


class NestedUpdate(_Nested):
    """Rows in one array: appended or, with ``nested-key``, replacing the row with the same key."""

    name = "nested_update"
    retractable = True
    options: ClassVar[Mapping[str, str]] = {
        "nested-key": "fields 'a[,b]' by which rows are equal",
        "nested-key-null-strategy": "rows with a NULL there: merge (default), ignore, error",
        "nested-sequence-field": "fields 'a[,b]': only a row that is not older replaces",
        "count-limit": "how many rows are kept; further ones are left out",
    }

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        limit = options.get("count-limit", "1").strip()
        if not limit.isdigit() or int(limit) < 1:
            return f"has a 'count-limit' of {limit}; it is a whole number from 1"
        return super().problem(kind, options)

    def put(self, field: Field) -> str:
        limit = field.options.get("count-limit")
        fits = f"size(b) < {int(limit)}" if limit else "true"
        if not _nested_key(field.options):
            return f"IF({fits}, concat(b, array(e)), b)"
        sequence = _fields(field.options, "nested-sequence-field")
        replaced = "e"
        if sequence:
            new, old = (f"struct({', '.join(f'{row}.{quoted(s)}' for s in sequence)})" for row in ("e", "t"))
            replaced = f"IF({new} >= {old}, e, t)"
        return _put_entry(self.same(field), replaced, fits)

    def folded(self, rows: ColumnRows) -> Folded:
        entries, key = self._entries(rows), _nested_key(rows.options)
        sequence = _fields(rows.options, "nested-sequence-field")
        if sequence:
            entries = replace(entries, newer=(self._codes(entries, sequence), True))
        limit = rows.options.get("count-limit")
        entries = replace(entries, limit=int(limit) if limit else None)
        codes = self._codes(entries, key) if key or entries.retract.any() else np.arange(len(entries.values))
        kept = entries.put(codes) if key else entries.appended(codes)
        return Folded(entries.lists(entries.values.take(as_arrow(kept)), kept).cast(rows.values.type))


class NestedPartialUpdate(_Nested):
    """Rows in one array by ``nested-key``; fields that are not NULL replace those of the row with their key."""

    name = "nested_partial_update"
    options: ClassVar[Mapping[str, str]] = {
        "nested-key": "fields 'a[,b]' by which rows are equal; must be given",
        "nested-key-null-strategy": "rows with a NULL there: merge (default), ignore, error",
    }

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return super().problem(kind, options) or (None if _nested_key(options) else "needs 'nested-key'")

    def put(self, field: Field) -> str:
        names = field.type.children[0].fields
        merged = ", ".join(f"coalesce(e.{quoted(n)}, t.{quoted(n)}) AS {quoted(n)}" for n in names)
        return _put_entry(self.same(field), f"struct({merged})")

    def folded(self, rows: ColumnRows) -> Folded:
        entries = self._entries(rows)
        codes = self._codes(entries, _nested_key(rows.options))
        firsts = first_of_each(entries.keys, codes)
        row = np.empty(len(codes), np.int64)  # for each entry the number of the resulting row
        order = np.lexsort((codes, entries.keys))
        row[order] = np.cumsum(np.isin(order, firsts)) - 1
        by_row = FoldOrder(row, len(firsts))
        fields = [picked(child, by_row.last(valid(child))) for child in entries.values.flatten()]
        kind = entries.values.type
        whole = pa.StructArray.from_arrays(fields, fields=[kind.field(n) for n in range(kind.num_fields)])
        indexes = row[firsts]
        return Folded(entries.lists(whole.take(as_arrow(indexes)), firsts).cast(rows.values.type))


def _field(rows: pa.StructArray, name: str) -> pa.Array:
    """Return a field of structs; NULL for a NULL struct."""
    return pc.struct_field(rows, [rows.type.get_field_index(name)])


def _fields(options: Mapping[str, str], option: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in options.get(option, "").split(",") if name.strip())


def _unknown_field(row: DataType, names: tuple[str, ...]) -> str | None:
    missing = [n for n in names if n not in row.fields]
    return f"names field '{missing[0]}', and there are {', '.join(row.fields)}" if missing else None
