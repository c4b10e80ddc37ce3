"""A Spark that was stopped: Trinity restarts its own, and refuses a given one by name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.traceback_utils import SCCallSiteSync

import trinity
from trinity import Column, Table, TrinityError, cdc
from trinity.calls import as_trinity

GIVEN: Final = "The Spark session that was given to connect() was stopped"
FRAME: Final = "belongs to a Spark that was stopped"
DOORS: Final[dict[str, tuple[Callable[[Table, DataFrame], Any], str]]] = {
    "sql": (lambda t, _: t.session.sql("SELECT * FROM t"), GIVEN),
    "to_df": (lambda t, _: t.to_df(), GIVEN),
    "changes": (lambda t, _: t.changes(1), GIVEN),
    "follow": (lambda t, _: cdc.follow(t, t.session.table("copy"), row_kind="kind"), GIVEN),
    "upsert": (lambda t, rows: t.upsert(rows), FRAME),
    "delete": (lambda t, rows: t.delete(rows), GIVEN),
    "merge": (lambda t, rows: t.merge(rows, "t.id = s.id").when_matched_delete().execute(), FRAME),
    "stream": (lambda t, rows: t.stream_writer(rows, checkpoint="nowhere"), FRAME),
    "messages": (lambda t, rows: cdc.delta_changes(rows, key=["id"], watermark="v", row_kind="kind"), FRAME),
    "connect": (lambda _, rows: trinity.connect("nowhere", spark=rows.sparkSession), FRAME),
}


@pytest.fixture
def stopped(warehouse: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Table, DataFrame]]:
    """Yield a table and a DataFrame of a session whose Spark has been stopped, as far as pyspark knows."""
    with trinity.connect(warehouse, spark=spark) as session:
        table = session.create_table("t", [Column("id", "int")], primary_key=["id"])
        table.upsert(pa.table({"id": pa.array([1], pa.int32())}))
        columns, kind = [Column("id", "int"), Column("kind", "string")], {"rowkind.field": "kind"}
        session.create_table("copy", columns, primary_key=["id"], properties=kind)
        rows = spark.range(1).selectExpr("CAST(id AS INT) AS id")
        monkeypatch.setattr(spark.sparkContext, "_jsc", None)
        yield table, rows


@pytest.mark.parametrize("door", DOORS)
def test_what_needs_a_spark_that_was_stopped_is_refused_by_name(stopped: tuple[Table, DataFrame], door: str) -> None:
    call, message = DOORS[door]
    with pytest.raises(TrinityError) as refused:
        call(*stopped)
    assert refused.value.code == ("CONFIGURATION_INVALID" if message is GIVEN else "INVALID_ARGUMENTS")
    assert message in refused.value.message


def test_what_needs_no_spark_goes_on(stopped: tuple[Table, DataFrame]) -> None:
    table, _ = stopped
    table.upsert(pa.table({"id": pa.array([2], pa.int32())}))
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2]


PROGRAM: Final = """
import json, sys, time, trinity
from pyspark import SparkContext
from trinity import Column, TrinityError, cdc

folder, given = sys.argv[1], sys.argv[2] == "given"
settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
session = trinity.connect(folder, spark_settings=settings)
if given:
    session = trinity.connect(folder, spark=session.spark)
tables, said = {}, {}
for fmt in ("parquet", "delta", "iceberg"):
    keyed = {"primary_key": ["id"], "properties": {"watermark-key": "ts"}}
    made = session.create_table(f"{fmt}.default.t", [Column("id", "int"), Column("ts", "bigint")], **keyed)
    made.upsert(session.spark.sql("SELECT CAST(id AS INT) AS id, 1L AS ts FROM range(4)"))
    session.sql(f"ALTER TABLE {fmt}.default.t ADD COLUMN x INT")
    tables[fmt] = session.table(f"{fmt}.default.t")
copied = {"primary_key": ["id"], "properties": {"watermark-key": "v", "rowkind.field": "kind"}}
columns = [Column("id", "int"), Column("ts", "bigint"), Column("x", "int"), Column("y", "int"), Column("v", "bigint")]
copy = session.create_table("copy", [*columns, Column("kind", "string")], **copied)
stream = session.spark.readStream.format("rate").load().selectExpr("CAST(value + 10 AS INT) AS id", "2L AS ts")
streamed = session.create_table("streamed", [Column("id", "int"), Column("ts", "bigint")])
query = streamed.stream_writer(stream, checkpoint=folder + "/checkpoint", compact_every=2)
while not streamed.to_arrow().num_rows:
    time.sleep(0.1)
session.spark.stop()

def outcome(call):
    try:
        return call()
    except TrinityError as error:
        return str(error)

def ended():
    try:
        query.awaitTermination(60)
    except Exception as error:
        return str(error)
    return "ended"

said["stream"] = ended()
said["active"] = query.isActive
said["idle"] = SparkContext._active_spark_context is None
for fmt, table in tables.items():
    new = "SELECT CAST(id AS INT) AS id, 5L AS ts, 5 AS x FROM range(2)"
    said[fmt] = [
        outcome(lambda: table.upsert(session.spark.sql(new)).rows),
        outcome(lambda: session.sql(f"UPDATE {table.name} SET x = 7 WHERE id = 3").head()[0]),
        outcome(lambda: table.to_df().selectExpr("sum(x)").head()[0]),
        outcome(lambda: table.changes(2).count() > 0),
        outcome(lambda: session.sql(f"ALTER TABLE {table.name} ADD COLUMN y INT").count()),
        outcome(lambda: table.compact(full=True).rows),
        outcome(lambda: session.spark.read.format("trinity").option("table", str(table.name)).load().count()),
    ]
said["follow"] = outcome(lambda: cdc.follow(tables["parquet"], copy, watermark="v", row_kind="kind").rows)
def again():
    source = session.spark.readStream.format("trinity").option("table", "parquet.default.t").load()
    rows = source.selectExpr("id", "ts")
    streamed.stream_writer(rows, checkpoint=folder + "/again", available_now=True).awaitTermination(120)
    return "read"
said["again"] = outcome(again)
print(json.dumps(said))
"""


ALTERED: Final = 4
"""Index of the result of ALTER TABLE among those of a table."""


def played(folder: Path, way: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), way], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.full
def test_trinitys_own_spark_is_started_again(tmp_path: Path) -> None:
    results = played(tmp_path, "own")
    assert not results["active"]
    assert results["idle"], "the end of a stream starts no Spark"
    for fmt in ("parquet", "delta", "iceberg"):
        assert results[fmt] == [2, 1, 17, True, 0, 4, 4]
    assert results["follow"] == 4
    assert results["again"] == "read"


@pytest.mark.full
def test_a_spark_that_was_given_is_not_started_again(tmp_path: Path) -> None:
    results = played(tmp_path, "given")
    for fmt in ("parquet", "delta", "iceberg"):
        changed = results[fmt].pop(ALTERED)
        assert changed == 0, "ALTER needs no Spark"
        assert all(GIVEN in answer for answer in results[fmt])
    assert GIVEN in results["follow"]
    assert GIVEN in results["again"]
    assert results["idle"]


@pytest.mark.parametrize(
    "use",
    [lambda context: cast("Any", SCCallSiteSync)(context).__enter__(), lambda context: context.defaultParallelism],
)
def test_a_spark_that_another_thread_stops_meanwhile_is_told_as_such(use: Callable[[Any], Any]) -> None:
    """It happens where a session with further formats restarts Trinity's own Spark."""
    context = object.__new__(SparkContext)
    context._jsc = None
    with pytest.raises(AttributeError) as caught:
        use(context)
    found = as_trinity(caught.value)
    assert (found.code, "stopped while it was in use" in found.message) == ("CONFIGURATION_INVALID", True)
    assert as_trinity(AttributeError("mine")).code == "GENERIC_INTERNAL_ERROR"
