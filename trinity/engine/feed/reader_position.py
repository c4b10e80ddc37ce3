"""A reader's position: a version and its commit id, by which a reader notices that the table was put back.

A version alone is not enough. A table that is put back to an earlier state, by a restored copy of its folder or by a
repair, uses numbers a second time: a reader would skip as many commits as were lost.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass

from trinity.errors import TrinityError
from trinity.spi import HistoryEntry, SplitSource

_DIGITS = 16


@dataclass(frozen=True)
class ReaderPosition:
    """A version that a reader has reached, with the first hexadecimal digits of the hash of the commit's id.

    The digits are empty where an older release of Trinity stored the position.
    """

    version: int
    commit: str = ""

    @classmethod
    def of(cls, found: HistoryEntry | SplitSource) -> ReaderPosition:
        """Return the position after a commit."""
        return cls(found.version, _hash(found)[:_DIGITS])

    def check(self, table: object, found: HistoryEntry | SplitSource, reader: str, remedy: str) -> None:
        """Check that the table's commit of this number is the one that was read; the error names reader and remedy.

        Raises:
            TrinityError: INVALID_ARGUMENTS.
        """
        there = _hash(found)
        if there.startswith(self.commit):
            return
        at = dt.datetime.fromtimestamp(found.timestamp_ms / 1000, dt.UTC).isoformat(" ", "milliseconds")
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Version {self.version} of table '{table}' is not the one that {reader} has come to: that was commit "
            f"{self.commit}, and there is commit {there[: len(self.commit)]} of {at}. The table was put back to an "
            f"earlier state and written to since, so what changed in between is not known. {remedy}",
        )

    def check_not_ahead(self, table: object, newest: int, reader: str, remedy: str) -> None:
        """Check that the table still has the version. Arguments and errors as for :meth:`check`."""
        if self.version > newest:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table}' has no version {self.version}, which {reader} has come to; its newest is {newest}: "
                f"it was repaired, or put back to an earlier state. {remedy}",
            )


def _hash(found: HistoryEntry | SplitSource) -> str:
    return hashlib.sha256(found.commit_id.encode()).hexdigest()
