"""The protocol of what executes a plan: Spark, or this process without Spark."""

from __future__ import annotations

from typing import Protocol, TypeVar

from trinity.engine.executes import NotLocal
from trinity.engine.reading.plan import FoldPlan, ReadPlan
from trinity.engine.reading.search import Search

Rows = TypeVar("Rows", covariant=True)
"""A DataFrame, or Arrow data."""


class Executor(Protocol[Rows]):
    """Executes plans; :class:`NotLocal` stands for what it leaves to Spark."""

    def rows(self, plan: ReadPlan) -> Rows | NotLocal:
        """Return the merged rows: visible columns in their logical types, one row for each live key."""
        ...

    def log_winners(self, fold: FoldPlan) -> Rows | NotLocal:
        """Return the winner of each key of log, sidecar and runs, in storage form with ``DELETED`` and ``SINCE``."""
        ...

    def search(self, search: Search, table: str) -> list[bytes] | None:
        """Run a search for hidden rows, and return its fragments; None when it fails. ``table`` is for messages."""
        ...
