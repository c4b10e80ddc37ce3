"""Measure several things in turns, so that a disturbance affects all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Rounds:
    """Rounds of a case.

    Attributes:
        count: how many count.
        warm_up: True for one round before, which is not counted.
    """

    count: int
    warm_up: bool = True

    def at_most(self, count: int) -> Rounds:
        """Return these rounds, at most so many, for a case that takes long."""
        return Rounds(min(self.count, count), self.warm_up)

    @property
    def numbers(self) -> range:
        """The numbers of the rounds: 0 is not counted."""
        return range(0 if self.warm_up else 1, self.count + 1)


@dataclass(frozen=True)
class Timings:
    """Several times, or sizes, of one thing.

    Attributes:
        median, least, most: of the ones that count.
    """

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Timings:
        """Return the timings of these rounds."""
        return cls(median(values), min(values), max(values))

    def per(self, count: float) -> Timings:
        """Return the timings of one of so many things."""
        return Timings(self.median / count, self.least / count, self.most / count)


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(
    rounds: Rounds, ours: Callable[[], object], reference: Callable[[], object], *, warm: bool = False
) -> tuple[Timings, Timings]:
    """Measure two calls in turns, and return their seconds.

    Args:
        rounds: their number.
        ours: the measured call.
        reference: the call for comparison.
        warm: True where both have run already, so that no warm-up is needed.
    """
    found = timings_of(
        Rounds(rounds.count, rounds.warm_up and not warm), {"": lambda _: ours(), "reference": lambda _: reference()}
    )
    return found[""], found["reference"]


def timings_of(
    rounds: Rounds,
    works: Mapping[str, Callable[[int], object]],
    *,
    before: Callable[[str, int], object] = lambda *_: None,
    after: Callable[[str, int], object] = lambda *_: None,
) -> dict[str, Timings]:
    """Measure each work, and return its seconds.

    The order changes from round to round, so that none always profits from another one's caches.

    Args:
        rounds: their number.
        works: name -> the measured function of a round's number.
        before: run before each work, not timed.
        after: run after each work, not timed.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in rounds.numbers:
        for name in list(works) if number % 2 else list(works)[::-1]:
            before(name, number)
            start = time.perf_counter()
            works[name](number)
            if number:
                times[name].append(time.perf_counter() - start)
            after(name, number)
    return {name: Timings.of(found) for name, found in times.items()}


def totals_of(
    commits: int, prepare: Callable[[int], T], steps: Mapping[str, Callable[[T], float]]
) -> dict[str, Timings]:
    """Measure commits of several tables in turns, and return the seconds of all; the first one is not counted.

    Args:
        commits: the number that counts.
        prepare: makes the argument of a commit, by its number; not timed.
        steps: name -> a function that commits, and what follows, and returns the seconds that both took.
    """
    totals = dict.fromkeys(steps, 0.0)
    for number in range(commits + 1):
        given = prepare(number)
        for name in list(steps) if number % 2 else list(steps)[::-1]:
            seconds = steps[name](given)
            totals[name] += seconds if number else 0.0
    return {name: Timings.of([total]) for name, total in totals.items()}
