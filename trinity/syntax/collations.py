"""Collations, which tables do not have: a column with a collation is refused."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from trinity.errors import TrinityError

COLLATED: Final = b"trinity.collated"
"""Metadata key of an Arrow field made of a Spark column: path and collation of its first collated text."""


def check_not_collated(field: pa.Field) -> None:
    """Refuse a column of data with a collation as a column of a table.

    Raises:
        TrinityError: NOT_SUPPORTED with the path of the collated text.
    """
    if found := (field.metadata or {}).get(COLLATED):
        path, _, collation = found.decode().rpartition(" ")
        raise not_collated(path, collation)


def not_collated(path: str, collation: str) -> TrinityError:
    """Return the error for a collation of a column, or of a text within one."""
    where = f"Column '{path}': " if path else ""
    return TrinityError(
        "NOT_SUPPORTED",
        f"{where}'COLLATE {collation}' is not supported; a table compares texts by their characters. Leave the "
        f"collation out there, as CAST(... AS STRING) does, and say it where texts are compared.",
    )
