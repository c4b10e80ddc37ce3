"""Families of types, each from narrow to wide."""

from __future__ import annotations

from typing import Final

from trinity.spi import DataType

__all__ = ["BOOLEAN", "DOUBLE", "FLOATS", "STRING", "TEXTS", "TIMES", "VOID", "WHOLE", "fits"]

WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
FLOATS: Final = ("float", "double")
TEXTS: Final = ("string", "char", "varchar")
TIMES: Final = ("date", "timestamp_ntz", "timestamp")
"""Each may become the ones after it."""

BOOLEAN: Final = DataType("boolean")
DOUBLE: Final = DataType("double")
STRING: Final = DataType("string")
VOID: Final = DataType("void")
"""The type of a NULL without type."""


def fits(value: int, kind: DataType) -> bool:
    """Return True when a whole number is one of a type of :data:`WHOLE`."""
    limit = 1 << (8 << WHOLE.index(kind.name)) - 1
    return -limit <= value < limit
