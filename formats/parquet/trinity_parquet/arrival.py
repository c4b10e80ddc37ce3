"""The files of a folder that others write: the time at which each arrived, and the mark that identifies it.

On a disk a file arrives at its modification time, which Trinity sets for the files that it writes. In a bucket nobody
can set that time, and a copy gets a new one. So the names of Trinity's files hold the time there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trinity.storage import ObjectStore, Stat

NS_PER_MS: Final = 1_000_000
_ENDINGS: Final = (".parquet", ".parq", ".pq")
_HIDDEN: Final = "._"
"""A file whose name begins with one of these characters is no data file."""
_TIMED: Final = re.compile(r"trinity-\d{20}-[0-9a-f]{32}-\d{6,}-at(\d{20})\.parquet")

Mark = tuple[int, int] | tuple[int, int, str]
"""What identifies a file: its arrival time in nanoseconds and its bytes; in a bucket also the ETag of others' files."""


def mark_of(store: ObjectStore, path: str, found: Stat) -> Mark:
    """Return the mark of a file. In a bucket ``found`` must come from a listing: ``stat`` may give coarser times.

    On a disk times are fine enough to identify a file together with its size. In a bucket they may be whole seconds, so
    the mark has the ETag too. Files that Trinity put into a bucket have their time in the name instead, so that copying
    one again does not change its mark.
    """
    if store.on_disk:
        return found.modified_ns, found.size
    named = _TIMED.fullmatch(path.rpartition("/")[2])
    return (int(named[1]), found.size) if named else (found.modified_ns, found.size, found.tag)


def walk(store: ObjectStore) -> Iterator[tuple[str, Mark]]:
    """Yield the data files below a folder with their marks, in no particular order."""
    return ((path, mark_of(store, path, found)) for path, found in store.walk(*_ENDINGS, hidden=_HIDDEN))


def file_name(store: ObjectStore, claim: int, statement: str, number: int, at_ns: int) -> str:
    """Return the name of a file that Trinity puts into a folder. Among files of one arrival time it gives the order.

    Args:
        store: the folder.
        claim: number of the commit.
        statement: the statement that writes the file.
        number: position of the file in the commit, from 0.
        at_ns: its arrival time, nanoseconds since the epoch.
    """
    at = "" if store.on_disk else f"-at{at_ns:020d}"
    return f"trinity-{claim:020d}-{statement}-{number:06d}{at}.parquet"
