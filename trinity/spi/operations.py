"""The operations of commits, as ``history()`` shows them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CommitOperation(StrEnum):
    """The operation of a commit. Its value is the text that users see in ``history()``, and that adapters store.

    A commit of another engine has one of these if it is known to have done the same, else the format's own word.

    Attributes:
        CREATE: it made the table, without rows.
        APPEND: it added rows.
        MERGE: it added, changed or deleted rows, as a row change does.
        TRUNCATE: it removed all rows.
        REPLACE: it gave the table another definition, and other rows (L13).
        COMPACT: it put the same rows in other files.
        RESOLVE: it deleted superseded rows by position (R1).
        ALTER: it changed columns or properties.
        VACUUM: it made old versions unreadable.
        RESTORE: it brought back the rows and the definition of an earlier version (L11).
        REPAIR: it put a damaged table in order.
    """

    CREATE = "create"
    APPEND = "append"
    MERGE = "merge"
    TRUNCATE = "truncate"
    REPLACE = "replace table"
    COMPACT = "compact"
    RESOLVE = "resolve"
    ALTER = "alter"
    VACUUM = "vacuum"
    RESTORE = "restore"
    REPAIR = "repair"


KEEPS_ROWS: Final = frozenset({CommitOperation.COMPACT, CommitOperation.RESOLVE, CommitOperation.VACUUM})
"""Operations after which a read returns what it did before (L3, C3). Any other, a format's own too, may change rows."""
