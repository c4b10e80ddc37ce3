"""Fixtures: one Spark and one PostgreSQL for the whole run, a fresh warehouse for each test."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import settings

import trinity
from tests.support.azure_server import AzureServer, running_azure_server
from tests.support.bucket_lake import COLUMNS, SERVERS, BucketLake, bucket_lake, database_of
from tests.support.google_server import GoogleServer, running_google_server
from tests.support.object_store import ObjectServer, running_object_server
from tests.support.orders import make_orders
from tests.support.pages import some
from tests.support.postgres import RunningServer, running_server
from tests.support.rest_catalog import fetch_rest_catalog, running_rest_catalog
from tests.support.spark import drop_temp_views, spark
from tests.support.zones import ZONES
from trinity import Column, Session, Table
from trinity.spark.running import spark_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.vending import Vending

# what Spark logs of an error that a test expects would bury the report
logging.getLogger("SQLQueryContextLogger").disabled = True

# the duration of an example depends on the machine
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

__all__ = ["spark"]

collect_ignore = ["plugins"]  # projects of their own, with tests of their own
FORMATS = ("parquet", "iceberg") if "SPARK_REMOTE" in os.environ else ("parquet", "delta", "iceberg")
"""Over Spark Connect, where test_spark_connect.py repeats many tests, only two formats are on disk."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[RunningServer]:
    """Yield the PostgreSQL server of the whole run, started at its first use."""
    with running_server() as running:
        yield running


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    """Yield the S3 server of the whole run, started at its first use."""
    with running_object_server() as running:
        yield running


@pytest.fixture(scope="session")
def azure_server() -> Iterator[AzureServer]:
    """Yield the Azure server of the whole run, started at its first use."""
    with running_azure_server() as running:
        yield running


@pytest.fixture(scope="session")
def google_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    """Yield the Google Cloud Storage server of the whole run, started at its first use."""
    with running_google_server(tmp_path_factory.mktemp("google")) as running:
        yield running


@pytest.fixture(scope="session")
def bucket(object_server: ObjectServer) -> str:
    """Return a bucket, in which each test has a place of its own."""
    return object_server.new_bucket()


@pytest.fixture
def place(bucket: str) -> str:
    """Return a new place in the bucket."""
    return f"s3://{bucket}/{uuid.uuid4().hex}"


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def cloud(request: pytest.FixtureRequest, object_server: ObjectServer, bucket: str, tmp_path: Path) -> BucketLake:
    """Return a catalog in the bucket, of each format.

    The kinds in ``SERVERS`` are used only by tests that name them.
    """
    kind = str(request.param)
    names_at = request.getfixturevalue(SERVERS[kind]) if kind in SERVERS else None
    database = database_of(kind, tmp_path, names_at)
    return bucket_lake(kind.partition("-")[0], object_server, bucket, database)


@pytest.fixture(scope="session")
def rest_catalog_jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetch the JARs of the REST catalog, and return their folder."""
    found = tmp_path_factory.mktemp("rest") / "jars"
    fetch_rest_catalog(found)
    return found


@pytest.fixture
def rest_catalog(rest_catalog_jars: Path, object_server: ObjectServer) -> Iterator[str]:
    """Yield the address of a REST catalog without tables."""
    with running_rest_catalog(rest_catalog_jars, object_server.options) as address:
        yield address


@pytest.fixture
def vending(rest_catalog: str, object_server: ObjectServer) -> Iterator[Vending]:
    """Yield a REST catalog without tables that hands out credentials."""
    from tests.support.vending import running_vending  # as below

    with running_vending(rest_catalog, object_server) as found:
        yield found


@pytest.fixture
def glue() -> Iterator[str]:
    """Yield the address of a Glue catalog without tables."""
    from tests.support.glue import running_glue  # the import takes half a second

    with running_glue() as address:
        yield address


@pytest.fixture
def s3(cloud: BucketLake) -> Iterator[Session]:
    """Yield a session that has only the catalog in the bucket."""
    with cloud.connect() as opened:
        yield opened


@pytest.fixture
def plain(s3: Session) -> Table:
    """Make a plain table in the bucket."""
    return s3.create_table("plain", COLUMNS)


@pytest.fixture
def server(postgres_server: RunningServer) -> dict[str, str]:
    """Return psycopg's connection options of the server."""
    return postgres_server.options


@pytest.fixture
def database(server: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield psycopg's connection options of a database of the test's own."""
    name = f"of_a_test_{uuid.uuid4().hex}"
    with psycopg.connect(**server, autocommit=True) as plain:  # type: ignore[arg-type]  # not all are str
        plain.execute(f"CREATE DATABASE {name}")
        yield {**server, "dbname": name}
        plain.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Return the folder of the test's own warehouse."""
    return tmp_path / "warehouse"


@pytest.fixture
def session(warehouse: Path, spark: SparkSession) -> Iterator[Session]:
    """Yield a session over the test's own warehouse with the three catalogs, whose SQL Spark runs."""
    with trinity.connect(warehouse, spark=spark) as opened:
        yield opened
    drop_temp_views(spark)


@pytest.fixture(params=FORMATS)
def fmt(request: pytest.FixtureRequest) -> str:
    """Return each format in turn, which is the name of its catalog, too."""
    return str(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests for the long tier and for Spark.

    Tests marked ``tiered`` use fixtures of every format; they are tiered like tests of :func:`tiered_fmt`. Tests that
    use the shared Spark are marked ``spark``: the others run beside them, in a process of their own.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("tiered") and item.callspec.params["fmt"] != FORMATS[0]:  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.full)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that leaves a Spark running and is not marked ``spark``: later tests would use that Spark."""
    ran_before = spark_runs()
    result = yield
    if spark_runs() and not ran_before and not item.get_closest_marker("spark"):
        pytest.fail("starts Spark in this process: it is to ask for the fixture 'spark'")
    return result


@pytest.fixture(params=["parquet", *[pytest.param(f, marks=pytest.mark.full) for f in FORMATS[1:]]])
def tiered_fmt(request: pytest.FixtureRequest) -> str:
    """Return each format, two of them in the long tier, for tests that do not depend on the format.

    That a behaviour does not depend on the format is shown by the conformance suite in the short tier.
    """
    return str(request.param)


@pytest.fixture
def orders(session: Session, fmt: str) -> Table:
    """Make the keyed table of most examples: order_id, ts, deleted, and an amount."""
    return make_orders(session, fmt)


@pytest.fixture
def pages(session: Session, fmt: str) -> Table:
    """Make a table with four commits after its first version: the rows 1, 2, 3, 4."""
    table = session.create_table(f"{fmt}.default.pages", [Column("v", "int")])
    for value in (1, 2, 3, 4):
        table.append(some(value))
    return table


@pytest.fixture
def regions(session: Session, fmt: str) -> Table:
    """Make a keyed table with partitions."""
    session.sql(
        f"CREATE TABLE {fmt}.default.regions (region STRING, id INT, ts BIGINT, gone BOOLEAN, v STRING, "
        "PRIMARY KEY (region, id)) PARTITIONED BY (region) "
        "TBLPROPERTIES ('watermark-key' = 'ts', 'tombstone-key' = 'gone')"
    )
    return session.table(f"{fmt}.default.regions")


@pytest.fixture(params=[ZONES[0], *(pytest.param(z, marks=pytest.mark.full) for z in ZONES[1:])])
def zone(request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Set the time zone of Spark's session and of this process. libc counts a zone without a name westwards."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    monkeypatch.setenv("TZ", "<+0530>-05:30" if request.param == "+05:30" else request.param)
    time.tzset()
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    monkeypatch.undo()
    time.tzset()
