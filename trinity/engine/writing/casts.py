"""Assignment of values to columns: what may be stored where, the checked cast (M6), and the length of text (K2)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.writing.clocks import clocks_of, instants_of
from trinity.engine.writing.parts import part_of, with_parts
from trinity.errors import TrinityError
from trinity.spi import DataType


def converts(source: DataType, target: DataType) -> bool:
    """Return True for two types of numbers, or of dates and timestamps: SQL converts these, and rounds if need be."""
    return (source.is_number and target.is_number) or (source.is_datetime and target.is_datetime and source != target)


def assignable(source: DataType, target: DataType) -> bool:
    """Return True when values of one type may be assigned to a column of another (M6).

    Numbers may be assigned to numbers, text to text, timestamps to timestamps, nested types by their parts; never text
    to numbers, nor numbers to text.
    """
    if source.name == "void":
        return True
    for family in ("is_number", "is_text", "is_timestamp"):
        if getattr(source, family):
            return bool(getattr(target, family))
    if source.name != target.name or len(source.children) != len(target.children):
        return False
    if [f.lower() for f in source.fields] != [f.lower() for f in target.fields]:
        return False
    return all(assignable(s, t) for s, t in zip(source.children, target.children, strict=True))


def unlike(source: DataType, target: DataType) -> str:
    """Return why a type is not assignable, as the end of a sentence: what to cast it to, or how its fields differ.

    Fields of structs must have the same names, in any case, and the same order: so values are never swapped unnoticed.
    """
    if source.nested and assignable(_with_sorted_fields(source), _with_sorted_fields(target)):
        return "the fields are the same, in another order; give them in the column's order"
    return "cast it first"


def _with_sorted_fields(kind: DataType) -> DataType:
    """Return a type with the fields of its structs in the order of their names."""
    parts = [(name.lower() if kind.fields else "", _with_sorted_fields(part)) for name, part in kind.parts]
    parts = sorted(parts, key=lambda part: part[0]) if kind.fields else parts
    return replace(
        kind, children=tuple(part for _, part in parts), fields=tuple(name for name, _ in parts if kind.fields)
    )


def cast_array(array: pa.Array, target: pa.DataType, where: str, timezone: str) -> pa.Array:
    """Cast without loss.

    Args:
        array: values whose type is assignable.
        target: type of the column in memory.
        where: the column, for the message.
        timezone: the zone by which timestamps without zone become TIMESTAMP values, and back.

    Raises:
        TrinityError: NUMERIC_VALUE_OUT_OF_RANGE naming the value, when one does not fit.
    """
    if array.type == target:
        return array
    try:
        return _cast(array, target, timezone)
    except pa.ArrowInvalid as error:
        raise TrinityError(
            "NUMERIC_VALUE_OUT_OF_RANGE", f"A value does not fit into {where}, which holds {target}: {error}."
        ) from error


def _cast(array: pa.Array, target: pa.DataType, timezone: str) -> pa.Array:
    source = array.type
    if pa.types.is_null(source):
        return pa.nulls(len(array), target)
    if pa.types.is_dictionary(source):
        return _cast(_decoded(array), target, timezone)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return _cast_timestamp(array, target, timezone)
    if pa.types.is_integer(source) and pa.types.is_decimal(target):
        # Arrow refuses a target that does not hold every int64, although these values usually need fewer digits
        array = array.cast(pa.decimal128(38, target.scale))
    if pa.types.is_decimal(source) and pa.types.is_floating(target):
        array = array.cast(pa.string())  # Arrow's own cast is not the nearest number: 25.2 becomes 25.200000000000003
    if pa.types.is_list_view(source):
        array = _listed(array)
    elif pa.types.is_list(target) and not pa.types.is_list(source):
        array = array.cast(pa.list_(source.value_type))
    if any(
        is_kind(target) and is_kind(array.type) for is_kind in (pa.types.is_list, pa.types.is_struct, pa.types.is_map)
    ):
        return with_parts(array, target, lambda number, part: _cast(part, _part_type(target, number), timezone))
    return array.cast(target, safe=True)


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary array, also of string views, which Polars uses and Arrow cannot decode."""
    kind = array.type.value_type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        plain = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(plain))
    return array.dictionary_decode()


def _listed(views: pa.ListViewArray) -> pa.ListArray:
    """Return list views as lists. Arrow's own cast makes too few offsets, and a reader of them reads past the end."""
    lengths = pc.fill_null(pc.list_value_length(views), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    return pa.ListArray.from_arrays(offsets, pc.list_flatten(views), mask=pc.is_null(views))


def _cast_timestamp(array: pa.Array, target: pa.DataType, timezone: str) -> pa.Array:
    if array.type.tz is None and target.tz is not None:
        array = instants_of(array, timezone)
    elif array.type.tz is not None and target.tz is None:
        array = clocks_of(array, timezone)
    return array.cast(target, safe=True)


def _part_type(kind: pa.DataType, number: int) -> pa.DataType:
    if pa.types.is_map(kind):
        return kind.item_type if number else kind.key_type
    return kind.field(number).type


def check_lengths(values: pa.Array, kind: DataType, where: str, path: tuple[str, ...]) -> None:
    """Check that texts fit into their type. Trailing blanks beyond its length do not count; they are cut, as in Spark.

    The keys of a map must differ in the form in which they are stored.

    Args:
        values: values of a column, or within one.
        kind: the type of the values.
        where: the column, for the message.
        path: names of the column, and of the parts within it that lead to the values.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION naming a text that is too long, or a key that a map has twice.
    """
    if kind.has_length:
        long = values.filter(pc.greater(pc.utf8_length(pc.utf8_rtrim(values, " ")), kind.arguments[0]))
        if len(long):
            message = f"'{long[0].as_py()}' is longer than {kind} allows in {_within(path)}{where}."
            raise TrinityError("CONSTRAINT_VIOLATION", message)
    for name, child in kind.parts:
        if child.limited:
            check_lengths(part_of(values.drop_null(), name), child, where, (*path, name))
    if kind.name == "map" and kind.children[0].has_length:
        _check_keys(values.drop_null(), kind, where, (*path, "key"))


def _check_keys(maps: pa.Array, kind: DataType, where: str, path: tuple[str, ...]) -> None:
    of_map = pc.list_parent_indices(maps.cast(pa.list_(pa.struct([maps.type.key_field, maps.type.item_field]))))
    keys = fitted(part_of(maps, "key"), kind.children[0])
    counted = pa.table({"map": of_map, "key": keys}).group_by(["map", "key"]).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted["count_all"], 1))
    if len(twice):
        message = f"A map has the key '{twice['key'][0]}' twice, as it is stored, in {_within(path)}{where}."
        raise TrinityError("CONSTRAINT_VIOLATION", message)


def _within(path: tuple[str, ...]) -> str:
    return f"'{'.'.join(path)}' within " if len(path) > 1 else ""


def fitted(values: pa.Array, kind: DataType) -> pa.Array:
    """Return values as they are stored: CHAR padded, CHAR and VARCHAR without the blanks beyond their length."""
    if kind.has_length:
        length = kind.arguments[0]
        values = pc.utf8_slice_codeunits(values, 0, length)
        return pc.utf8_rpad(values, length, " ") if kind.name == "char" else values
    if not kind.limited:
        return values
    return with_parts(values, values.type, lambda number, part: fitted(part, kind.children[number]))
