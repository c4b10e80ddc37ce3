"""Compaction in a background thread, while a stream runs."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any, Final

from trinity.calls import as_trinity
from trinity.engine.compacting.after_commit import begin, compact_newest
from trinity.loggers import logger
from trinity.merge.compaction_strength import Strength
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log: Final = logger("trinity.streaming")
_LEAST: Final = 2
"""The fewest commits that can be folded into one run."""


class BackgroundCompactor:
    """The background compaction of a table, by levels, after each ``every`` commits of a stream, which never waits."""

    def __init__(self, table: Target, every: int) -> None:
        self._table = table
        self._every = every
        self._group = f"trinity compaction {uuid.uuid4()}"
        self._mutex = threading.Lock()
        self._waiting = 0
        self._running = self._ended = False

    def count_commit(self) -> None:
        """Count a commit. Begin a compaction if it is due, and no other compaction of the table runs."""
        with self._mutex:
            self._waiting += 1
            if not self._ended and self._waiting >= self._every and begin(self._table, self._run, daemon=True):
                self._waiting = 0

    def end_with(self, query: StreamingQuery) -> None:
        """Begin no compaction any more once the query has ended, and cancel the Spark jobs of a running one."""
        threading.Thread(target=self._wait, args=[query], name=f"end of {query.id}", daemon=True).start()

    def _wait(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
        except Exception as error:  # the caller, who has the query, handles it
            _log.debug("%s: query %s has failed: %s", self._table.name, query.id, type(error).__name__)
        with self._mutex:
            self._ended = True
            if not self._running:
                return
        context: Any = query._jsq.sparkSession().sparkContext()  # Spark may have ended with its queries
        context.cancelJobGroupAndFutureJobs(self._group)

    def _run(self) -> None:
        with self._mutex:
            if self._ended:
                return
            self._running = True
        table = self._table
        try:
            table.session.spark.sparkContext.setJobGroup(self._group, f"compaction of {table.name}")
            done = compact_newest(table, Strength.MINOR, max(self._every, _LEAST))
            if not done.skipped:
                _log.info("%s: compacted in version %d.", table.name, done.version)
        except Exception as error:
            self._report(error)
        finally:
            with self._mutex:
                self._running = False

    def _report(self, error: Exception) -> None:
        known = as_trinity(error)
        if known.code == "TRANSACTION_CONFLICT":
            _log.info("%s: another compaction was faster: %s", self._table.name, known.message)
        elif self._ended:
            _log.info("%s: the compaction ends with its query.", self._table.name)
        else:
            _log.warning("%s: the compaction beside the stream fails: %s", self._table.name, known)
