"""Columns whose values Arrow compares as Spark does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trinity.spi import TableDefinition, parse_type

__all__ = ["compared_alike"]

_COMPARED_ALIKE: Final = frozenset(
    {
        "tinyint", "smallint", "int", "bigint", "decimal", "string", "char", "varchar", "date", "timestamp",
        "timestamp_ntz",
    }
)  # fmt: skip
"""Not FLOAT and DOUBLE, whose NaN and -0.0 Spark finds equal where Arrow does not, nor TIME, which has another unit."""


def compared_alike(definition: TableDefinition, names: Iterable[str]) -> bool:
    """True when Arrow finds the values of some columns equal, smaller and larger where Spark does."""
    return {parse_type(definition.column(name).type).name for name in names} <= _COMPARED_ALIKE
