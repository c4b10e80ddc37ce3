"""Collations: a table has none, so a column that would lose one is refused."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from trinity.errors import TrinityError

__all__ = ["COLLATED", "check_not_collated", "not_collated"]

COLLATED: Final = b"trinity.collated"
"""Metadata of an Arrow field that stands for a column of Spark's: path and collation of its first collated text."""


def check_not_collated(field: pa.Field) -> None:
    """Refuse to make a column of data one of a table where it has a collation.

    Raises:
        TrinityError: NOT_SUPPORTED with the path of the collated text.
    """
    if found := (field.metadata or {}).get(COLLATED):
        path, _, collation = found.decode().rpartition(" ")
        raise not_collated(path, collation)


def not_collated(path: str, collation: str) -> TrinityError:
    """Return what refuses a collation, of a column or of a text within one."""
    where = f"Column '{path}': " if path else ""
    return TrinityError(
        "NOT_SUPPORTED",
        f"{where}'COLLATE {collation}' is not supported; a table compares texts by their characters. Leave the "
        f"collation out there, as CAST(... AS STRING) does, and say it where texts are compared.",
    )
