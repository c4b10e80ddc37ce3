"""Micro-batches as commits: each is one commit, which records the query and the batch's number (L4)."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trinity.calls import public
from trinity.clock import now
from trinity.engine.appending.append import evolve_table, given_rows, is_spark_frame, write_rows
from trinity.engine.compacting.after_commit import after_commit
from trinity.engine.streaming.background import BackgroundCompactor
from trinity.errors import TrinityError
from trinity.loggers import logger
from trinity.merge.spec import merge_spec
from trinity.spi import CommitResult, TableDefinition, TransactionId, from_fragments
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ApplyBatch = Callable[["DataFrame", TransactionId], tuple[CommitResult, str] | None]
"""A function that commits the rows of a batch with its ``txn``. It returns the commit and a text for the log, or None
where there are no rows."""

_log: Final = logger("trinity.streaming")
_QUERY_ID: Final = "sql.streaming.queryId"
"""The local property of Spark's context with the id of a micro-batch's query."""


@dataclass(frozen=True)
class StreamOptions:
    """The keyword arguments of :meth:`trinity.Table.stream_writer`."""

    checkpoint: str | Path
    query_name: str | None = None
    available_now: bool = False
    processing_time: str | None = None
    transform: Callable[[DataFrame], Any] | None = None
    compact_every: int | None = None
    evolve: bool = False
    apply: ApplyBatch | None = None
    """Commits the rows of a batch, instead of an append. It is no argument of ``stream_writer``."""

    def check(self) -> None:
        """Check the options. Raises INVALID_ARGUMENTS."""
        if not str(self.checkpoint).strip():
            raise TrinityError("INVALID_ARGUMENTS", "checkpoint: the folder has no name; give each stream its own.")
        if self.available_now and self.processing_time is not None:
            raise TrinityError("INVALID_ARGUMENTS", "Give available_now or processing_time, not both.")
        if self.compact_every is not None and self.compact_every < 1:
            raise TrinityError("INVALID_ARGUMENTS", f"compact_every={self.compact_every}: give 1 or more commits.")


class Batches:
    """The micro-batches of one run of a query, as commits.

    A checkpoint belongs to one query id for good. Batches come in order. Only the first batch of a run may have been
    committed before, if the process ended after the table's commit and before Spark noted it. Any other batch that the
    table already has is a different batch of the same number: the checkpoint is a copy, or was put back to an earlier
    state. Skipping such a batch would lose rows. A table that has fewer batches than earlier in the run was itself put
    back to an earlier state.
    """

    def __init__(
        self, table: Target, options: StreamOptions, planned: int, compactor: BackgroundCompactor | None = None
    ) -> None:
        """Prepare a run. ``planned`` is the highest batch in the checkpoint; the compactor counts the commits."""
        self._table = table
        self._options = options
        self._planned = planned
        self._compactor = compactor
        self._apply = options.apply or self._append
        self._first: int | None = None
        self._known: int | None = None
        """The newest batch that the table has, as far as this run knows; None before the first look, or without any."""

    @public
    def write(self, rows: DataFrame, batch: int) -> None:
        """Commit a micro-batch, unless it was committed before, or has no rows."""
        started = time.monotonic()
        query = str(rows.sparkSession.sparkContext.getLocalProperty(_QUERY_ID))
        txn = (f"stream {query}", batch)
        self._first = batch if self._first is None else self._first
        if self._is_done(txn):
            _log.info("%s: batch %d of query %s was committed before.", self._table.name, batch, query)
            return
        committed = self._apply(transformed(self._table, rows, self._options.transform), txn)
        if committed is None:
            _log.debug("%s: batch %d of query %s has no rows.", self._table.name, batch, query)
            return
        result, newest = committed
        if result.skipped and not self._may_be_repeated(batch):
            raise self._foreign_batch_error(txn, batch)
        self._known = batch
        _log.info(
            "%s: batch %d of query %s: %d rows, version %d, %.3f s%s.",
            *(self._table.name, batch, query, result.rows, result.version, time.monotonic() - started, newest),
        )
        if self._compactor is not None:
            self._compactor.count_commit()

    def _is_done(self, txn: TransactionId) -> bool:
        """Return True when the table has the batch.

        Raises:
            TrinityError: INVALID_ARGUMENTS if the table has another batch of this number, or a later one, or has lost a
                batch.
        """
        recorded = self._table.connector.metadata.recorded_txn(self._table.handle, txn[0])
        if self._known is not None and (recorded is None or recorded < self._known):
            raise self._lost_batch_error(txn, self._known)
        self._known = recorded
        if recorded is None or recorded < txn[1]:
            return False
        if recorded == txn[1] and self._may_be_repeated(recorded):
            return True
        raise self._foreign_batch_error(txn, recorded)

    def _may_be_repeated(self, batch: int) -> bool:
        return batch == self._first and batch <= self._planned

    def _foreign_batch_error(self, txn: TransactionId, recorded: int) -> TrinityError:
        return TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{self._table.name}' has batch {recorded} of {txn[0]} already, and checkpoint "
            f"'{self._options.checkpoint}' is at batch {txn[1]}: it is a copy of another one, or was put back to an "
            "earlier state, and the rows of the batches between might be lost or doubled. Begin a new checkpoint where "
            "the table ends, or put table and checkpoint back together.",
        )

    def _lost_batch_error(self, txn: TransactionId, known: int) -> TrinityError:
        return TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{self._table.name}' had batch {known} of {txn[0]} and has it no more: it was put back to an "
            "earlier state, or made anew, and lacks the rows of that batch, which checkpoint "
            f"'{self._options.checkpoint}' has passed. Put table and checkpoint back together, or begin a new "
            "checkpoint where the table ends.",
        )

    def _append(self, rows: DataFrame, txn: TransactionId) -> tuple[CommitResult, str] | None:
        metadata = self._table.connector.metadata
        if self._options.evolve:
            rows = evolve_table(self._table, rows)
        insert = metadata.begin_insert(self._table.handle)
        fragments = write_rows(self._table, insert, rows)
        if not fragments:
            return None
        done = metadata.finish_insert(insert, fragments, txn)
        after_commit(self._table, insert.definition, done)
        return done, _newest(insert.definition, fragments)


def _newest(definition: TableDefinition, fragments: Sequence[bytes]) -> str:
    """Return text for the log: the newest watermark written, and its distance from now; empty without a watermark."""
    spec = merge_spec(definition) if definition.keyed else None
    if not spec or not spec.ordering or spec.descending:
        return ""
    name, names = spec.ordering[0], definition.stored_names
    bounds = [f.renamed(names).bounds(name) for f in from_fragments(list(fragments))]
    highest = [found[1] for found in bounds if found is not None]
    if not highest:
        return ""
    newest = max(highest)
    if definition.column(name).type != "timestamp" or not isinstance(newest, dt.datetime):
        return f", newest {name} {newest}"
    zoned = newest if newest.tzinfo else newest.replace(tzinfo=dt.UTC)
    return f", newest {name} {newest}, {(now() - zoned).total_seconds():.1f} s behind"


def transformed(table: Target, rows: DataFrame, transform: Callable[[DataFrame], Any] | None) -> DataFrame:
    """Return the rows that ``transform`` makes of a batch; without ``transform``, the batch itself.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a result that is no DataFrame of a batch.
        Exception: whatever ``transform`` raises.
    """
    if transform is None:
        return rows
    found = given_rows(transform(rows))
    if is_spark_frame(found) and not found.isStreaming:
        frame: DataFrame = found
        return frame
    raise TrinityError(
        "INVALID_ARGUMENTS",
        f"transform of the rows for '{table.name}' gives a {type(found).__name__}; it is to give the DataFrame of the "
        "rows to write.",
    )
