"""Python in Spark's workers: its errors are reported unchanged, and a Python without Trinity is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import trinity
from tests.support.refusals import refused
from trinity import Column, Session, Table, TrinityError
from trinity.calls import spark_errors
from trinity.spark import workers

pytestmark = pytest.mark.inner


def missing_file(_: int) -> int:
    raise TrinityError("BAD_DATA", "File 'a.csv' is gone.\nPut it back.")


def no_number(_: int) -> int:
    raise ValueError("[x] is\nno number")


def no_module(_: int) -> int:
    raise ModuleNotFoundError("No module named 'helpers'")


def crash(_: int) -> int:
    os._exit(3)


RAISED: Final[list[tuple[Callable[[int], int], str, str]]] = [
    (missing_file, "BAD_DATA", "File 'a.csv' is gone. Put it back."),
    (no_number, "INVALID_ARGUMENTS", "Python in a process of Spark's has raised ValueError: [x] is no number"),
    (no_module, "CONFIGURATION_INVALID", "ModuleNotFoundError: No module named 'helpers'. Workers run the Python that"),
    (crash, "CONFIGURATION_INVALID", "A Python worker of Spark's has ended without an error"),
]


def failing(spark: SparkSession, function: Callable[[int], int]) -> DataFrame:
    return spark.range(1).select(F.udf(function, "int", useArrow=False)("id").alias("id"))


def by_append(table: Table, rows: DataFrame) -> None:
    table.append(rows)


def by_merge(table: Table, rows: DataFrame) -> None:
    table.merge(rows, "t.id = s.id").when_not_matched_insert_all().execute()


def by_sql(table: Table, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("failing")
    table.session.sql(f"INSERT INTO {table.name} SELECT * FROM failing")


def by_rdd(table: Table, rows: DataFrame) -> None:
    """Append by an RDD, whose errors Spark passes on as Java's."""
    table.append(rows.sparkSession.createDataFrame(rows.rdd, "id int"))


@pytest.mark.parametrize(("function", "code", "message"), RAISED, ids=lambda given: getattr(given, "__name__", ""))
@pytest.mark.parametrize(
    "door", [by_append, *(pytest.param(d, marks=pytest.mark.full) for d in (by_merge, by_sql, by_rdd))]
)
def test_an_error_of_a_worker_is_told_as_it_was_raised(
    session: Session, door: Callable[[Table, DataFrame], None], function: Callable[[int], int], code: str, message: str
) -> None:
    table = session.create_table("t", [Column("id", "int")])
    with pytest.raises(TrinityError) as raised:
        door(table, failing(session.spark, function))
    assert raised.value.code == code
    assert message in raised.value.message
    assert "stack trace" not in raised.value.message
    assert table.to_arrow().num_rows == 0


PROGRAM: Final = """
import sys, trinity
from pyspark.sql import SparkSession
way, folder = sys.argv[1:]
given = {}
if way != "own":
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    given = {"spark": spark} if way == "given" else {}
try:
    session = trinity.connect(catalogs={"p": {"connector": "parquet", "warehouse": folder}}, **given)
    table = session.create_table("t", [trinity.Column("id", "int")])
    table.append(session.spark.range(2).selectExpr("CAST(id AS INT) AS id"))
    print("rows", session.sql("SELECT count(*) FROM t").head()[0])
except trinity.TrinityError as error:
    print("refused", error)
"""


def ran(way: str, folder: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    command = [sys.executable, "-c", PROGRAM, way, str(folder)]
    done = subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a Python environment without Trinity, and return the folder of its programs."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder / "bin"


@pytest.mark.full
@pytest.mark.parametrize("way", ["given", "found", "own"])
def test_another_python_is_refused_by_name(way: str, bare: Path, tmp_path: Path) -> None:
    results = ran(way, tmp_path, PYSPARK_PYTHON=str(bare / "python"))
    assert results.startswith("refused [CONFIGURATION_INVALID]")
    assert f"'{bare / 'python'}'" in results
    assert f"PYSPARK_PYTHON={sys.executable}" in results


@pytest.mark.full
def test_a_python_of_the_path_is_refused_where_it_is_another_one(bare: Path, tmp_path: Path) -> None:
    """A service may run the Python of an environment that is not activated."""
    results = ran("given", tmp_path, PATH=f"{bare}{os.pathsep}{os.environ['PATH']}")
    assert results.startswith("refused [CONFIGURATION_INVALID] The Python of Spark's workers, 'python3', cannot import")


@pytest.mark.full
def test_another_python_that_has_trinity_is_used(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    assert ran("given", tmp_path / "w", PYSPARK_PYTHON=str(program)) == "rows 2"


def test_the_same_python_is_not_asked(warehouse: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(*_: Any) -> None:
        raise AssertionError("a task is run")

    monkeypatch.setattr(workers, "ask_worker", probe)
    with trinity.connect(warehouse, spark=spark) as session:
        assert session.spark is spark


def test_a_worker_that_does_not_start_in_time_has_a_remedy_of_its_own() -> None:
    """On a busy machine Spark waits ten seconds for the planner of a Python source."""
    with refused("CONFIGURATION_INVALID", "did not report to Spark within its time", "too busy"), spark_errors():
        raise PySparkException("[STREAM_FAILED] SparkException: Python worker failed to connect back.")
