"""Changes on disk: the feed of a version never changes (C3), so its files are written once and then read.

They are written right after a commit, as ``changelog-producer`` asks, or when a caller asks for the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from trinity.engine.executes import NotLocal, ThisProcess, execute
from trinity.engine.feed.interval import Interval, unknown_version
from trinity.engine.feed.local.change_feed import LocalFeed
from trinity.engine.feed.shape import VERSION, FeedMode
from trinity.engine.feed.steps import splits_within
from trinity.engine.feed.stored_form import Written, by_version, stored_columns, writing, written_columns
from trinity.engine.feed.usable_changes import TableChangelog
from trinity.spi import HistoryEntry, from_fragments
from trinity.storage.changelog import StoredChanges
from trinity.target import Target


def store_changes(
    target: Target, history: list[HistoryEntry], versions: Sequence[int], folder: str | None = None
) -> list[StoredChanges]:
    """Return where the changes of versions are on disk; compute and write missing ones.

    They are in the table's folder, or in ``folder``, which an external table needs.

    Returns:
        the changes of each version, in the order asked for.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that cannot be read, or whose predecessor cannot, unless its
            changes are on disk; NOT_SUPPORTED for an external table without a folder; FILESYSTEM_ERROR or
            PERMISSION_DENIED for files that cannot be written.
    """
    indexes = {entry.version: number for number, entry in enumerate(history)}
    if unknown := [version for version in versions if version not in indexes]:
        raise unknown_version(target, unknown[0], history)
    known = TableChangelog.of(target, folder)
    found = known.find([history[indexes[version]] for version in versions])
    missing = sorted(indexes[version] for version in {*versions}.difference(found))
    if missing:
        for feed in _feeds_of_equal_columns(known, target, history, missing):
            found |= _listed(known, feed, _write_changes(known, feed))
    return [found[version] for version in versions]


def _write_changes(known: TableChangelog, feed: LocalFeed) -> Written:
    """Compute and write the changes of a feed into files, partitioned by version."""
    target, folder = feed.target, known.changelog.store.root
    written = replace(written_columns(feed.columns), partition_by=(VERSION,), properties=target.properties)

    def local(process: ThisProcess) -> Written | NotLocal:
        if (why := process.why_not_read(target.splits().files) or feed.why_not()) is not None:
            return why
        rows = feed.rows()
        return by_version(from_fragments(writing(target, folder, written, rows.schema)(0, rows.to_reader())))

    def by_spark() -> Written:
        from trinity.engine.feed.spark.stored_changes import written_by_spark

        return written_by_spark(feed, folder, written)

    return execute(target.session, f"The changes of '{target.name}'", local, by_spark)


def _listed(known: TableChangelog, feed: LocalFeed, files: Written) -> dict[int, StoredChanges]:
    columns = stored_columns(feed.columns)
    return {
        entry.version: known.changelog.put(entry.version, known.tag(entry), columns, files.get(entry.version, ()))
        for part in feed.parts
        for entry in part.entries
    }


def _feeds_of_equal_columns(
    known: TableChangelog, target: Target, history: list[HistoryEntry], indexes: Sequence[int]
) -> Iterator[LocalFeed]:
    """Yield a feed for each run of versions with the same columns; ``indexes`` are their places in the history."""
    shown = ((splits_within(target, history[index].version).definition, index) for index in indexes)
    for _, group in groupby(shown, lambda found: found[0].visible):
        alike = list(group)
        stop = alike[-1][1] + 1
        others = {history[n].version for n in range(stop)} - {history[n].version for _, n in alike}
        parts = Interval(history, 0, stop).without(others)
        yield LocalFeed(target, parts, (), alike[0][0], known.producer, FeedMode())
