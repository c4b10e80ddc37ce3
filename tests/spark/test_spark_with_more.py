"""Sessions of one process that need more JARs in its Spark, one after the other: Trinity's own Spark gets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.object_store import ObjectServer

pytestmark = pytest.mark.full

BEGINNING: Final = """
import json, sys, trinity
from pyspark import SparkContext
from trinity import Column, TrinityError

folder, bucket, options = json.loads(sys.argv[1])
settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}

def connected(*formats, place=folder, **more):
    catalogs = {f: {"connector": f, "warehouse": f"{place}/{f}"} for f in formats}
    return trinity.connect(catalogs=catalogs, spark_settings=settings, **more)

def outcome(call):
    try:
        return call()
    except TrinityError as error:
        return str(error)

def used(session, fmt, name="t"):
    made = session.create_table(f"{fmt}.default.{name}", [Column("id", "int")], primary_key=["id"])
    made.upsert(session.spark.sql("SELECT CAST(id AS INT) AS id FROM range(5)"))
    session.sql(f"DELETE FROM {made.name} WHERE id = 0")
    session.sql(f"ALTER TABLE {made.name} ADD COLUMN x INT")
    made.compact(full=True)
    return session.sql(f"SELECT count(*) FROM {made.name} WHERE x IS NULL").head()[0]

first = connected("parquet")
said = {"parquet": used(first, "parquet")}
"""
FURTHER: Final = """
rows = first.spark.range(1).selectExpr("CAST(id AS INT) AS id")
second = connected("delta", "iceberg")
said["delta"], said["iceberg"] = used(second, "delta"), used(second, "iceberg")
said["old"] = first.table("t").upsert(rows).rows
said["first"] = first.table("t").to_df().count()
said["one"] = first.spark.sparkContext is second.spark.sparkContext

context, kept = second.spark.sparkContext, second.table("delta.default.t").to_df()
third = connected("parquet", "delta", place=bucket, storage_options=options)
said["bucket"] = [used(third, "parquet"), used(third, "delta")]
said["same"] = third.spark.sparkContext is context
said["kept"] = kept.count()
said["again"] = used(first, "parquet", "again")
"""
USED: Final = """
import os, threading
from pathlib import Path
from pyspark.sql.functions import udf

gate = folder + "/gate"
os.mkfifo(gate)
waits = udf(lambda id: (open(gate).read(), id)[1], "long")
waiting = first.spark.range(10, 11).select(waits("id").cast("int").alias("id"))
told = []
call = threading.Thread(target=lambda: told.append(outcome(lambda: first.table("t").upsert(waiting).rows)))
call.start()
opened = open(gate, "w")  # once the job reads it
first.spark.range(1).createOrReplaceTempView("mine")
stream = first.table("t").to_df().sparkSession.readStream.format("rate").load().writeStream.format("noop").start()
second = connected("delta", "iceberg")
said["second"] = [used(second, "delta"), used(second, "iceberg")]
first.spark.createDataFrame([(1,)], "id int")  # makes its session the thread's own
said["later"] = used(second, "delta", "later")
opened.close()
call.join()
said["told"] = told
said["stream"] = stream.isActive
stream.stop()
said["mine"] = first.spark.table("mine").count()
said["first"] = first.table("t").to_df().count()
said["user's"] = type(first.spark).builder.getOrCreate() is second.spark
second.spark.stop()
said["after"] = [outcome(lambda: used(second, "delta", "after")), outcome(lambda: first.table("t").to_df().count())]
"""
OTHERS: Final = """
first.spark.stop()
from pyspark.sql import SparkSession
given = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
said["refused"] = outcome(lambda: connected("parquet", place=bucket, storage_options=options, spark=given).spark)
said["found"] = outcome(lambda: used(connected("iceberg"), "iceberg"))
said["runs"] = given.range(1).count()
"""


def played(program: str, folder: Path, bucket: str, server: ObjectServer) -> dict[str, Any]:
    given = json.dumps([str(folder), f"s3://{bucket}/{folder.name}", server.options])
    command = [sys.executable, "-c", f"{BEGINNING}{program}print(json.dumps(said))", given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_further_formats_and_buckets_are_served(tmp_path: Path, bucket: str, object_server: ObjectServer) -> None:
    """A further format needs another Spark session; the JARs of a bucket are added to the running one."""
    results = played(FURTHER, tmp_path, bucket, object_server)
    assert (results["parquet"], results["delta"], results["iceberg"], results["bucket"]) == (4, 4, 4, [4, 4])
    assert results["old"] == 1
    assert (results["first"], results["again"]) == (5, 4)
    assert results["one"]
    assert results["same"]
    assert results["kept"] == 4


def test_what_runs_in_a_spark_goes_on_while_it_gets_more(
    tmp_path: Path, bucket: str, object_server: ObjectServer
) -> None:
    """A call of another thread, a view and a stream continue."""
    results = played(USED, tmp_path, bucket, object_server)
    assert results["second"] == [4, 4]
    assert results["later"] == 4
    assert (results["told"], results["stream"], results["mine"], results["first"]) == ([1], True, 1, 5)
    assert results["user's"]
    assert results["after"] == [4, 5]


def test_a_spark_of_others_is_left_as_it_is(tmp_path: Path, bucket: str, object_server: ObjectServer) -> None:
    results = played(OTHERS, tmp_path, bucket, object_server)
    assert "lacks the JAR org.apache.hadoop:hadoop-aws" in results["refused"]
    assert "IcebergSparkSessionExtensions" in results["found"]
    assert results["runs"] == 1
