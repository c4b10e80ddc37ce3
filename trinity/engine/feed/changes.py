"""The change feed of a table as a result, computed in this process or by Spark (C1-C5)."""

from __future__ import annotations

from trinity.engine.executes import NotLocal, ThisProcess, execute
from trinity.engine.feed.interval import Bound
from trinity.engine.feed.local.change_feed import LocalFeed, timed
from trinity.engine.feed.plan import FeedPlan, part_between
from trinity.engine.feed.shape import FeedMode
from trinity.result import Result
from trinity.target import Target


def changes(target: Target, start: Bound, end: Bound | None, mode: FeedMode) -> Result:
    """Return the rows of the feed, lazily. Raises as :func:`trinity.engine.feed.spark.change_feed.change_feed`."""
    part, splits = part_between(target, start, end)

    def local(process: ThisProcess) -> Result | NotLocal:
        if (why := process.why_not_read(splits.files)) is not None:
            return why
        feed = LocalFeed.of(target, part, splits.definition, mode)
        return feed.why_not() or Result(target.session, lambda: timed(feed.rows(), part.entries).to_reader())

    def by_spark() -> Result:
        from trinity.engine.feed.spark.change_feed import feed_of

        return Result(target.session, feed_of(FeedPlan.of(target, part, splits.definition, mode), part.entries))

    return execute(target.session, f"changes() of '{target.name}'", local, by_spark)
