"""Text of CHAR and VARCHAR columns, and of fields within others: which is too long, and how it is stored (K2)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.writing.parts import part_of, with_parts
from trinity.errors import TrinityError
from trinity.spi import DataType

__all__ = ["check_lengths", "fitted"]


def check_lengths(values: pa.Array, kind: DataType, where: str, path: tuple[str, ...]) -> None:
    """Check that text fits; blanks beyond the length of its type are cut, as SQL and Spark do.

    The keys of a map must differ in the form in which they are stored.

    Args:
        values: values of a column, or within one.
        kind: their type.
        where: the column, for the message.
        path: names of the column, and of the parts within.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION naming a text that is too long, or a key that a map has twice.
    """
    if kind.name in ("char", "varchar"):
        long = values.filter(pc.greater(pc.utf8_length(pc.utf8_rtrim(values, " ")), kind.arguments[0]))
        if len(long):
            message = f"'{long[0].as_py()}' is longer than {kind} allows in {_within(path)}{where}."
            raise TrinityError("CONSTRAINT_VIOLATION", message)
    for name, child in kind.parts:
        if child.limited:
            check_lengths(part_of(values.drop_null(), name), child, where, (*path, name))
    if kind.name == "map" and kind.children[0].name in ("char", "varchar"):
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
    if kind.name in ("char", "varchar"):
        length = kind.arguments[0]
        values = pc.utf8_slice_codeunits(values, 0, length)
        return pc.utf8_rpad(values, length, " ") if kind.name == "char" else values
    if not kind.limited:
        return values
    return with_parts(values, values.type, lambda number, part: fitted(part, kind.children[number]))
