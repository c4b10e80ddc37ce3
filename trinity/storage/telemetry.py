"""OpenTelemetry: a span and metrics for each commit, where its package is installed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["record"]

_SHARED = ("table", "operation", "executor")
"""Facts by which metrics are told apart: of few values each."""


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


def record(facts: Mapping[str, Any]) -> None:
    """Record a commit that has just taken effect: a span that begins with its call, and metrics.

    Args:
        facts: as of :class:`~trinity.storage.commit_log.CommitLine`.
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
