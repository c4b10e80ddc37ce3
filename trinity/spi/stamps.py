"""Stamps: an order of row versions that survives when other engines rewrite the files (L3).

A row change copies the ordering values of the row that it changes, and wins by arrival (K4). When another engine
rewrites data files, the commit numbers of their rows are lost. So every row carries a stamp, one number for all rows of
a statement. It consists of the version that the statement was pinned to, whether it is an append or a row change, and
random bits, which identify the statement. Files have the stamp from the start. The table has the column from its first
row change on: until then nothing depends on it, and no other engine sees it.

Stamps follow the order of arrival wherever one of two rows of a key is a row change's, since a row change runs again
when a row of its keys was committed after its version. There is one exception: an append that is pinned before a row
change's version and committed after it. Such an append is late, and the table remembers it (:class:`RowOrder`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from trinity.spi.files import DataFile
from trinity.spi.schema import STAMP

MOMENT_UNIT: Final = 1 << 23
"""A stamp divided by this is its moment: twice the version; for an appended row, one more."""
OLDEST: Final = MOMENT_UNIT
"""The stamp that compaction gives to rows without one: older than any row change that it did not fold."""


def append_stamp(version: int) -> int:
    """Return a stamp for the rows of an append that is pinned to a version."""
    return (2 * version + 1) * MOMENT_UNIT + secrets.randbelow(MOMENT_UNIT)


def row_change_stamp(version: int) -> int:
    """Return a stamp for the rows of a row change: later than all that was committed up to its version."""
    return 2 * version * MOMENT_UNIT + secrets.randbelow(MOMENT_UNIT)


def moment_of_append(commit: int) -> int:
    """Return the moment of a row of which only the commit is known: as if pinned to the version before."""
    return 2 * commit - 1


def came_after(version: int, files: Iterable[DataFile]) -> bool:
    """Return whether the files may have rows of a row change that was pinned to a later version than an append.

    Args:
        version: the version to which an append is pinned.
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
    """What a table remembers of the order of its rows. A format stores it with each commit that Trinity makes.

    Attributes:
        late: stamp -> commit number, of late appends.
        strangers: the newest commit by which another engine may have added rows, which have no stamp; 0 for none. A
            full compaction forgets the commits that it folds.
        through: the newest version that it takes into account.
    """

    late: Mapping[int, int] = field(default_factory=dict)
    strangers: int = 0
    through: int = 0

    def with_late(self, stamp: int, commit: int) -> RowOrder:
        """Return this order with one more late append."""
        return replace(self, late={**self.late, stamp: commit})

    def folded(self, version: int) -> RowOrder:
        """Return this order after a full compaction of a version, which folded all rows up to it."""
        late = {stamp: commit for stamp, commit in self.late.items() if commit > version}
        return replace(self, late=late, strangers=self.strangers if self.strangers > version else 0)

    def to_json(self) -> str:
        """Return a JSON text, which :meth:`from_json` reads."""
        facts = {"late": self.late, "strangers": self.strangers, "through": self.through}
        return json.dumps(facts, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> RowOrder:
        """Return the order that :meth:`to_json` wrote."""
        data = json.loads(text)
        return cls({int(stamp): commit for stamp, commit in data["late"].items()}, data["strangers"], data["through"])
