"""Partitioning of a table: by the values of a column, or by a transform of a column (Iceberg's terms)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from trinity.errors import TrinityError

_IDENTITY: Final = "identity"

_TRANSFORMS: Final = {
    "bucket": True, "truncate": True, "years": False, "months": False, "days": False, "hours": False,
}  # fmt: skip
"""Transform -> whether it takes a number."""
_SINGULAR: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_CALL: Final = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_NUMBER_FIRST: Final = re.compile(r"\s*(\d+)\s*,\s*(.+?)\s*", re.DOTALL)
_NUMBER_LAST: Final = re.compile(r"\s*(.+?)\s*,\s*(\d+)\s*", re.DOTALL)


@dataclass(frozen=True)
class PartitionField:
    """One field of a table's partitioning.

    Attributes:
        column: the column from which the field is computed.
        transform: ``identity``, ``bucket``, ``truncate``, ``years``, ``months``, ``days`` or ``hours``.
        argument: the number of buckets, or the width to truncate to; None for other transforms.
    """

    column: str
    transform: str = _IDENTITY
    argument: int | None = None

    @property
    def identity(self) -> bool:
        """True when the column's values themselves are the partition values."""
        return self.transform == _IDENTITY

    def __str__(self) -> str:
        """Return the text of :attr:`TableDefinition.partition_by`: ``region``, ``days(ts)``, ``bucket(8, id)``."""
        if self.identity:
            return self.column
        number = f"{self.argument}, " if self.argument is not None else ""
        return f"{self.transform}({number}{self.column})"


def parse_partition(text: str, columns: Collection[str]) -> PartitionField:
    """Parse a partition field in Spark's spelling (``bucket(8, id)``) or Trino's (``bucket(id, 8)``).

    Args:
        text: the field: a column if one has this whole text as its name, else a transform.
        columns: names of the table's columns; matched without regard to case (M10).

    Raises:
        TrinityError: NOT_SUPPORTED for an unknown transform, INVALID_ARGUMENTS for wrong arguments.
    """
    known = {c.lower(): c for c in columns}
    call = _CALL.fullmatch(text)
    if text.lower() in known or call is None:
        return PartitionField(known.get(text.lower(), text))
    name = _SINGULAR.get(call[1].lower(), call[1].lower())
    if name == _IDENTITY:
        return PartitionField(_column(call[2], known))
    if name not in _TRANSFORMS:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Partition transform '{text}' is unknown; there are a column as it is, {', '.join(_TRANSFORMS)}.",
        )
    if not _TRANSFORMS[name]:
        return PartitionField(_column(call[2], known), name)
    first, last = _NUMBER_FIRST.fullmatch(call[2]), _NUMBER_LAST.fullmatch(call[2])
    number, column = (first[1], first[2]) if first else (last[2], last[1]) if last else ("0", "")
    if int(number) < 1:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"Partition transform '{text}' takes a number above 0 and a column: {name}(8, id)."
        )
    return PartitionField(_column(column, known), name, int(number))


def _column(text: str, known: dict[str, str]) -> str:
    name = text.strip()
    if len(name) > 1 and name[0] == name[-1] and name[0] in '`"' and name.lower() not in known:
        name = name[1:-1]
    return known.get(name.lower(), name)
