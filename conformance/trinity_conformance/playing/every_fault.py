"""Plays a history once for each fault of each operation of storage of each of its steps."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.traces import FAULTS, Fault, History, Upsert

if TYPE_CHECKING:
    from trinity_conformance.playing.subject import Subject


def every_fault(subject: Subject, history: History) -> int:
    """Play a history with every fault in turn; return how many there were.

    Raises:
        NonConformance: with one of the faults the table is wrong; it names the history with that fault.
    """
    found = 0
    for place in range(len(history.steps)):
        for kind in FAULTS:
            for at in count():
                tally = Tally()
                play(subject, _with(history, place, Fault(kind, at)), tally)
                if not tally.coverage.counts["fault"]:
                    break
                found += 1
    return found


def _with(history: History, place: int, fault: Fault) -> History:
    """Return a history with one fault, whose upserts are transactions by which they can be retried."""
    step = replace(history.steps[place], fault=fault)
    if isinstance(step, Upsert):
        step = replace(step, txn=("faults", place + 1))
    return replace(history, steps=(*history.steps[:place], step, *history.steps[place + 1 :]))
