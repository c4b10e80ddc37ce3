"""The rules by which values of one type are stored in a column of another, for this process and for Spark (M6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trinity.engine.writing.casts import assignable, unlike
from trinity.errors import TrinityError
from trinity.spi import FLOATS, INTEGERS, Column, DataType, parse_type

_WIDTHS: Final = {name: width for width, name in enumerate((*INTEGERS, *FLOATS))}


def refuse_other_than_boolean(kind: str, where: str) -> None:
    """Refuse a condition that is no BOOLEAN (TYPE_MISMATCH); ``where`` names it."""
    if kind not in ("boolean", "void"):
        raise TrinityError("TYPE_MISMATCH", f"{where} is of type {kind}; a condition must be boolean.")


def refuse_unassignable(source: DataType, column: Column, table: str, where: str) -> None:
    """Refuse an expression whose values may not be assigned to a column (TYPE_MISMATCH); ``where`` names it."""
    wanted = parse_type(column.type)
    if not assignable(source, wanted):
        raise TrinityError(
            "TYPE_MISMATCH",
            f"{where}: column '{column.name}' of table '{table}' is of type {wanted}, and the expression is of type "
            f"{source}; {unlike(source, wanted)}.",
        )


def placed(source: DataType, wanted: DataType) -> DataType:
    """Return a type in which unnamed fields, such as those of ``struct(1, 'a')``, get the names that ``wanted`` has.

    Spark, too, stores rows of INSERT by position. Its functions name such fields col1, col2 and so on.
    """
    if source.name != wanted.name or len(source.children) != len(wanted.children):
        return source
    children = tuple(placed(one, other) for one, other in zip(source.children, wanted.children, strict=True))
    pairs = enumerate(zip(source.fields, wanted.fields, strict=True), 1)
    return replace(source, children=children, fields=tuple(new if old == f"col{n}" else old for n, (old, new) in pairs))


def too_large(column: Column, table: str, where: str) -> str:
    """Return the message for a value that does not fit into a column, without the value at its end."""
    wanted = parse_type(column.type)
    return f"{where}: a value does not fit into column '{column.name}' of table '{table}', which is {wanted}: "


def refusal_around(message: str) -> tuple[str, str]:
    """Return the JSON of a NUMERIC_VALUE_OUT_OF_RANGE in two parts: before and after the value at its message's end."""
    error, tail = TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", message).to_json(), '"}'
    return error[: -len(tail)], tail


def narrows(source: DataType, wanted: DataType) -> bool:
    """Return True when a number of one type may not fit into another type."""
    if not source.is_number:
        return False
    if source.name == wanted.name == "decimal":
        (p, s), (q, t) = source.arguments, wanted.arguments
        return bool(p - s > q - t or (p - s == q - t and s > t))  # rounding up may need one more digit
    if source.name in _WIDTHS and wanted.name in _WIDTHS:
        return _WIDTHS[source.name] > _WIDTHS[wanted.name]
    return "decimal" in (source.name, wanted.name) and not wanted.is_floating


def only_widens(source: DataType, wanted: DataType) -> bool:
    """Return True when ``wanted`` can represent every value of ``source``, nested values included."""
    if source == wanted:
        return True
    if source.nested and (source.name, source.fields) == (wanted.name, wanted.fields):
        return all(map(only_widens, source.children, wanted.children))
    if source.is_integer and wanted.is_integer:
        return INTEGERS.index(source.name) <= INTEGERS.index(wanted.name)
    return source.is_floating and wanted.name == "double"
