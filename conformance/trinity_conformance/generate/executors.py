"""The executor of the steps of a history: both executors by turns, or this process alone."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from trinity_conformance.playing.traces import History, Step, Upsert


def by_turns(history: History, number: int) -> History:
    """Return a history with an executor drawn for each step."""
    chance = Random(number)
    steps = (replace(step, executor=chance.choice(("spark", "local"))) for step in history.steps)
    return replace(history, steps=tuple(steps))


def without_spark(history: History) -> History:
    """Return a history that this process executes alone, with all rows as Arrow data."""
    return replace(history, steps=tuple(map(_executed_locally, history.steps)))


def _executed_locally(step: Step) -> Step:
    here = replace(step, executor="local")
    return replace(here, path="arrow") if isinstance(here, Upsert) else here
