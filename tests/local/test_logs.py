"""Each commit is a log line, a span and metrics; history has the same names on all formats."""

from __future__ import annotations

import ast
import logging
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.support.code_imports import PACKAGES
from trinity import Column, Session, Table
from trinity.errors import CODES, HTTP_STATUS, RETRYABLE, TrinityError
from trinity.loggers import LOGGERS

pytestmark = pytest.mark.inner

COLUMNS = [Column("k", "int", nullable=False), Column("n", "int")]


@pytest.fixture
def table(local: Session, local_fmt: str) -> Table:
    return local.create_table(f"{local_fmt}.default.t", COLUMNS, primary_key=["k"])


def log_records(caplog: pytest.LogCaptureFixture) -> list[Any]:
    """Return the commits in the INFO lines of ``trinity``, and clear the log."""
    found = [vars(r)["commit"] for r in caplog.records if r.name == "trinity" and r.levelno == logging.INFO]
    caplog.clear()
    return found


def test_a_line_for_each_commit(local: Session, table: Table, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trinity")
    done = table.upsert([{"k": 1, "n": 1}, {"k": 2, "n": 2}], txn=("nightly", 7))
    text = caplog.records[-1].getMessage()
    [line] = log_records(caplog)
    assert (line.table, line.version, line.operation) == (str(table.name), done.version, "append")
    assert (line.rows, line.files, line.bytes, line.attempts) == (2, done.files, done.bytes, 1)
    assert (line.txn, line.executor) == ("nightly:7", "local")
    assert line.seconds > 0
    assert text.startswith(f"commit table={table.name} version={done.version} operation=append rows=2 files=")
    assert text.endswith("attempts=1 txn=nightly:7 executor=local")


def test_what_commits_is_told_and_nothing_else(local: Session, table: Table, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trinity")
    table.upsert([{"k": 1, "n": 1}], txn=("nightly", 7))
    first = table.version
    table.upsert([{"k": 1, "n": 1}], txn=("nightly", 7))  # recorded before
    local.sql(f"UPDATE {table.name} SET n = 2 WHERE k = 1")
    local.sql(f"UPDATE {table.name} SET n = 2 WHERE k = 100")  # selects nothing
    table.add_column(Column("extra", "string"))
    table.compact("full")
    table.restore(first)
    table.truncate()
    with pytest.raises(TrinityError):
        table.upsert([{"k": None}])
    lines = log_records(caplog)
    assert [line.operation for line in lines] == ["append", "merge", "alter", "compact", "restore", "truncate"]
    written = [entry.operation for entry in reversed(table.history().collect())]
    assert [line.operation for line in lines] == written[-len(lines) :]
    versions = [entry.version for entry in reversed(table.history().collect())]
    assert [line.version for line in lines] == versions[-len(lines) :]


def test_rows_that_are_removed_or_put_back_were_not_written(
    local: Session, local_fmt: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trinity")
    plain = local.create_table(f"{local_fmt}.default.plain", COLUMNS)
    first = plain.append([{"k": 1, "n": 1}, {"k": 2, "n": 2}]).version
    log_records(caplog)
    assert plain.truncate().rows == 2
    assert plain.restore(first).rows == 2
    lines = log_records(caplog)
    assert [line.operation for line in lines] == ["truncate", "restore"]
    assert [(line.rows, line.files, line.bytes) for line in lines] == [(0, 0, 0)] * 2


def test_tables_that_are_made_and_attempts_that_lost(
    local: Session, local_fmt: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trinity")
    table = local.create_table(f"{local_fmt}.default.made", COLUMNS, primary_key=["k"])
    assert [(line.table, line.operation) for line in log_records(caplog)] == [(str(table.name), "create")]
    table.upsert([{"k": 1, "n": 1}])
    log_records(caplog)
    begin = table.connector.metadata.begin_merge
    raced: list[int] = []

    def begin_late(*given: Any) -> Any:
        begun = begin(*given)
        if not raced:  # another writer commits first once
            raced.append(table.upsert([{"k": 1, "n": 5}]).version)
        return begun

    table.connector.metadata.begin_merge = begin_late  # type: ignore[method-assign, assignment]
    table.update("k = 1", {"n": "n + 1"})
    other, line = log_records(caplog)
    assert (other.operation, other.attempts) == ("append", 1)
    assert (line.operation, line.attempts) == ("merge", 2)
    assert table.to_arrow()["n"].to_pylist() == [6]


def test_history_has_the_same_names_on_all_formats(table: Table) -> None:
    table.upsert([{"k": 1, "n": 1}, {"k": 2, "n": 2}])
    table.upsert([{"k": 1, "n": 3}])
    table.compact("full")
    last, before = table.history().collect()[:2]
    names = ("added_files", "added_rows", "removed_files")
    assert [dict(before.details)[name] for name in names] == ["1", "1", "0"]
    assert [dict(last.details)[name] for name in names] == ["1", "2", "2"]


def test_every_code_has_a_status() -> None:
    assert set(HTTP_STATUS) == CODES
    assert CODES >= RETRYABLE
    conflict = TrinityError("TRANSACTION_CONFLICT", "Again.")
    assert (conflict.retryable, conflict.http_status) == (True, 409)
    unknown = TrinityError("COMMIT_STATE_UNKNOWN", "Look.")
    assert (unknown.retryable, unknown.http_status) == (False, 504)


def test_all_loggers_are_listed() -> None:
    found = {
        ast.literal_eval(node.args[0])
        for package in PACKAGES.values()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "logger"
    }
    assert found == set(LOGGERS)


def test_commits_are_spans_and_metrics(local: Session) -> None:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider([reader]))
    table = local.create_table("delta.default.spans", COLUMNS, primary_key=["k"])
    table.upsert([{"k": 1, "n": 1}, {"k": 2, "n": 2}], txn=("nightly", 7))
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {"trinity create", "trinity append"}
    append = spans["trinity append"]
    facts = dict(append.attributes or {})
    assert (facts["trinity.rows"], facts["trinity.txn"]) == (2, "nightly:7")
    assert (append.end_time or 0) > (append.start_time or 0) > 0
    data: Any = reader.get_metrics_data()
    counted = {
        metric.name: {dict(point.attributes or {})["trinity.operation"]: point for point in metric.data.data_points}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    assert counted["trinity.commit.rows"]["append"].value == 2
    assert counted["trinity.commits"]["append"].value == 1
    assert counted["trinity.commit.duration"]["append"].count == 1
