"""Access to the values in structs, arrays and maps, and their construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy, where_true
from trinity.engine.expressions.coercion import together
from trinity.engine.expressions.node import STRING, VOID, Compiled, Refused, as_array
from trinity.engine.expressions.rows import of_rows
from trinity.errors import TrinityError, nearest
from trinity.spi import INTEGERS, DataType

_KEYS = frozenset({*INTEGERS, "string", "date", "boolean"})
"""Types of map keys that Arrow and Spark compare alike."""


def field(value: Compiled, name: str) -> Compiled:
    """Return a field of a struct, named in any case.

    Raises:
        Refused: for a value that is no struct, a name that occurs twice, and CHAR, which Spark pads.
        TrinityError: COLUMN_NOT_FOUND.
    """
    kind = value.type
    if kind.name != "struct":
        raise Refused(f"only Spark reads '{name}' within {kind}")
    found = [number for number, known in enumerate(kind.fields) if known.lower() == name.lower()]
    if not found:
        raise TrinityError("COLUMN_NOT_FOUND", f"There is no field '{name}' in {kind}.{nearest(name, kind.fields)}")
    inner = kind.children[found[0]]
    if len(found) > 1 or inner.limited:
        raise Refused(f"only Spark reads '{name}' within {kind}")
    return of_rows(inner, lambda structs: pc.struct_field(structs, [found[0]]), value)


def item(value: Compiled, index: Compiled) -> Compiled:
    """Return an item of an array by its index, from 0; or the value of a key of a map, NULL for a missing key.

    Raises:
        Refused: for other types.
    """
    if value.type.limited:
        raise Refused(f"only Spark reads an item of {value.type}")
    if value.type.name == "array" and index.type.is_integer:
        return of_rows(value.type.children[0], _items, value, index, may_fail=True)
    if value.type.name == "map":
        key, inner = value.type.children
        if key.name in _KEYS and (index.type == key or (key.name in INTEGERS[2:] and index.type.name in INTEGERS[:3])):
            return of_rows(inner, lambda maps, keys: _values(maps, keys.cast(key.to_arrow())), value, index)
    raise Refused(f"only Spark reads an item of {value.type} by {index.type}")


def _items(lists: pa.Array, indexes: pa.Array) -> pa.Array:
    counts, wanted = as_numpy(pc.list_value_length(lists)), as_numpy(indexes.cast(pa.int64()))
    outside = np.flatnonzero((wanted < 0) | (wanted >= counts))
    if len(outside):
        index, count = wanted[outside[0]], counts[outside[0]]
        raise TrinityError("INVALID_ARGUMENTS", f"An array of {count} items has none at place {index}; the first is 0.")
    return lists.values.take(as_arrow(as_numpy(lists.offsets)[:-1] + wanted))


def _values(maps: pa.Array, keys: pa.Array) -> pa.Array:
    """Look up a key in each map: the value of the first entry with the key, or NULL."""
    starts = as_numpy(maps.offsets).astype(np.int64)
    first, end = starts[0], starts[-1]
    rows = np.repeat(np.arange(len(maps)), np.diff(starts))
    same = pc.equal(maps.keys.slice(first, end - first), keys.take(as_arrow(rows)))
    hits = np.flatnonzero(where_true(same))
    having, which = np.unique(rows[hits], return_index=True)
    indexes = np.full(len(maps), -1, np.int64)
    indexes[having] = first + hits[which]
    return maps.items.take(as_arrow(indexes, mask=indexes < 0))


def struct(names: Sequence[str], values: Sequence[Compiled]) -> Compiled:
    """Return a struct of the fields. Raises Refused where there are none, and for a NULL without type."""
    if not values or any(v.type == VOID for v in values):
        raise Refused("only Spark makes a struct of a NULL without type, or of nothing")
    kind = DataType("struct", (), tuple(_nested_type(v.type) for v in values), tuple(names))
    fields = list(kind.to_arrow())

    def run(rows: pa.RecordBatch) -> pa.Array:
        return pa.StructArray.from_arrays([as_array(v.run(rows), len(rows)) for v in values], fields=fields)

    return Compiled.over(kind, run, *values)


def array(values: Sequence[Compiled], timezone: Callable[[], str]) -> Compiled:
    """Return an array of the items. Raises Refused when they have no common type."""
    if any(v.type.nested for v in values):
        raise Refused("only Spark makes an array of nested values")
    values = together(values, timezone)
    if not values or values[0].type == VOID:
        raise Refused("only Spark makes an array of NULL without type, or of nothing")
    kind, count = DataType("array", (), (_nested_type(values[0].type),)), len(values)

    def run(rows: pa.RecordBatch) -> pa.Array:
        offsets = pa.array(np.arange(len(rows) + 1) * count, pa.int32())
        return pa.ListArray.from_arrays(offsets, _interleaved(values, rows), type=kind.to_arrow())

    return Compiled.over(kind, run, *values)


def sequence(values: Sequence[Compiled], days: int | None, timezone: Callable[[], str]) -> Compiled:
    """Return SEQUENCE: an array of numbers, or dates, from the first to the last one, inclusive if a step ends there.

    ``values`` are the first and the last one, and the step of numbers, if there is one. ``days`` is the step of dates.
    Without a step it is 1 or -1.

    Raises:
        Refused: for other types, and for a step that is no literal.
    """
    if all(v.type.name == "date" for v in values):
        inner, step = values[0].type, days
    elif days is None and all(v.type.is_integer for v in values):
        values = together(values, timezone)
        given = values[2:]
        inner, step = values[0].type, given[0].value if given and given[0].constant else None
    else:
        raise Refused("only Spark makes a sequence of these values")
    if step == 0 or (step is None and len(values) > 2):
        raise Refused("only Spark evaluates SEQUENCE with a step that is 0, or no constant")
    kind = DataType("array", (), (inner,))

    def kernel(first: pa.Array, last: pa.Array) -> pa.Array:
        whole = pa.int32() if inner.name == "date" else inner.to_arrow()
        starts, ends = (as_numpy(found.cast(whole).cast(pa.int64())) for found in (first, last))
        steps = np.where(starts <= ends, 1, -1) if step is None else np.full(len(starts), step)
        wrong = np.flatnonzero(np.where(steps > 0, starts > ends, starts < ends))
        if len(wrong):
            bounds = f"from {first[wrong[0]]} to {last[wrong[0]]}"
            raise TrinityError("INVALID_ARGUMENTS", f"A sequence {bounds} does not have steps of {step}.")
        gaps = np.where(steps > 0, ends - starts, starts - ends).astype(np.uint64)  # may exceed 2^63
        counts = gaps // np.abs(steps).astype(np.uint64) + np.uint64(1)
        if counts.astype(np.float64).sum() > _MOST_ITEMS:
            raise TrinityError("INVALID_ARGUMENTS", "Sequences have more items than an array can hold.")
        offsets = np.concatenate(([0], np.cumsum(counts.astype(np.int64))))
        indexes = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
        items = np.repeat(starts, np.diff(offsets)) + indexes * np.repeat(steps, np.diff(offsets))
        return pa.ListArray.from_arrays(
            as_arrow(offsets).cast(pa.int32()), pa.array(items).cast(whole).cast(inner.to_arrow()), type=kind.to_arrow()
        )

    return of_rows(kind, kernel, *values[:2], may_fail=True)


_MOST_ITEMS = 2**31 - 1


def map_of(keys: Sequence[Compiled], values: Sequence[Compiled], timezone: Callable[[], str]) -> Compiled:
    """Return a map with constant keys. Raises Refused for other keys, and for values without a common type."""
    if any(v.type.nested for v in (*keys, *values)) or not all(key.constant for key in keys):
        raise Refused("only Spark makes a map of nested values, or of keys that are no constants")
    keys, values = together(keys, timezone), together(values, timezone)
    known = [key.value for key in keys]
    if not keys or keys[0].type.name not in _KEYS or None in known or len({*known}) < len(known):
        raise Refused("only Spark makes a map of these keys")
    if values[0].type == VOID:
        raise Refused("only Spark makes a map of NULLs without type")
    kind = DataType("map", (), (_nested_type(keys[0].type), _nested_type(values[0].type)))
    entries = pa.array(known, keys[0].arrow_type)

    def run(rows: pa.RecordBatch) -> pa.Array:
        offsets = pa.array(np.arange(len(rows) + 1) * len(known), pa.int32())
        repeated = entries.take(as_arrow(np.tile(np.arange(len(known)), len(rows))))
        return pa.MapArray.from_arrays(offsets, repeated, _interleaved(values, rows)).cast(kind.to_arrow())

    return Compiled.over(kind, run, *values)


def _interleaved(values: Sequence[Compiled], rows: pa.RecordBatch) -> pa.Array:
    """Return the values of each row, one row after the other."""
    columns = [as_array(v.run(rows), len(rows)) for v in values]
    order = np.arange(len(rows) * len(values)).reshape(len(values), len(rows)).T.ravel()
    return pa.concat_arrays(columns).take(as_arrow(order))


def _nested_type(kind: DataType) -> DataType:
    """Return the type of a nested value, in which CHAR and VARCHAR become STRING."""
    if kind.nested and kind.limited:
        raise Refused(f"only Spark puts {kind} into another value")
    return STRING if kind.is_text else kind
