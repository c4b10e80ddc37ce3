"""Faults within histories: what goes wrong at a step, drawn for histories that this process executes alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from trinity.spi import EVERYTHING, Capability
from trinity_conformance.generate.executors import without_spark
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import rota
from trinity_conformance.playing.traces import (
    Compact,
    Delete,
    Fault,
    History,
    Query,
    Read,
    Resolve,
    RowChangeStep,
    Step,
    Upsert,
    Vacuum,
)

_WEIGHTS: Final[Mapping[str, int]] = {
    "upsert": 5, "delete": 2, "compact": 3, "resolve": 1, "vacuum": 2, "read": 1, "query": 2,
}  # fmt: skip
"""The weight of each kind of step in the draw of histories in which something goes wrong."""

_WRITES: Final = (Upsert, Delete, RowChangeStep, Compact, Resolve, Vacuum)
_PLACES: Final[Mapping[str, tuple[int, ...]]] = {
    "crash before": (1, 2, 3, 4, 5, 5, 6, 7),
    "error after": (4, 5, 0, 4, 1, 5, 2, 3),
    "torn": (1, 0, 1, 2),
    "error": (5, 16, *range(18)),
    "crash after": (5, 4, 1, 5, 2, 3, 5, 6, 7),
    "unknown": (0,),
    "twice": (0, 1, 0, 2, 3, 4, 5),
}
"""Kind of a fault -> numbers of the operations at which it happens; those of most formats' commits occur more often."""
_OF_READS: Final = 6
"""The approximate number of operations of a read."""


def faulted(number: int, capabilities: Collection[Capability] = EVERYTHING) -> History:
    """Return the history of a number, of the rota's kinds of tables, in which something goes wrong at each write."""
    return _with_faults(sample(histories(rota(number, capabilities), _WEIGHTS, 4, 7), number), number)


def _with_faults(history: History, number: int) -> History:
    """Return a history with a fault in each write and each read, which this process executes alone.

    Args:
        history: the history.
        number: the number of the first fault; successive numbers make different faults.
    """
    kinds = [*_PLACES]
    steps = list[Step]()
    for place, step in enumerate(without_spark(history).steps):
        turn = number + place
        if isinstance(step, _WRITES):
            kind = kinds[turn % len(kinds)]
            places = _PLACES[kind]
            step = _with_fault(step, Fault(kind, places[(turn // len(kinds) + number) % len(places)]), place)
        elif isinstance(step, (Read, Query)):
            step = replace(step, fault=Fault("error", turn % _OF_READS))
        steps.append(step)
    return History(history.shape, tuple(steps))


def _with_fault(step: Step, fault: Fault, place: int) -> Step:
    """Return a step with a fault; an upsert gets a transaction, by which it can be retried."""
    if isinstance(step, Upsert):
        return replace(step, fault=fault, txn=("faults", place + 1))
    return replace(step, fault=fault)
