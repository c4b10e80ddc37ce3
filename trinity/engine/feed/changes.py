"""The change feed of a table as a result, whoever computes it (C1-C5)."""

from __future__ import annotations

from trinity.engine.executes import NotLocal, execute, size_of
from trinity.engine.feed.interval import Bound, interval
from trinity.engine.feed.local.feed import LocalFeed, timed
from trinity.engine.feed.shape import FeedMode, check_names, check_net
from trinity.result import Result
from trinity.target import Target


def changes(target: Target, start: Bound, end: Bound | None, mode: FeedMode) -> Result:
    """Return the rows of the feed, lazily. Raises as :func:`trinity.engine.feed.spark.change_feed.change_feed`."""
    part = interval(target, target.connector.metadata.history(target.handle), start, end)
    last = part.entries[-1] if part.entries else part.before
    splits = target.splits(last.version if last else None)
    check_names(target, splits.definition)
    check_net(target, mode)

    def local() -> Result | NotLocal:
        feed = LocalFeed.of(target, part, splits.definition, mode)
        why = feed.why_not()
        return why or Result(target.session, lambda: timed(feed.rows(), part.entries).to_reader())

    def by_spark() -> Result:
        from trinity.engine.feed.spark.change_feed import feed_of

        return Result(target.session, feed_of(target, part, splits.definition, mode))

    return execute(target.session, f"changes() of '{target.name}'", local, by_spark, size=size_of(splits.files))
