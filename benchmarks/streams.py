"""A stream of small batches into a table, compared with ``foreachBatch`` that appends the rows to a Delta table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from benchmarks.data import COLUMNS, changes
from benchmarks.results import Result
from benchmarks.tables import CatalogBench
from benchmarks.timing import in_turns

_BATCHES: Final = 200
"""Number of batches; fewer where tables have fewer than four million rows."""
_WARM: Final = 10
"""Batches of the warm-up, which are not counted."""

_ROWS: Final = 5_000
"""Rows of a batch."""


@dataclass
class StreamBench(CatalogBench):
    """The case of one catalog: 200 files of 5,000 rows each, a file a micro-batch."""

    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def cases(self) -> Iterator[Result]:
        """Measure ``table.stream_writer`` compared with ``foreachBatch``, each into a new table, exactly once."""
        batches = max(2, min(_BATCHES, self.rows // 20_000))
        warm = min(_WARM, batches)
        self._ours(warm)
        self._reference(warm)
        ours, reference = in_turns(
            self.runs.at_most(3), lambda: self._ours(batches), lambda: self._reference(batches), warm=True
        )
        yield Result("200 micro-batches", self.catalog, ours, reference, 1.2, found=batches * _ROWS)

    def _arriving(self, batches: int) -> DataFrame:
        """Return a stream of so many files, each a micro-batch."""
        files, spark = self.folder / f"batches_{batches}", self.session.spark
        if not files.exists():
            changes(spark, self.rows, batches * _ROWS, 300, batches).write.parquet(str(files))
        arriving = spark.readStream.schema(spark.read.parquet(str(files)).schema)
        return arriving.option("maxFilesPerTrigger", 1).parquet(str(files))

    def _ours(self, batches: int) -> None:
        name = f"{self.catalog}.default.streamed_{next(self._numbers)}"
        options = {"watermark-key": "ts", "tombstone-key": "del"}
        table = self.session.create_table(name, COLUMNS, primary_key=["id"], properties=options)
        before = len(table.connector.metadata.history(table.handle))
        table.stream_writer(
            self._arriving(batches), checkpoint=self._checkpoint(), available_now=True
        ).awaitTermination()
        assert len(table.connector.metadata.history(table.handle)) == before + batches

    def _reference(self, batches: int) -> None:
        checkpoint = self._checkpoint()

        def append(batch: DataFrame, number: int) -> None:
            writer = batch.write.format("delta").mode("append")
            writer.option("txnAppId", str(checkpoint)).option("txnVersion", number).save(f"{checkpoint}-table")

        stream = self._arriving(batches).writeStream.foreachBatch(append).option("checkpointLocation", str(checkpoint))
        stream.trigger(availableNow=True).start().awaitTermination()
        assert self.session.spark.read.format("delta").load(f"{checkpoint}-table").count() == batches * _ROWS

    def _checkpoint(self) -> Path:
        return self.folder / f"checkpoint_{self.catalog}_{next(self._numbers)}"
