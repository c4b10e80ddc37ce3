"""A run of appends: the keys that it touched, and the moments from which its row versions exist.

A key's moments are the versions that appended to it, and the version before the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from trinity.engine.feed.spark.picked_rows import pickable, picked_rows
from trinity.engine.feed.steps import FIRST
from trinity.engine.reading.files import may_share_keys, tiers, well_bucketed
from trinity.engine.reading.spark.fold import without_null_keys
from trinity.engine.reading.spark.row_arrival import POSITION_BITS
from trinity.engine.reading.spark.scan import bucketed_scan, plain_scan
from trinity.hidden import ARRIVAL
from trinity.limits import Limit
from trinity.merge.spec import MergeSpec
from trinity.spark_names import DataFrame, F
from trinity.spi import DataFile, SplitSource
from trinity.storage.parquet_files import have_more_rows
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_KEYS: Final = Limit(500_000)
"""Most keys that are broadcast to every task."""


@dataclass(frozen=True)
class Appends:
    """Consecutive commits that only added row versions.

    ``splits`` is the version that the last of them made; ``versions`` has the version that added each of their files.
    """

    spark: SparkSession
    splits: SplitSource
    spec: MergeSpec
    versions: Mapping[str, int]

    @cached_property
    def files(self) -> list[DataFile]:
        """The files that the commits added."""
        return [file for file in self.splits.files if file.path in self.versions]

    @cached_property
    def few(self) -> bool:
        """True when the touched keys are few enough to be broadcast to every task."""
        return not have_more_rows(self.files, MOST_KEYS.value)

    @property
    def keys(self) -> DataFrame:
        """The touched keys, once for each row version."""
        rows = plain_scan(self.spark, self.files, self.splits.storage)
        return without_null_keys(rows, self.splits, self.spec).select(*map(quoted, self.spec.key))

    def of(self, rows: DataFrame) -> DataFrame:
        """Return the rows whose keys were touched."""
        return self._among(rows, F.broadcast(self.keys) if self.few else self.keys)

    def of_base(self) -> DataFrame | None:
        """Return the base rows of touched keys, in storage form; None when there can be none."""
        base = tiers(self.splits.files)[0]
        needed = self._may_hold_touched(base)
        if not needed:
            return None
        if self.few and pickable(self.splits, self.files):
            return picked_rows(self.spark, self.splits, self.spec.key, needed, self.files)
        buckets = None if self.few else well_bucketed(base, self.splits.definition)
        if not buckets:
            return self.of(plain_scan(self.spark, needed, self.splits.storage))
        # the rows are neither exchanged nor sorted; only the keys are
        rows = bucketed_scan(self.spark, needed, self.splits.storage, self.spec.key, buckets)
        return self._among(rows, self.keys.repartition(buckets, *map(quoted, self.spec.key)))

    @cached_property
    def needed(self) -> SplitSource:
        """The version, with only those files that may hold a touched key."""
        return replace(self.splits, files=tuple(self._may_hold_touched(self.splits.files)))

    def since(self, in_order: Sequence[DataFile]) -> str:
        """Return Spark SQL for the moment from which a row exists: that of its file, whose number its arrival has."""
        moments = ", ".join(f"{self.versions.get(file.path, FIRST)}L" for file in in_order)
        ordinal = f"CAST(shiftright({ARRIVAL}, {POSITION_BITS}) AS INT)"
        return f"IF({ARRIVAL} < 0, {FIRST}L, element_at(array({moments}), {ordinal} + 1))"

    def _among(self, rows: DataFrame, keys: DataFrame) -> DataFrame:
        return rows.join(keys, list(self.spec.key), "left_semi").select(*map(quoted, rows.columns))

    def _may_hold_touched(self, files: Sequence[DataFile]) -> list[DataFile]:
        """Return the files that may hold a touched key."""
        return may_share_keys(files, self.files, self.splits.definition)
