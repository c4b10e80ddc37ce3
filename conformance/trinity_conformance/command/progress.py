"""The progress of a run: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from trinity_conformance.playing.observations import Tally
from trinity_conformance.suite.budgets import Budget

_SECONDS: Final = 10
"""Seconds between two lines of progress about the same thing, where there is no terminal."""


class _Shown:
    def __init__(self, progress: Progress, budget: Budget) -> None:
        self.progress = progress
        self.histories = math.inf if budget.minutes else sum(share.most for share in budget.shares.values())
        self.seconds = budget.seconds
        self.task = progress.add_task("starting", total=1.0)
        self.begun = monotonic()
        self.shown, self.shown_at = "", self.begun

    def __call__(self, tally: Tally, what: str) -> None:
        elapsed = monotonic() - self.begun
        done = min(1.0, max(tally.histories / self.histories, elapsed / self.seconds))
        of_histories = tally.histories and what.startswith("histories")
        left = f", about {elapsed * (1 - done) / done:.0f} s left" if of_histories else ""
        self.progress.update(self.task, completed=done, description=what + left)
        if self.progress.console.is_terminal or (what == self.shown and monotonic() - self.shown_at < _SECONDS):
            return
        self.shown, self.shown_at = what, monotonic()
        self.progress.console.print(f"{what}: {tally.histories} played, {elapsed:.0f} s{left}")


@contextmanager
def progress_of(console: Console, name: str, budget: Budget) -> Iterator[_Shown]:
    """Yield the callback that gets a run's progress: the work so far, and the present kind of histories or check."""
    columns = (SpinnerColumn(), TextColumn(f"{name}: {{task.description}}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Shown(progress, budget)
