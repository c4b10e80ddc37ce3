"""The part of a table that reads its merged rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.calls import public
from trinity.engine.target import Target
from trinity.travel import splits_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TableReads"]


@public
class TableReads:
    """Merged reads from Python: methods of :class:`trinity.Table`."""

    def to_df(
        self: Target,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        *,
        where: str | None = None,
    ) -> DataFrame:
        """The merged rows: at most one per key, deleted keys left out; lazy, but for a look at the keys of a large log.

        Of a table with ten thousand base rows and more, the places of the rows that win no key are found at once, by
        a job over key and ordering columns, and remembered: what reads the rows is then a scan, and the next one, too.

        Args:
            version: a version of :meth:`history`.
            timestamp: the newest version that was committed by then; ISO text (in the session's time zone unless
                it says otherwise) or datetime.
            where: a predicate on key columns, Spark SQL over bare names. It may leave out files and rows before
                they are merged, which a filter on the result cannot (L9). Rows are filtered by it.

        Raises:
            TrinityError: SYNTAX_ERROR, NOT_SUPPORTED for what is no predicate; INVALID_ARGUMENTS for an unknown or
                vacuumed version, naming the oldest readable one (L10); BAD_DATA naming a corrupt or missing file.
        """
        from trinity.engine.reading.merged_read import filtered_read

        return filtered_read(self.session, splits_at(self, version, timestamp), where)

    def explain(
        self: Target,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        *,
        where: str | None = None,
    ) -> str:
        """The plan of :meth:`to_df` with these arguments in words: which files, and how; nothing is read.

        Raises:
            TrinityError: as :meth:`to_df`.
        """
        from trinity.engine.reading.merged_read import explained_read

        return explained_read(self.session, splits_at(self, version, timestamp), where)

    def to_arrow(
        self: Target,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """The merged rows as Arrow data in this process's memory, in no order.

        Without a predicate no Spark is needed, and none started, as long as Trinity wrote the files and the engine
        keeps rows whole; other tables are read by Spark.

        Args:
            columns: names of the columns, in any case; all by default.
            where: as of :meth:`to_df`.
            version: as of :meth:`to_df`.
            timestamp: as of :meth:`to_df`.
            limit: the most rows that are wanted; which ones is not said.

        Raises:
            TrinityError: as :meth:`to_df`, and COLUMN_NOT_FOUND.
        """
        from trinity.engine.reading.arrow_read import arrow_rows

        return arrow_rows(self.session, splits_at(self, version, timestamp), columns, where, limit)
