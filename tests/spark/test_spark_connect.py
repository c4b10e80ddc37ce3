"""Spark Connect: tables over the session of a server, without access to its JVM and parser (N2, N3)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trinity
from tests.support.bucket_lake import bucket_lake
from tests.support.connect_server import client, running_connect_server
from tests.support.object_store import ObjectServer, free_ports, running_object_server
from tests.support.reaching import COMMANDS, QUERIES
from tests.support.refusals import refused
from trinity.spark.reach import reach_of_expression, reach_of_statement
from trinity.spark.remote_texts import RemoteExpression, varies
from trinity.storage.s3 import S3

pytestmark = pytest.mark.inner

REMOTE: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
"""An object that passes for a session of Spark Connect, as long as no server is called."""
LET_THROUGH = (
    "SELECT * FROM range(10)",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "EXPLAIN SELECT 1",
    "EXPLAIN FORMATTED WITH a AS (SELECT 1) SELECT * FROM a",
    "SHOW FUNCTIONS",
    "DESCRIBE FUNCTION upper",
    "SET spark.sql.ansi.enabled = true",
)
PAGES = ("tests/sql/test_merge.py", "tests/tables/test_upsert.py", "tests/sql/test_update_delete.py")
"""Tests of tables that also hold over Spark Connect, unchanged."""


@pytest.mark.parametrize("text", [*QUERIES, *COMMANDS])
def test_n2_what_may_reach_beyond_rows_is_refused_unseen(text: str) -> None:
    assert "nobody sees" in (reach_of_statement(REMOTE, text) or "")


@pytest.mark.parametrize("text", LET_THROUGH)
def test_what_surely_reaches_nothing_is_let_through(text: str) -> None:
    assert reach_of_statement(REMOTE, text) is None


def test_n2_expressions_are_looked_at_as_they_stand() -> None:
    assert reach_of_expression(REMOTE, "a = (SELECT max(value) FROM text.`/x`)") is not None
    assert reach_of_expression(REMOTE, "reflect('a', 'b') = 'c'") is not None
    assert reach_of_expression(REMOTE, "a = 1") is None


@pytest.mark.parametrize("text", ["", "a, b", "a AS b", "*", "SELECT 1", "DROP TABLE t", "a = 1; b", "a ===== 1", "(a"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with refused("SYNTAX_ERROR"):
        RemoteExpression(text)


def test_functions_are_found_wherever_they_stand() -> None:
    found = RemoteExpression("CASE WHEN a IN (1) THEN `Rand`() ELSE concat('mine(', other.f (b)) END")
    assert {"rand", "mine", "other.f", "concat"} <= set(found.functions())
    assert varies(found.text)
    assert RemoteExpression("a IN (SELECT 1)").has_subquery()
    assert RemoteExpression("a = 1 /* rand */").may_hide_parts()
    assert not RemoteExpression("a = 1 /* rand */").makes_names()
    assert RemoteExpression("identifier ('a') = 1").makes_names()


def test_a_process_of_the_other_kind_is_told(tmp_path: Path) -> None:
    with refused("CONFIGURATION_INVALID", "Spark Connect", "builder.remote"):
        trinity.connect(tmp_path, spark=REMOTE)


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    [port] = free_ports(1)
    with (
        trinity.connect(
            tmp_path, spark_settings={"spark.remote": f"sc://127.0.0.1:{port}/;token=of-the-tests-41c7"}
        ) as session,
        refused("CONFIGURATION_INVALID", f"127.0.0.1:{port}") as caught,
    ):
        assert sorted(session.catalogs) == ["iceberg", "parquet"]
        _ = session.spark
    assert "41c7" not in str(caught.value)


@pytest.fixture(scope="module")
def remote() -> Iterator[str]:
    with running_connect_server() as address:
        yield address


def told_by(done: subprocess.CompletedProcess[str]) -> str:
    return f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"


@pytest.mark.full
def test_the_cases_of_a_client(remote: str, tmp_path: Path) -> None:
    done = client(remote, "-m", "pytest", "-q", "-m", "", f"--basetemp={tmp_path / 'own'}", "tests/connect/cases.py")
    assert done.returncode == 0, told_by(done)


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_what_tables_do_holds_over_spark_connect(remote: str, tmp_path: Path, page: str) -> None:
    done = client(remote, "-m", "pytest", "-q", "-m", "not full", f"--basetemp={tmp_path / 'own'}", page)
    assert done.returncode == 0, told_by(done)


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["parquet", "iceberg"])
def test_a_format_conforms_over_spark_connect(remote: str, tmp_path: Path, fmt: str) -> None:
    done = client(remote, "-m", "trinity_conformance", "run", fmt, "--traces", tmp_path)
    assert done.returncode == 0, told_by(done)


@pytest.mark.full
def test_tables_in_a_bucket(object_server: ObjectServer, bucket: str, tmp_path: Path) -> None:
    """The server gets the store's options by its settings, its Python by environment variables."""
    unread, options = object_server.new_bucket(), object_server.options
    environment = {
        "spark.jars.packages": ",".join(S3.spark.packages),
        **S3.spark.settings,
        "spark.hadoop.fs.s3a.endpoint": options["endpoint"],
        "spark.hadoop.fs.s3a.endpoint.region": options["region"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": options["access_key_id"],
        "spark.hadoop.fs.s3a.secret.key": options["secret_access_key"],
    }
    known = bucket_lake("parquet", object_server, bucket, {}).environment
    with running_object_server() as elsewhere:
        elsewhere.files.create_dir(bucket)
        environment[f"spark.hadoop.fs.s3a.bucket.{unread}.endpoint"] = elsewhere.options["endpoint"]
        known |= {"TRINITY_TESTS_PLACE": f"s3://{bucket}/connect", "TRINITY_TESTS_UNREAD": f"s3://{unread}/connect"}
        known["TRINITY_TESTS_ELSEWHERE"] = elsewhere.options["endpoint"]
        with running_connect_server(environment, **known) as address:
            words = ("-m", "pytest", "-q", "-m", "", f"--basetemp={tmp_path / 'own'}", "tests/connect/bucket_cases.py")
            done = client(address, *words, **known)
    assert done.returncode == 0, told_by(done)


@pytest.mark.full
def test_a_server_without_trinity_is_told(tmp_path: Path) -> None:
    with running_connect_server(PYTHONPATH="", PYSPARK_PYTHON=_bare(tmp_path)) as address:
        done = client(address, "-c", "import trinity; trinity.connect('/tmp').spark")
    assert "CONFIGURATION_INVALID" in done.stderr
    assert "Install trinity-merge" in done.stderr


def _bare(folder: Path) -> str:
    """Return the path of a Python without Trinity, but with the packages that Spark's workers need."""
    program = folder / "python"
    hidden = "import sys; sys.modules['trinity'] = None"
    (folder / "sitecustomize.py").write_text(hidden)
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return str(program)
