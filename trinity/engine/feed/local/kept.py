"""Changes on disk, written by this process."""

from __future__ import annotations

from trinity.engine.feed.changelog import TableChangelog
from trinity.engine.feed.local.feed import LocalFeed
from trinity.engine.feed.shape import Form
from trinity.engine.feed.stored import EqualColumns, Written, by_version, writing
from trinity.engine.not_local import NotLocal
from trinity.engine.target import Target
from trinity.spi import from_fragments

__all__ = ["written_locally"]


def written_locally(known: TableChangelog, target: Target, equal_columns: EqualColumns) -> Written | NotLocal:
    """Compute and write the changes of versions that have the same columns; or tell why Spark has to."""
    feed = LocalFeed(target, equal_columns.parts, (), equal_columns.definition, known.producer, Form())
    if (why := feed.why_not()) is not None:
        return why
    rows = feed.rows()
    task = writing(target, known.changelog.store.root, equal_columns.written(target), rows.schema)
    return by_version(from_fragments(task(0, rows.to_reader())))
