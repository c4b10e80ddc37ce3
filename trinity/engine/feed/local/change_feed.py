"""The change feed as Arrow data in this process: feeds that need no Spark, and the reasons why others need it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.executes import NotLocal
from trinity.engine.feed.local.appends import Appends
from trinity.engine.feed.local.compared import compared_pairs
from trinity.engine.feed.local.counted import counted_changes, is_counted
from trinity.engine.feed.local.equal_values import is_comparable
from trinity.engine.feed.local.images import Pairs, feed_schema, in_mode, paired, unioned
from trinity.engine.feed.local.ingested import ingested_rows
from trinity.engine.feed.local.moments import folded_pairs
from trinity.engine.feed.local.rows import InColumns, why_not_shown
from trinity.engine.feed.local.whole_rows import whole_row_pairs
from trinity.engine.feed.plan import FeedPlan
from trinity.engine.feed.shape import TIMESTAMP, VERSION
from trinity.engine.feed.steps import Step, runs
from trinity.engine.feed.stored_form import MARKS, stored_schema, written_columns
from trinity.engine.reading.plan import plan_read
from trinity.spi import DataFile, HistoryEntry, SplitSource
from trinity.storage.changelog import StoredChanges
from trinity.storage.parquet_files import parquet_footer


class LocalFeed(FeedPlan):
    """A plan of a feed that this process can execute without Spark."""

    def why_not(self) -> NotLocal | None:
        """Return why this process cannot compute the feed, or None.

        Raises:
            TrinityError: as :func:`~trinity.engine.feed.steps.steps` and
                :func:`~trinity.engine.feed.compaction_intervals.compaction_intervals`.
        """
        known = [self._why_not_by_step(step) for _, found in self.groups for step in found]
        known += [why_not_shown(step.after.definition.visible, self.columns) for step in self.passthrough_steps]
        known += [why_not_shown(stored.columns, self.columns) for stored in self.stored]
        kinds = self.definition.with_columns(self.columns).to_arrow().types
        comparable = is_comparable if self.definition.keyed else is_counted
        if not all(map(comparable, kinds)):
            known.append(NotLocal("Arrow does not compare values of all of its columns"))
        return next((why for why in known if why is not None), None)

    def _why_not_by_step(self, step: Step) -> NotLocal | None:
        both = (step.before, step.after)
        known = (
            (plan_read(splits).not_local, why_not_shown(splits.definition.visible, self.columns)) for splits in both
        )
        return next((why for whys in known for why in whys if why is not None), None)

    # -- the rows -----------------------------------------------------------------------------------------

    def rows(self) -> pa.Table:
        """Return the rows of the feed, without their commits' times. Raises BAD_DATA naming a file."""
        shown = self._of_keys() if self.definition.keyed else self._of_rows()
        return pa.concat_tables([feed_schema(self.columns).empty_table(), *shown])

    def _of_rows(self) -> Iterable[pa.Table]:
        """Yield the changes of a plain table."""
        yield from map(self._on_disk, self.stored)
        for _, found in self.groups:
            if found:
                yield counted_changes(found, self.columns, net=self.mode.net)

    def _of_keys(self) -> Iterable[pa.Table]:
        """Yield the changes of a keyed table."""
        yield from (in_mode(ingested_rows(step, self.columns), self.mode) for step in self.passthrough_steps)
        key, pairs = self.definition.primary_key, list[Pairs]()
        for version, found in self.groups:
            mine = [self._pairs(run) for run in runs(found)]
            if version is not None and mine:
                net = unioned(mine).net(key)
                mine = [Pairs(net.rows, net.before, net.after, np.full(len(net.versions), version))]
            pairs += mine
        for stored in self.stored:
            if not self.mode.recomputes(stored.columns, self.columns):
                yield in_mode(self._on_disk(stored), self.mode)
            elif stored.files:
                pairs.append(paired(self._on_disk(stored), self.columns, key).that_differ())
        if self.mode.net and pairs:
            pairs = [unioned(pairs).net(key)]
        yield from (each.shown(self.mode) for each in pairs)

    def _pairs(self, run: list[Step]) -> Pairs:
        if run[0].appends:
            appends = Appends.of(run)
            found = folded_pairs if appends.spec.by_column else whole_row_pairs
            return found(appends, self.columns)
        return compared_pairs(run[0], self.columns, self.definition.primary_key)

    def _on_disk(self, stored: StoredChanges) -> pa.Table:
        """Return stored changes as rows of the feed."""
        written = written_columns(stored.columns)
        splits = SplitSource(0, 0, written, stored_schema(written), ())
        shown = InColumns(splits, (*self.columns, *MARKS))
        files = [DataFile(path, 0, parquet_footer(path).num_rows) for path in stored.files]
        return shown.at((file, np.arange(file.rows)) for file in files)


def timed(rows: pa.Table, entries: Sequence[HistoryEntry]) -> pa.Table:
    """Add the times of their commits to the rows of a feed."""
    times = {entry.version: entry.timestamp_ms * 1000 for entry in entries}
    index = pc.index_in(rows.column(VERSION), pa.array(times, pa.int64())).combine_chunks()
    moments = pa.array(times.values(), pa.int64()).cast(pa.timestamp("us", "UTC"))
    return rows.append_column(TIMESTAMP, moments.take(index))
