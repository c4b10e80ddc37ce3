"""Histories of what an adapter declares: steps and tables that it does not support are left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from trinity.spi import Capability
from trinity_conformance.model.shapes import PRODUCER, Shape
from trinity_conformance.playing.needs import of_shape, of_step
from trinity_conformance.playing.traces import Compact, History, Resolve, Step

_TRIES: Final = 20
"""Maximum number of histories that are drawn for each one that can be played."""


def drawn(
    histories: Iterable[History],
    capabilities: Collection[Capability],
    most: int,
    short: Callable[[], object],
    longer: int = 1,
) -> Iterator[History]:
    """Yield the histories of tables that an adapter has, without the steps that it lacks.

    Args:
        histories: histories of any tables.
        capabilities: the adapter's capabilities.
        most: the number of histories.
        short: returns whether too few situations were seen so far. Then more histories follow.
        longer: the factor by which their number may grow.
    """
    found = (declared(history, capabilities) for history in islice(histories, _TRIES * most))
    playable = (history for history in found if history is not None)
    for number, history in enumerate(islice(playable, longer * most)):
        if number >= most and not short():
            return
        yield history


def declared(history: History, capabilities: Collection[Capability]) -> History | None:
    """Return a history without the steps that an adapter lacks; None when it lacks such tables, or all of its steps."""
    shape = _plainer(history.shape, capabilities)
    steps = tuple(step for old in history.steps for step in _instead(old, capabilities))
    return History(shape, steps) if steps and of_shape(shape) <= set(capabilities) else None


def _plainer(shape: Shape, capabilities: Collection[Capability]) -> Shape:
    """Return a table without partitions and stored changes, if the adapter lacks these."""
    if Capability.PARTITION_BY_VALUE not in capabilities:
        shape = replace(shape, partition_by=())
    if Capability.TIME_TRAVEL not in capabilities:
        shape = replace(shape, properties={k: v for k, v in shape.properties.items() if k != PRODUCER})
    return shape


def _instead(step: Step, capabilities: Collection[Capability]) -> tuple[Step, ...]:
    """Return the step to play in place of a step: itself, another one, or None."""
    if of_step(step) <= set(capabilities):
        return (step,)
    return (Compact(executor=step.executor),) if isinstance(step, Resolve) else ()
