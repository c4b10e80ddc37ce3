"""The files of a folder of others: when each came, and the mark that tells it from another of its name.

On a disk a file came at its modification time, which Trinity sets of those that it writes. In a bucket nobody sets that
time, and a copy has one of its own; so the names of Trinity's files say it there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trinity.storage import ObjectStore, Stat

__all__ = ["NS_PER_MS", "Mark", "file_name", "mark_of", "walk"]

NS_PER_MS: Final = 1_000_000
_ENDINGS: Final = (".parquet", ".parq", ".pq")
_HIDDEN: Final = "._"
"""Signs before the names of what is no data."""
_TIMED: Final = re.compile(r"trinity-\d{20}-[0-9a-f]{32}-\d{6,}-at(\d{20})\.parquet")

Mark = tuple[int, int] | tuple[int, int, str]
"""The mark that a file is known by: when it came in nanoseconds, and bytes; of others' in a bucket the ETag, too."""


def mark_of(store: ObjectStore, path: str, found: Stat) -> Mark:
    """The mark of a file of which this is known; in a bucket from a listing, which may tell finer times than a look.

    Times of a disk are fine enough by themselves, those of a bucket may be whole seconds. A file that Trinity put there
    stays what it is when it is copied again.
    """
    if store.on_disk:
        return found.modified_ns, found.size
    named = _TIMED.fullmatch(path.rpartition("/")[2])
    return (int(named[1]), found.size) if named else (found.modified_ns, found.size, found.tag)


def walk(store: ObjectStore) -> Iterator[tuple[str, Mark]]:
    """The data files below a folder, in no order, with their marks."""
    return ((path, mark_of(store, path, found)) for path, found in store.walk(*_ENDINGS, hidden=_HIDDEN))


def file_name(store: ObjectStore, claim: int, statement: str, number: int, at_ns: int) -> str:
    """Name of a file that Trinity puts into a folder; names of one time sort in the order of arrival.

    Args:
        store: the folder.
        claim: number of the commit.
        statement: whose file it is.
        number: counts the files of the commit.
        at_ns: when it counts as come, nanoseconds since the epoch.
    """
    at = "" if store.on_disk else f"-at{at_ns:020d}"
    return f"trinity-{claim:020d}-{statement}-{number:06d}{at}.parquet"
