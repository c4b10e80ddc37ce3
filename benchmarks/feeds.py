"""The change feed of one commit, computed and from files, compared with a merged read of the whole table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.data import COLUMNS, base_rows, changes
from benchmarks.results import Result
from benchmarks.tables import CatalogBench, scan
from benchmarks.timing import in_turns
from trinity.engine.feed.stored_changes import store_changes


class FeedBench(CatalogBench):
    """The cases of one catalog."""

    def cases(self) -> Iterator[Result]:
        """Measure the feed of a commit of 1 % of the rows, before its changes are stored and after."""
        name = f"{self.catalog}.default.feed"
        options = {"watermark-key": "ts", "tombstone-key": "del"}
        table = self.session.create_table(name, COLUMNS, primary_key=["id"], properties=options)
        spark = self.session.spark
        table.upsert(base_rows(spark, self.rows))
        before = table.compact(full=True).version
        with tempfile.TemporaryDirectory() as folder:
            changed = str(Path(folder) / "changed")
            changes(spark, self.rows, self.rows // 100, 100, 1).write.parquet(changed)
            after = table.upsert(spark.read.parquet(changed)).version
        for case, budget in (("changes, computed", 0.3), ("changes, lookup", 0.05)):
            if budget < 0.3:
                store_changes(table, table.connector.metadata.history(table.handle), [after])
            ours, reference = in_turns(
                self.runs, lambda: scan(table.changes(before, after).to_df()), lambda: scan(table.to_df())
            )
            yield Result(case, self.catalog, ours, reference, budget)
