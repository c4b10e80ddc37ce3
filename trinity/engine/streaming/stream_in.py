"""The start of a stream into a table: checks before it runs, and metrics while it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trinity.engine.appending.append import check_columns, is_spark_frame
from trinity.engine.streaming.background import BackgroundCompactor
from trinity.engine.streaming.batches import Batches, StreamOptions
from trinity.errors import TrinityError
from trinity.merge.spec import merge_spec
from trinity.spark.remote import refuse_remote
from trinity.spark.types import arrow_schema
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_METRICS: Final = "trinity"
"""Name of Trinity's metrics in the progress of a stream."""


def stream_in(table: Target, frame: DataFrame, options: StreamOptions) -> StreamingQuery:
    """Start a stream into a table. Raises as :meth:`trinity.Table.stream_writer`."""
    options.check()
    if not is_spark_frame(frame) or not frame.isStreaming:
        does = "upsert" if table.definition.keyed else "append"
        message = f"The data for '{table.name}' is no stream: make it by spark.readStream, or give it to {does}()."
        raise TrinityError("INVALID_ARGUMENTS", message)
    refuse_remote(frame.sparkSession, "A stream into a table", "start it in a program of the driver's")
    if options.transform is None and options.apply is None:  # else the columns are known only by batch
        check_columns(table, arrow_schema(frame.schema), evolve=options.evolve)
    compactor = None if options.compact_every is None else BackgroundCompactor(table, options.compact_every)
    planned = _planned_batch(frame.sparkSession, str(options.checkpoint))
    batches = Batches(table, options, planned, compactor)
    query = _writer(_observe_progress(table, frame), options).foreachBatch(batches.write).start()
    if compactor is not None:
        compactor.end_with(query)
    return query


def _writer(frame: DataFrame, options: StreamOptions) -> DataStreamWriter:
    writer = frame.writeStream.option("checkpointLocation", str(options.checkpoint))
    if options.query_name is not None:
        writer = writer.queryName(options.query_name)
    if options.processing_time is not None:
        return writer.trigger(processingTime=options.processing_time)
    return writer.trigger(availableNow=True) if options.available_now else writer


def _observe_progress(table: Target, frame: DataFrame) -> DataFrame:
    """Add metrics to a stream's progress: the number of rows and, if it has the column, the newest watermark."""
    from trinity.spark_names import F

    metrics = [F.count(F.lit(1)).alias("rows")]
    spec = merge_spec(definition) if (definition := table.definition).keyed else None
    if spec and spec.ordering and not spec.descending:
        given = [f.name for f in frame.schema if f.name.lower() == spec.ordering[0].lower()]
        metrics += [F.max(frame[f"`{name}`"]).alias("newest") for name in given[:1]]
    return frame.observe(_METRICS, *metrics)


def _planned_batch(spark: SparkSession, checkpoint: str) -> int:
    """Return the highest batch that a checkpoint has planned, whether it was committed or not; -1 without any.

    Temporary files that a crash left as the first batch was planned are deleted: Spark refuses a checkpoint with one.
    """
    jvm: Any = spark._jvm
    offsets = jvm.org.apache.hadoop.fs.Path(checkpoint, "offsets")
    files = offsets.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not files.exists(offsets):
        return -1
    paths = {str(status.getPath().getName()): status.getPath() for status in files.listStatus(offsets)}
    planned = max((int(name) for name in paths if name.isdigit()), default=-1)
    for name, path in paths.items():
        if planned < 0 and name.startswith("."):
            files.delete(path, False)
    return planned
