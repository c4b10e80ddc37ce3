"""Aggregate functions of arrays and maps (A3), in plain Python. Elements are in the order of first appearance.

A map is a list of pairs and a struct a dict, as everywhere in the model.

Where the rules leave a choice, this is the reading:

- ``merge_map_with_keytime``: no order of keys is promised, so none is compared (see ``differences``);
- ``nested_update`` with ``nested-sequence-field``: a retract removes the rows of its keys whatever their sequence;
- a nested key of several fields is NULL as soon as one of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from trinity.spi import parse_type
from trinity_conformance.model.functions import Function
from trinity_conformance.model.values import Value, equal_form, order_form


class Collect(Function):
    """collect: arrays one after the other; ``distinct`` keeps the first of equal elements."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None:
            return acc
        found = list(acc or ())
        for element in value:
            if not (self.switch("distinct") and self.has(found, element)):
                found.append(element)
        return found

    def retract(self, acc: Any, value: Value) -> Any:
        """Remove one occurrence, the first, for each element of the retract."""
        if acc is None or value is None:
            return acc
        found = list(acc)
        for element in value:
            if self.has(found, element):
                found.pop([self.form(e) for e in found].index(self.form(element)))
        return found

    def has(self, found: list[Value], element: Value) -> bool:
        """Return whether an equal element is present; NULL equals NULL."""
        return self.form(element) in [self.form(e) for e in found]

    def form(self, element: Value) -> Value:
        """Return the form in which elements are compared for equality."""
        return equal_form(str(parse_type(self.type).children[0]), element)


class MergeMap(Function):
    """merge_map: the later value of a key wins, and the key keeps its place; a retract removes its keys."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None:
            return acc
        return list({**dict(acc or ()), **dict(value)}.items())

    def retract(self, acc: Any, value: Value) -> Any:
        if acc is None or value is None:
            return acc
        gone = dict(value)
        return [(k, v) for k, v in acc if k not in gone]


class MergeMapWithKeytime(Function):
    """merge_map_with_keytime: per key the struct with the newest time, as text; a NULL struct removes the key."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None:
            return acc
        found = dict(acc or ())
        for key, entry in value:
            if entry is None:
                found.pop(key, None)
            elif self.time(entry) is not None and (key not in found or self.newer(entry, found[key])):
                found[key] = entry
        return list(found.items())

    def newer(self, entry: Value, stored: Value) -> bool:
        """Return whether a struct is strictly newer; a tie keeps the stored one."""
        return bool(self.text(entry) > self.text(stored))

    def time(self, entry: Value) -> Value:
        """Return the time of a struct: ``ts-field``, by default its last field."""
        fields = parse_type(self.type).children[1].fields
        return entry[self.options.get("ts-field", fields[-1])]

    def text(self, entry: Value) -> str:
        """Return the time as text."""
        return str(self.time(entry))


class _Nested(Function):
    """Common part of the functions of ARRAY<STRUCT>: rows with a nested key."""

    @property
    def row_type(self) -> Any:
        """The type of the struct."""
        return parse_type(self.type).children[0]

    @property
    def key(self) -> list[str]:
        """The fields of ``nested-key``; none without it."""
        return [f for f in self.options.get("nested-key", "").split(",") if f]

    def key_of(self, row: Value) -> tuple[Value, ...]:
        """Return the nested key of a row."""
        return tuple(self.form(f, row[f]) for f in self.key)

    def form(self, name: str, value: Value) -> Value:
        """Return the form in which values of a field are compared for equality."""
        kinds = dict(zip(self.row_type.fields, map(str, self.row_type.children), strict=True))
        return equal_form(kinds[name], value)

    def rows_of(self, value: Value) -> list[Value]:
        """Return the rows of an array, without NULL elements and those whose NULL key is to be ignored."""
        rows = [row for row in value if row is not None]
        if self.options.get("nested-key-null-strategy") != "ignore":
            return rows
        return [row for row in rows if None not in self.key_of(row)]

    def place_of(self, acc: list[Value], row: Value) -> int | None:
        """Return the index of the row with the same key, or None."""
        keys = [self.key_of(r) for r in acc]
        return keys.index(self.key_of(row)) if self.key_of(row) in keys else None

    def is_full(self, acc: list[Value]) -> bool:
        """Return whether ``count-limit`` has been reached."""
        return len(acc) >= int(self.options.get("count-limit", 2**31))


class NestedUpdate(_Nested):
    """nested_update: rows are appended, or with ``nested-key`` replace the row of their key in its place."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None:
            return acc
        found = list(acc or ())
        for row in self.rows_of(value):
            place = self.place_of(found, row) if self.key else None
            if place is not None:
                found[place] = row if self.replaces(row, found[place]) else found[place]
            elif not self.is_full(found):
                found.append(row)
        return found

    def replaces(self, row: Value, stored: Value) -> bool:
        """Return whether a row replaces one with no larger ``nested-sequence-field``; NULL is smallest."""
        name = self.options.get("nested-sequence-field")
        if name is None:
            return True
        kinds = dict(zip(self.row_type.fields, map(str, self.row_type.children), strict=True))
        return order_form(kinds[name], row[name]) >= order_form(kinds[name], stored[name])

    def retract(self, acc: Any, value: Value) -> Any:
        """Remove the rows with a key of the retract; without a key, the rows that equal one of the retract's."""
        if acc is None or value is None:
            return acc
        gone = [self.identity(row) for row in self.rows_of(value)]
        return [row for row in acc if self.identity(row) not in gone]

    def identity(self, row: Value) -> Value:
        """Return the values by which two rows are the same."""
        return self.key_of(row) if self.key else equal_form(str(self.row_type), row)


class NestedPartialUpdate(_Nested):
    """nested_partial_update: the fields of a row that are not NULL overwrite those of the row with the same key."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None:
            return acc
        found = list(acc or ())
        for row in self.rows_of(value):
            place = self.place_of(found, row)
            if place is None:
                found.append(row)
            else:
                found[place] = {**found[place], **{f: v for f, v in row.items() if v is not None}}
        return found


NESTED_FUNCTIONS: Final[Mapping[str, Callable[[str, Mapping[str, str]], Function]]] = {
    "collect": Collect,
    "merge_map": MergeMap,
    "merge_map_with_keytime": MergeMapWithKeytime,
    "nested_update": NestedUpdate,
    "nested_partial_update": NestedPartialUpdate,
}
"""Name -> function of arrays and maps."""
