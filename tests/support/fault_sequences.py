"""Faults of a store as sequences: one request fails, and then later requests for its object, for a while.

A sequence is drawn from a seed; its repr plays it again.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.support.fault_proxy import LOST, Answer, Proxy, Request
from trinity.storage import s3, store_kind
from trinity.storage.store_kind import FIRST_PAUSE, LONGEST_PAUSE, PATIENCE, SILENCE, UNSURE

COMMIT: Final = -1
"""The number that stands for the first conditional put."""
_MOST_STEPS: Final = 12
_ANSWERS: Final[dict[str, Answer | None]] = {
    "lost": LOST,
    "silent": None,
    "throttled": Answer(503, b"<Error><Code>SlowDown</Code></Error>"),
    "failed": Answer(500, b"<Error><Code>InternalError</Code></Error>"),
    "refused": Answer(403, b"<Error><Code>AccessDenied</Code></Error>"),
    "expired": Answer(400, b"<Error><Code>ExpiredToken</Code></Error>"),
}
"""Name -> the answer; None for a store that does not answer."""
_EFFECTS: Final = ("done", "late", "undone")
"""A request takes effect at once, at the end of the block, or never."""


@dataclass(frozen=True)
class FaultSequence:
    """A sequence of faults.

    Attributes:
        at: the number of the request that fails, or :data:`COMMIT`.
        effect: ``done``, ``late`` or ``undone``: whether that request takes effect; later ones do not.
        answers: the answers to that request and to the later ones for the same object, one by one.
        repeats: True where the last answer is repeated for all further requests.
    """

    at: int
    effect: str
    answers: tuple[str, ...]
    repeats: bool = False


def drawn(random: Random) -> FaultSequence:
    """Draw a sequence of faults."""
    at = COMMIT if random.random() < 0.6 else random.randrange(12)
    effect = random.choice(_EFFECTS)
    unanswered = ("lost", "silent", "failed", "throttled") if effect == "done" else ("lost", "silent")
    first = random.choice(tuple(_ANSWERS) if effect == "undone" else unanswered)
    rest: list[str] = []
    while len(rest) < _MOST_STEPS and random.random() < 0.8:
        rest += [random.choice(tuple(_ANSWERS))] * random.choice((1, 1, 2, 5))
    return FaultSequence(at, effect, (first, *rest), random.random() < 0.25)


@dataclass
class _Play:
    sequence: FaultSequence
    over: threading.Event = field(default_factory=threading.Event)
    late: list[Callable[[], Answer]] = field(default_factory=list)
    _asked: int = 0
    _given: int = 0
    _object: str | None = None
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, request: Request, ask: Callable[[], Answer]) -> Answer | None:
        with self._mutex:
            number, self._asked = self._asked, self._asked + 1
            first = self._object is None and self._begins(request, number)
            if first:
                self._object = request.object
            if self._object != request.object or (word := self._next()) is None:
                return None
        if first and self.sequence.effect == "late" and request.method == "PUT":
            self.late.append(ask)
        elif first and self.sequence.effect == "done":
            ask()
        if (answer := _ANSWERS[word]) is None:
            self.over.wait()
            return LOST
        return answer

    def _begins(self, request: Request, number: int) -> bool:
        return request.conditional if self.sequence.at == COMMIT else number == self.sequence.at

    def _next(self) -> str | None:
        answers, given = self.sequence.answers, self._given
        self._given += 1
        if given < len(answers):
            return answers[given]
        return answers[-1] if self.sequence.repeats else None


@contextlib.contextmanager
def playing(proxy: Proxy, sequence: FaultSequence) -> Iterator[Callable[[], bool]]:
    """Play a sequence of faults during the block, and yield a function that returns whether it has begun.

    A request whose effect is late takes effect at the end.
    """
    play = _Play(sequence)
    with proxy.faulty(play.fault):
        try:
            yield lambda: play._object is not None
        finally:
            play.over.set()
    for ask in play.late:
        ask()


@contextlib.contextmanager
def hurried() -> Iterator[None]:
    """Shorten the timeouts of clients to a tenth during the block; clients made afterwards have the usual ones."""
    with contextlib.ExitStack() as hurry:
        _forget_clients()
        hurry.callback(_forget_clients)
        for limit in (SILENCE, PATIENCE, UNSURE, FIRST_PAUSE, LONGEST_PAUSE):
            hurry.enter_context(limit.set_to(limit.value / (20 if limit is UNSURE else 10)))
        hurry.enter_context(s3.ARROW_SILENCE_S.set_to(1))
        yield


def _forget_clients() -> None:
    for made in (store_kind.made_client, s3._filesystem):
        made.cache_clear()
