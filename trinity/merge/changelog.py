"""The producer of a table's change feed, which decides what the feed shows: ``changelog-producer`` (C6)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from trinity.merge.engine import MergeEngine
from trinity.merge.options import keeps_versions
from trinity.merge.refusals import not_compacted, not_own_keyed, refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trinity.spi import TableDefinition

__all__ = ["ChangelogProducer", "changelog_producer", "check_changelog", "commits_between"]

_PRODUCER: Final = "changelog-producer"
_DEDUPLICATE: Final = "changelog-producer.row-deduplicate"
_COMMITS: Final = "full-compaction.delta-commits"


class ChangelogProducer(str, Enum):
    """The producer of a table's change feed (C6)."""

    NONE = "none"
    """The merged rows before and after each commit, computed when they are asked for (C1)."""
    INPUT = "input"
    """The rows of each commit as they came, with their row kinds."""
    LOOKUP = "lookup"
    """The same rows as NONE, written right after each commit."""
    FULL_COMPACTION = "full-compaction"
    """The merged rows at a full compaction and at the one before, written by the later one."""

    @property
    def compares(self) -> bool:
        """True when a feed shows merged rows, and only those that changed."""
        return self is not ChangelogProducer.INPUT

    @property
    def writes(self) -> bool:
        """True when the feed is written before it is asked for."""
        return self in (ChangelogProducer.LOOKUP, ChangelogProducer.FULL_COMPACTION)


def changelog_producer(properties: Mapping[str, str]) -> ChangelogProducer:
    """Return the producer that checked properties name."""
    return ChangelogProducer(_word(properties.get(_PRODUCER, ChangelogProducer.NONE.value)))


def commits_between(properties: Mapping[str, str]) -> int | None:
    """Return the number of commits after which a writer compacts fully, by checked properties; None without one."""
    return int(properties[_COMMITS]) if _COMMITS in properties else None


def check_changelog(definition: TableDefinition, engine: MergeEngine) -> None:
    """Refuse options that do not go together, as Paimon does.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY naming the option.
    """
    options = definition.properties
    text = options.get(_PRODUCER, ChangelogProducer.NONE.value)
    known = [producer.value for producer in ChangelogProducer]
    if _word(text) not in known:
        raise refused(definition, f"'{_PRODUCER}' = '{text}'; it is one of {', '.join(known)}.")
    producer = ChangelogProducer(_word(text))
    if producer is not ChangelogProducer.NONE and (why := _against(definition, engine, producer)):
        raise refused(definition, f"'{_PRODUCER}' = '{producer.value}' {why}.")
    deduplicate = options.get(_DEDUPLICATE)
    if deduplicate is not None and _word(deduplicate) not in ("true", "false"):
        raise refused(definition, f"'{_DEDUPLICATE}' = '{deduplicate}'; it is true or false.")
    if deduplicate is not None and not producer.writes:
        raise refused(definition, f"'{_DEDUPLICATE}' needs '{_PRODUCER}' = 'lookup' or 'full-compaction'.")
    if (commits := options.get(_COMMITS)) is not None:
        if not commits.strip().isdecimal() or int(commits) < 1:
            raise refused(definition, f"'{_COMMITS}' = '{commits}'; it is a number from 1 on.")
        if why := _against_compaction(definition, producer):
            raise refused(definition, f"'{_COMMITS}' {why}.")


def _against(definition: TableDefinition, engine: MergeEngine, producer: ChangelogProducer) -> str | None:
    if why := not_own_keyed(definition):
        return why
    if engine is MergeEngine.FIRST_ROW and producer is not ChangelogProducer.LOOKUP:
        return "does not go with merge engine first-row, of which only the first row of a key is ever seen; use lookup"
    if producer is ChangelogProducer.FULL_COMPACTION and keeps_versions(definition.properties):
        return "does not go with 'keep-versions', under which nothing is compacted"
    return None


def _against_compaction(definition: TableDefinition, producer: ChangelogProducer) -> str | None:
    if producer is ChangelogProducer.LOOKUP:
        return f"does not go with '{_PRODUCER}' = 'lookup', which waits for no compaction; use full-compaction"
    return not_compacted(definition)


def _word(text: str) -> str:
    return text.strip().lower().replace("_", "-")
