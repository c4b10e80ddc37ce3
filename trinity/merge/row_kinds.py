"""The kinds of row versions: as users write them, as a hidden column stores them, and as folds by column count them."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["ROW_KINDS", "FoldKind", "StoredKind", "is_retract"]

ROW_KINDS: Final = ("+I", "-U", "+U", "-D")
"""The texts of a ``rowkind.field`` (U8): inserted, before an update, after it, deleted."""


class StoredKind(IntEnum):
    """A value of :data:`~trinity.spi.ROW_KIND`, where NULL is the same as ``ADDED`` (U6)."""

    ADDED = 0
    HIDDEN = 1
    """Kept for one special reader, and shown in no merged read."""
    DELETED = 3
    FOLDED = 4
    """The result of a compaction, in tables that fold by column."""


class FoldKind(IntEnum):
    """What a row version does in a fold by column."""

    ADD = 0
    RETRACT_UPDATE = 1
    """A ``-U``."""
    RETRACT_DELETE = 2
    """A ``-D`` that does not delete the row."""
    CUT = 3
    """A delete of the row: older row versions no longer count."""


def is_retract(kind: str) -> str:
    """Return the condition, in Spark SQL, that a :class:`FoldKind` column takes something back (U8)."""
    return f"{kind} IN ({FoldKind.RETRACT_UPDATE}, {FoldKind.RETRACT_DELETE})"
