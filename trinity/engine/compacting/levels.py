"""Levels of a log: the newest commits that a writer's minor compaction folds, so that each row is rewritten few times.

As many commits as the trigger says are folded into a run, and :data:`FAN` runs of a level into one of the next level. A
run's level follows from the number of commit numbers that it spans, so it needs no record. Whatever the commits' sizes
are, a row is written once when it is appended, and at most once for each level.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from trinity.limits import Limit
from trinity.spi import DataFile, Origin, Tier

FAN: Final = Limit(32)
"""Runs of a level that are folded into one: 10,000 commits have three levels, whatever the trigger is."""
LEVELLED_SHARE: Final = Limit(1.0)
"""Ratio of log rows to base rows from which a fold of the whole log, the highest level, writes a new base."""


class _Run(NamedTuple):
    """The files of one commit number, and their span: the number of commit numbers since the run before."""

    files: Sequence[DataFile]
    span: int


def fresh_commits(files: Sequence[DataFile], every: int) -> int:
    """Count the newest commits of a log that are not folded yet by compactions of every ``every`` commits."""
    return len(_unfolded_commits(_runs(files), every))


def newest_runs(files: Sequence[DataFile], every: int) -> list[DataFile]:
    """Return the log files that the next compaction folds into a run: those of the newest adjacent commits, or none.

    They are the whole log where another engine has rewritten a part, since commit numbers do not order its rows (L3).
    """
    runs = _runs(files)
    taken = len(_unfolded_commits(runs, every))
    if taken < every:
        return []
    if any(f.origin is not Origin.OWN for f in files if f.tier is Tier.LOG):
        return [f for f in files if f.tier is Tier.LOG]
    level = 1
    while True:
        level = max(level, _level(sum(run.span for run in runs[:taken]), every))
        below = len(list(takewhile(lambda run: _level(run.span, every) <= level, runs[taken:])))  # noqa: B023
        if below < FAN.value - 1:
            return [f for run in reversed(runs[:taken]) for f in run.files]
        taken, level = taken + below, level + 1


def _unfolded_commits(runs: Sequence[_Run], every: int) -> list[_Run]:
    return list(takewhile(lambda run: _level(run.span, every) == 0, runs))


def _runs(files: Sequence[DataFile]) -> list[_Run]:
    """Group the files of the log by commit number, the newest first."""
    found: defaultdict[int, list[DataFile]] = defaultdict(list)
    for file in files:
        if file.tier is Tier.LOG:
            found[file.commit or 0].append(file)
    before = max((f.commit or 0 for f in files if f.tier is Tier.BASE), default=0)
    runs = []
    for commit in sorted(found):
        runs.append(_Run(found[commit], max(0, commit - before)))
        before = max(before, commit)
    return runs[::-1]


def _level(span: int, every: int) -> int:
    """Return the level of a run: 0 for a commit that was never folded, else that of the nearest power of the fan.

    A run spans at least one commit number more than it folded: that of the previous compaction.
    """
    return 0 if span <= every else 1 + int(math.log(2 * span / (every + 1), FAN.value))
