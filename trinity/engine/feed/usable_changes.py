"""The changelog of a table: which of its changes are on disk (C6). Needs no Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from trinity.engine.feed.shape import FeedMode
from trinity.errors import TrinityError
from trinity.merge.properties import ChangelogProducer, changelog_producer
from trinity.spi import CommitOperation, HistoryEntry, TableDefinition
from trinity.storage import Entry, Location
from trinity.storage.changelog import CHANGELOG, Changelog, StoredChanges
from trinity.target import Target

_SHOWN: Final = frozenset({CommitOperation.COMPACT, CommitOperation.REPLACE, CommitOperation.RESTORE})
"""Commits that a feed of full compactions looks at: the last two may have replaced the table."""


@dataclass(frozen=True)
class TableChangelog:
    """A changelog, and what identifies the table's changes in it: the producer of the feed, and the table's id."""

    changelog: Changelog
    producer: ChangelogProducer
    id: str

    @classmethod
    def of(cls, target: Target, folder: str | None) -> TableChangelog:
        """Return the changelog in a folder, by default beside the table's files.

        Raises:
            TrinityError: NOT_SUPPORTED for an external table without a folder.
        """
        definition = target.definition
        if folder is None and definition.external:
            raise TrinityError(
                "NOT_SUPPORTED", f"Table '{target.name}' is external: its changes are not kept beside its files."
            )
        where = folder or Location.of(target.location).join(CHANGELOG)
        return cls(Changelog(where), changelog_producer(definition.properties), definition.id)

    def tag(self, entry: HistoryEntry) -> str:
        """Return the tag of a commit's changes: it differs for another commit of the same number."""
        return _tag(self.id, _kind(self.producer), entry.commit_id)

    def rows_tag(self, entry: HistoryEntry) -> str:
        """Return the tag of a version's merged rows. Its changes, and other commits of its number, have other tags."""
        return _tag(self.id, "rows", entry.commit_id)

    def find(self, entries: Iterable[HistoryEntry]) -> dict[int, StoredChanges]:
        """Return, by version, the changes that are on disk; also the versions that are known to have none."""
        found = {}
        for entry in entries:
            if self._empty(entry):
                found[entry.version] = StoredChanges(entry.version)
            elif (changes := self._stored(entry)) is not None:
                found[entry.version] = changes
        return found

    def _stored(self, entry: HistoryEntry) -> StoredChanges | None:
        stored = (self.changelog.find(entry.version, tag) for tag in _tags(self.id, _kind(self.producer), entry))
        return next((changes for changes in stored if changes is not None), None)

    def _empty(self, entry: HistoryEntry) -> bool:
        """Return True for a commit that shows no changes, whatever it did."""
        if self.producer is ChangelogProducer.FULL_COMPACTION:
            return entry.operation not in _SHOWN
        return entry.keeps_rows


def found_changes(
    target: Target, entries: Sequence[HistoryEntry], producer: ChangelogProducer
) -> dict[int, StoredChanges]:
    """Return a producer's changes that are on disk, by version; commits that show none have an empty entry."""
    if target.definition.external:
        return {}
    known = TableChangelog.of(target, None)
    return replace(known, producer=producer).find(entries)


def is_usable(
    stored: StoredChanges, definition: TableDefinition, mode: FeedMode, producer: ChangelogProducer, *, restored: bool
) -> bool:
    """Return False for changes that must be computed again.

    Net changes of a plain table always are. So are the changes of a restore that lack a column of the feed: the restore
    may have removed that column's values. Rows as they came in may repeat a key, which cannot be compared again (C6).
    """
    if not stored.files:
        return True
    if producer is ChangelogProducer.INPUT and mode.recomputes(stored.columns, definition.visible):
        return False
    if restored and not {c.identity for c in definition.visible} <= {c.identity for c in stored.columns}:
        return False
    return definition.keyed or not mode.recomputes(stored.columns, definition.visible)


def prune(
    target: Target, history: Sequence[HistoryEntry], older_than_ms: int, folder: str | None = None
) -> list[Entry]:
    """Delete the changes of versions that cannot be read any more, and unlisted files that are older than a time.

    Returns:
        the deleted Parquet files.
    """
    known = TableChangelog.of(target, folder)
    kinds = {_kind(producer) for producer in ChangelogProducer}
    wanted = [(entry.version, tag) for entry in history for kind in kinds for tag in _tags(known.id, kind, entry)]
    return known.changelog.prune(wanted, older_than_ms)


def _kind(producer: ChangelogProducer) -> str:
    """Return the name under which a producer's changes are kept; two producers share one."""
    return "changes" if producer in (ChangelogProducer.NONE, ChangelogProducer.LOOKUP) else producer.value


def _tags(table: str, kind: str, entry: HistoryEntry) -> Iterator[str]:
    """Yield the tags that a commit's changes may have: its own, and that of older releases, made of its time."""
    yield _tag(table, kind, entry.commit_id)
    yield _tag(table, kind, str(entry.timestamp_ms))


def _tag(table: str, kind: str, commit: str) -> str:
    return hashlib.sha256(f"{table}/{kind}/{commit}".encode()).hexdigest()[:16]
