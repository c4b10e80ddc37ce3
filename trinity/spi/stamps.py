"""Stamps: the order of row versions that outlives what other engines do to their files (L3).

A row change copies the ordering values of the row that it changes and wins by arrival (K4). When another engine
rewrites data files, the commit numbers of their rows are lost. So every row carries a stamp, one number for all rows of
a statement: the version that the statement was pinned to, whether it is an append or a row change, and random bits, by
which the statement is known again. It is in the files from the start, and in the table's columns from its first row
change on: until then nothing depends on it, and no other engine sees it.

Stamps are in the order of arrival wherever one of two rows of a key is a row change's, since a row change runs again
when a row of its keys was committed after its version. With one exception: an append that is pinned before a row
change's version, and committed after it. That one is late; the table remembers it (:class:`RowOrder`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from trinity.spi.files import DataFile
from trinity.spi.schema import STAMP

__all__ = ["MOMENT_UNIT", "OLDEST", "RowOrder", "append_stamp", "came_after", "moment_of_append", "row_change_stamp"]

MOMENT_UNIT: Final = 1 << 23
"""A stamp divided by this is its moment: twice the version, and one more for an appended row."""
OLDEST: Final = MOMENT_UNIT
"""The stamp that compaction gives to rows without one: it came before every row change that it did not fold."""


def append_stamp(version: int) -> int:
    """A stamp for the rows of an append that is pinned to a version."""
    return (2 * version + 1) * MOMENT_UNIT + secrets.randbelow(MOMENT_UNIT)


def row_change_stamp(version: int) -> int:
    """A stamp for the rows of a row change: after all that was committed by its version."""
    return 2 * version * MOMENT_UNIT + secrets.randbelow(MOMENT_UNIT)


def moment_of_append(commit: int) -> int:
    """The moment of a row of which only the commit is known: as if pinned to the version before."""
    return 2 * commit - 1


def came_after(version: int, files: Iterable[DataFile]) -> bool:
    """True when a row change pinned later than a version may have been committed since.

    Args:
        version: what an append is pinned to.
        files: the live files of the newest version.
    """
    return any((file.commit or 0) > version and _may_hold_change_after(version, file) for file in files)


def _may_hold_change_after(version: int, file: DataFile) -> bool:
    stats, bounds = file.stats.get(STAMP), file.bounds(STAMP)
    if bounds is None:
        return stats is None or stats.nulls != file.rows
    first, last = (bound // MOMENT_UNIT for bound in bounds)
    appended = first == last and first % 2 == 1
    return not appended and last >= 2 * (version + 1)


@dataclass(frozen=True)
class RowOrder:
    """The table's memory of the order of its rows. A format keeps it with each commit that Trinity makes.

    Attributes:
        late: stamp -> commit number, of late appends.
        strangers: the newest commit by which another engine may have added rows, which have no stamp; 0 for none. What
            a full compaction has folded is forgotten.
        through: the newest version that this knows of.
    """

    late: Mapping[int, int] = field(default_factory=dict)
    strangers: int = 0
    through: int = 0

    def with_late(self, stamp: int, commit: int) -> RowOrder:
        """With one more late append."""
        return replace(self, late={**self.late, stamp: commit})

    def folded(self, version: int) -> RowOrder:
        """After a full compaction of a version: the winners no longer meet what they were compared with."""
        late = {stamp: commit for stamp, commit in self.late.items() if commit > version}
        return replace(self, late=late, strangers=self.strangers if self.strangers > version else 0)

    def to_json(self) -> str:
        """Read back by :meth:`from_json`."""
        facts = {"late": self.late, "strangers": self.strangers, "through": self.through}
        return json.dumps(facts, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> RowOrder:
        """The order that :meth:`to_json` wrote."""
        data = json.loads(text)
        return cls({int(stamp): commit for stamp, commit in data["late"].items()}, data["strangers"], data["through"])
