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
"""First characters of the names that are no data."""
_TIMED: Final = re.compile(r"trinity-\d{20}-[0-9a-f]{32}-\d{6,}-at(\d{20})\.parquet")

Mark = tuple[int, int] | tuple[int, int, str]
"""What identifies a file: its arrival time in nanoseconds and its bytes; in a bucket also the ETag of others' files."""


def mark_of(store: ObjectStore, path: str, found: Stat) -> Mark:
    """Return the mark of a file; in a bucket from a listing, whose times may be finer than those of ``stat``.

    Times of a disk are fine enough by themselves; those of a bucket may be whole seconds. The mark of a file that
    Trinity put into a bucket does not change when the file is copied again.
    """
    if store.on_disk:
        return found.modified_ns, found.size
    named = _TIMED.fullmatch(path.rpartition("/")[2])
    return (int(named[1]), found.size) if named else (found.modified_ns, found.size, found.tag)


def walk(store: ObjectStore) -> Iterator[tuple[str, Mark]]:
    """Yield the data files below a folder, in no order, with their marks."""
    return ((path, mark_of(store, path, found)) for path, found in store.walk(*_ENDINGS, hidden=_HIDDEN))


def file_name(store: ObjectStore, claim: int, statement: str, number: int, at_ns: int) -> str:
    """Return the name of a file that Trinity puts into a folder. Names of one time sort in arrival order.

    Args:
        store: the folder.
        claim: number of the commit.
        statement: the statement that writes the file.
        number: counts the files of the commit.
        at_ns: its arrival time, nanoseconds since the epoch.
    """
    at = "" if store.on_disk else f"-at{at_ns:020d}"
    return f"trinity-{claim:020d}-{statement}-{number:06d}{at}.parquet"
