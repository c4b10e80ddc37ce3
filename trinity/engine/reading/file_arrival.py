"""Arrival order by file, for both executors, when another engine has rewritten files (L3).

Within a file the rows' stamps decide: see :mod:`trinity.spi.files`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from trinity.spi import MOMENT_UNIT, DataFile, Origin, Tier, moment_of_append

UNKNOWN: Final = -1
"""Moment of a row without stamp: the row was there before any row had a stamp."""
BEFORE: Final = -2
"""Moment of rows of base and sidecar."""


class FileArrival(NamedTuple):
    """The arrival of a file's rows.

    Attributes:
        before: True for a file of base or sidecar, whose rows came before the log.
        stamp: the stamp to give to rows without one, if another engine added them in a commit that is still known; else
            None.
        moment: the moment of rows without stamp.
    """

    before: bool
    stamp: int | None
    moment: int

    @classmethod
    def of(cls, file: DataFile) -> FileArrival:
        """Return the arrival of a file's rows."""
        moment = moment_of_append(file.commit or 0) if file.origin is Origin.UNSURE else UNKNOWN
        added = file.origin is Origin.ADDED
        stamp = moment_of_append(file.commit or 0) * MOMENT_UNIT if added else None
        return cls(file.tier is not Tier.LOG, stamp, moment)


def unknown_order_message(table: str) -> tuple[str, str]:
    """Return the text before and after the key in the error for a key whose newest row version is unknown."""
    after = (
        f") of table '{table}' it is not known any more which came last, an UPDATE, a DELETE or a version that another "
        "engine added: it rewrote the files of both since. Upsert the row anew, with larger ordering values if it has "
        "any, or read a version from before that (L3)."
    )
    return "Of the row with key (", after
