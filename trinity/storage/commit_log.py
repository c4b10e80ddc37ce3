"""Each commit is logged once: a log line, and a span and metrics of OpenTelemetry where that is installed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

from trinity.calls import current_work
from trinity.loggers import logger
from trinity.spi import CommitResult, TableHandle, TransactionId
from trinity.storage.errors import after_commit

_log = logger("trinity")
_SHARED: Final = ("table", "operation", "executor")
"""Facts by which metrics are told apart: of few values each."""


@dataclass(frozen=True)
class CommitLine:
    """What is logged of a commit.

    Attributes:
        table: full name of the table.
        version: the new version.
        operation: as ``history()`` shows it.
        rows, files, bytes: what was written, as of :class:`~trinity.spi.CommitResult`.
        seconds: time since the call began that made the commit.
        attempts: attempts at the commit: more than one where other writers were faster.
        txn: ``application:version``; empty without.
        executor: ``local`` for this process, ``spark`` where Spark took part.
    """

    table: str
    version: int
    operation: str
    rows: int
    files: int
    bytes: int
    seconds: float
    attempts: int
    txn: str
    executor: str

    def __str__(self) -> str:
        facts = {**asdict(self), "seconds": f"{self.seconds:.3f}", "txn": self.txn or "-"}
        return " ".join(f"{name}={value}" for name, value in facts.items())


def log_commit(table: TableHandle, operation: str, done: CommitResult, txn: TransactionId | None = None) -> None:
    """Log a commit that has taken effect. A failure to do so is logged, too, and the commit stands."""
    work = current_work()
    line = CommitLine(
        table.full_name,
        done.version,
        operation,
        *(done.rows, done.files, done.bytes),
        time.perf_counter() - work.began,
        max(work.attempts, 1),
        f"{txn[0]}:{txn[1]}" if txn else "",
        work.executor,
    )
    work.attempts = 0
    _log.info("commit %s", line, extra={"commit": line})
    after_commit(f"Version {line.version} of '{line.table}' is missing in the metrics", lambda: _record(asdict(line)))


class _Instruments:
    """Trinity's tracer, and its counters and histograms."""

    def __init__(self, trace: Any, metrics: Any) -> None:
        self.tracer = trace.get_tracer("trinity")
        meter = metrics.get_meter("trinity")
        self.commits = meter.create_counter("trinity.commits", "{commit}", "Commits")
        self.rows = meter.create_counter("trinity.commit.rows", "{row}", "Rows that commits wrote")
        self.bytes = meter.create_counter("trinity.commit.size", "By", "Bytes that commits wrote")
        self.attempts = meter.create_counter("trinity.commit.attempts", "{attempt}", "Attempts at commits")
        self.seconds = meter.create_histogram("trinity.commit.duration", "s", "Time of the calls that committed")


@cache
def _instruments() -> _Instruments | None:
    try:
        return _Instruments(import_module("opentelemetry.trace"), import_module("opentelemetry.metrics"))
    except ModuleNotFoundError:
        return None


def _record(facts: Mapping[str, Any]) -> None:
    """Record a commit that has just taken effect: a span that begins with its call, and metrics.

    Args:
        facts: as of :class:`CommitLine`.
    """
    if (found := _instruments()) is None:
        return
    now = time.time_ns()
    span = found.tracer.start_span(
        f"trinity {facts['operation']}",
        attributes={f"trinity.{name}": value for name, value in facts.items() if value != ""},
        start_time=now - int(facts["seconds"] * 1e9),
    )
    span.end(now)
    shared = {f"trinity.{name}": facts[name] for name in _SHARED}
    found.commits.add(1, shared)
    found.rows.add(facts["rows"], shared)
    found.bytes.add(facts["bytes"], shared)
    found.attempts.add(facts["attempts"], shared)
    found.seconds.record(facts["seconds"], shared)
