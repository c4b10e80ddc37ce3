"""The execution of plans of reads as DataFrames of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trinity.engine.reading.hidden_rows import hidden_rows
from trinity.engine.reading.plan import FoldPlan, ReadPlan, ReadStrategy
from trinity.engine.reading.predicate import Predicate
from trinity.engine.reading.search import LOG, Search, search_in_process
from trinity.engine.reading.spark import fold_by_column as by_column
from trinity.engine.reading.spark.fold import join_with_base, newest_versions, without_null_keys
from trinity.engine.reading.spark.scan import bucketed_scan, log_scan, plain_scan, version_scan
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.engine.writing.spark.run_sinks import run_on_spark
from trinity.errors import TrinityError
from trinity.hidden import DELETED
from trinity.loggers import logger
from trinity.spark.remote import parallelism, runs_in_process
from trinity.spark.texts import with_char
from trinity.spark_names import DataFrame, F, PySparkException
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log: Final = logger("trinity.reading")


@dataclass(frozen=True)
class SparkExecutor:
    """The executor of reads by Spark.

    Attributes:
        keys: values of some key columns under their names: rows with other values are left out before the fold; None
            to leave out none.
        few: True when the keys are known to be few enough to be broadcast.
    """

    spark: SparkSession
    keys: DataFrame | None = None
    few: bool = True

    def rows(self, plan: ReadPlan) -> DataFrame:
        """Return the merged rows: visible columns in their logical types, one row for each live key."""
        return to_user_columns(self._live(plan), plan.splits)

    def _live(self, plan: ReadPlan) -> DataFrame:
        if plan.spec is None:
            return version_scan(self.spark, plan.files, plan.splits)
        storage = plan.splits.storage
        if plan.strategy is ReadStrategy.SCAN:  # compacted: a file scan and nothing above it
            return self._rows_of_keys(plain_scan(self.spark, plan.files, storage), plan.key_filter)
        hidden = hidden_rows(plan.state, self.search) if plan.state and plan.strategy.by_position else None
        if hidden is not None:
            return self._rows_of_keys(plain_scan(self.spark, plan.files, storage, hidden), plan.key_filter)
        assert plan.fold is not None
        return self.winners(plan.fold, plan.key_filter).where(f"NOT {DELETED}")

    def winners(self, fold: FoldPlan, key_filter: Predicate | None = None) -> DataFrame:
        """Return the winning version of every key in storage form, with ``DELETED`` (True for a deleted key).

        For engines that keep rows whole there is ``SINCE``, too: the log is folded first, and then joined with the base
        by a full outer sort-merge join. The base is read once, and with one sorted file per bucket neither exchanged
        nor sorted.
        """
        splits, spec = fold.splits, fold.spec
        if spec.by_column:
            rows = without_null_keys(by_column.versions(self.spark, splits, spec), splits, spec)
            return by_column.folded(self._rows_of_keys(rows, key_filter), splits, spec)
        newest = self.log_winners(fold, key_filter)
        if not fold.base:
            return newest
        if fold.buckets:
            base = bucketed_scan(self.spark, fold.base, splits.storage, spec.key, fold.buckets)
        else:
            base = plain_scan(self.spark, fold.base, splits.storage)
        return join_with_base(self._rows_of_keys(base, key_filter), newest, spec, splits.storage)

    def log_winners(self, fold: FoldPlan, key_filter: Predicate | None = None) -> DataFrame:
        """Return the winner of each key of log, sidecar and runs, in storage form with ``DELETED`` and ``SINCE``."""
        splits, spec = fold.splits, fold.spec
        versions = log_scan(self.spark, splits, spec, fold.log, splits.sidecar, runs=fold.runs)
        versions = self._rows_of_keys(without_null_keys(versions, splits, spec), key_filter)
        if fold.buckets:
            versions = versions.repartition(fold.buckets, *map(quoted, spec.key))
        return newest_versions(versions, spec, splits.storage)

    def search(self, search: Search, table: str) -> list[bytes] | None:
        """Run a search as a Spark job, or in this process if Spark runs within it, and return the fragments.

        None for a job that fails: the read is then a join, which needs no Python on Spark's executors. Errors of a
        search in this process are raised.
        """
        tasks = min(parallelism(self.spark), len(search.base) + 1)
        if runs_in_process(self.spark):
            return search_in_process(search, tasks)
        try:
            return run_on_spark(search, self.spark.range(LOG, len(search.base) + 1, 1, tasks))
        except (TrinityError, PySparkException) as error:
            _log.info("'%s' is read by a join: %s", table, error)
            return None

    def _rows_of_keys(self, rows: DataFrame, key_filter: Predicate | None) -> DataFrame:
        """Leave out the rows of unwanted keys, by the key filter and by ``keys``."""
        if key_filter is not None:
            definition = key_filter.definition
            rows = with_char(rows, map(definition.column, definition.primary_key)).where(key_filter.spark_text)
        if self.keys is not None:
            keys = F.broadcast(self.keys) if self.few else self.keys
            rows = rows.join(keys, self.keys.columns, "left_semi").select(*map(quoted, rows.columns))
        return rows
