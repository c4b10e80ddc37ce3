"""Races that are drawn: first pairs that must not disturb each other, then any actions of two or three processes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count
from random import Random
from typing import Final

from trinity.spi import Capability
from trinity_conformance.playing.race_actions import RACE_ACTIONS
from trinity_conformance.playing.races import Race, Turn

_PAIRS: Final = (
    ("append", "append"), ("add", "add"), ("read", "append"), ("load", "load"), ("compact", "append"), ("add", "merge"),
    ("append", "compact"), ("merge", "merge"), ("add", "delete"), ("append", "truncate"), ("append", "alter"),
)  # fmt: skip
_STOPS: Final = (5, 4, 3, 2, 1, 0)
"""Numbers of changing operations after which the first action stands still. Most formats commit by the fifth."""
_DATA: Final = 3
"""Number of operations that write an append's data file, without the last one."""
_READS: Final = 5
"""Number of reads between data and commit that most formats do not exceed."""
_MOST_ACTIONS: Final = 3
_WRITES: Final = 6
"""The approximate number of operations by which an action changes something."""
_OPERATIONS: Final = 16
_ONE_IN: Final = 12
"""One race in this many is about the first commits of a table."""


def races(seed: int, capabilities: Collection[Capability]) -> Iterator[Race]:
    """Yield races that an adapter supports, from a number on; a number always makes the same race."""
    can = tuple(name for name, action in RACE_ACTIONS.items() if action.needs <= set(capabilities))
    pairs = tuple(pair for pair in _PAIRS if set(pair) <= set(can))
    for number in count(seed):
        if number % 2 == 0:
            yield _pair(number, pairs)
        elif number % 4 == 3:
            yield _amid_reads(number, pairs)
        else:
            yield _first_commits(number) if number % _ONE_IN == 1 else _any(number, can)


def _pair(number: int, pairs: tuple[tuple[str, str], ...]) -> Race:
    """Return the race of two actions, the second one run while the first is stopped, and of a read after each.

    The second process reads first, too: its own action must not undo effects of the first one that it has seen.
    """
    round_, place = divmod(number // 2, len(pairs))
    first, second = pairs[place]
    stop = Turn(0, _STOPS[(round_ + place) % len(_STOPS)], writes=first != "read")
    return Race((round_ + place) % 2 == 0, ((first, "read"), ("read", second, "read")), (stop, Turn(1)))


def _amid_reads(number: int, pairs: tuple[tuple[str, str], ...]) -> Race:
    """Return the race of two actions, the first of which is stopped during its reads before the commit."""
    round_, place = divmod(number // 4, len(pairs))
    first, second = pairs[place]
    stop = Turn(0, _DATA, writes=True), Turn(0, 2 + (round_ + place) % _READS, writes=False)
    return Race(round_ % 2 == 0, ((first, "read"), (second, "read")), (*stop, Turn(1)))


def _first_commits(number: int) -> Race:
    """Return the race of two first appends to a table without a key, so that a lost row is seen."""
    stop = Turn(0, _STOPS[(number // _ONE_IN + 1) % len(_STOPS)])
    return Race(False, (("append", "read"), ("append", "read")), (stop, Turn(1)), empty=True)


def _any(number: int, can: tuple[str, ...]) -> Race:
    """Return a race of any actions and turns."""
    random = Random(number)
    writers = tuple(
        tuple(random.choice(can) for _ in range(random.randint(1, _MOST_ACTIONS)))
        for _ in range(random.choice((2, 2, 3)))
    )
    return Race(random.random() < 0.5, writers, tuple(_turn(random, len(writers)) for _ in range(random.randint(2, 6))))


def _turn(random: Random, writers: int) -> Turn:
    writes = random.random() < 0.7
    return Turn(random.randrange(writers), random.randint(0, _WRITES if writes else _OPERATIONS), writes)
