"""Changes on disk, written by Spark."""

from __future__ import annotations

from trinity.engine.feed.plan import FeedPlan
from trinity.engine.feed.spark.change_feed import rows_of
from trinity.engine.feed.stored_form import Written, by_version, writing
from trinity.engine.writing.spark.run_sinks import run_on_spark
from trinity.spark.remote import parallelism
from trinity.spark.settings import pinned
from trinity.spark.types import arrow_schema
from trinity.spark_names import DataFrame
from trinity.spi import DataFile, TableDefinition, from_fragments
from trinity.target import Target


def written_by_spark(plan: FeedPlan, folder: str, written: TableDefinition) -> Written:
    """Compute and write the changes of versions that have the same columns, by one job.

    Raises as :func:`~trinity.engine.feed.stored_changes.store_changes`.
    """
    from trinity.calls import spark_errors

    spark = plan.target.session.spark
    with pinned(spark), spark_errors():
        rows = rows_of(plan)
        if rows is None:
            return {}
        return by_version(write_files(plan.target, folder, written, rows.coalesce(parallelism(spark))))


def write_files(target: Target, folder: str, written: TableDefinition, rows: DataFrame) -> list[DataFile]:
    """Write rows into a folder, one file or several per Spark task.

    Raises:
        TrinityError: FILESYSTEM_ERROR or PERMISSION_DENIED for files that cannot be written.
    """
    task = writing(target, folder, written, arrow_schema(rows.schema))
    return from_fragments(run_on_spark(task, rows))
