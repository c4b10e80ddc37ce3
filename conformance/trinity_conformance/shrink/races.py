"""Shrinks a failing race: fewer processes, actions and turns, and shorter turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.races import Race
from trinity_conformance.shrink.histories import ShrinkBudget, smallest


def shrink_race(
    failure: NonConformance, trial: Callable[[Race], NonConformance | None], budget: ShrinkBudget
) -> NonConformance:
    """Return the failure of a smaller race, or the given one.

    The arguments are those of :func:`~trinity_conformance.shrink.histories.shrink`.
    """
    return smallest(failure, _smaller, trial, budget, set())


def _smaller(failure: NonConformance) -> Iterator[Race]:
    """Yield smaller races, the most promising first."""
    race = failure.race
    assert race is not None, "only a played race can be made smaller"
    if len(race.writers) == 1 and len(race.writers[0]) > 2:
        yield from (replace(race, writers=((name,),)) for name in race.writers[0])
    if len(race.writers) > 2:
        yield from (_without(race, writer) for writer in range(len(race.writers)))
    for writer, names in enumerate(race.writers):
        if len(names) > 1:
            for place in reversed(range(len(names))):
                fewer = (*names[:place], *names[place + 1 :])
                yield replace(race, writers=(*race.writers[:writer], fewer, *race.writers[writer + 1 :]))
    for place in reversed(range(len(race.turns))):
        yield replace(race, turns=(*race.turns[:place], *race.turns[place + 1 :]))
    for place, turn in enumerate(race.turns):
        for fewer_operations in sorted({turn.count // 2, turn.count - 1}) if turn.count else ():
            shorter = replace(turn, count=fewer_operations)
            yield replace(race, turns=(*race.turns[:place], shorter, *race.turns[place + 1 :]))
    if race.keyed:
        yield replace(race, keyed=False)


def _without(race: Race, writer: int) -> Race:
    """Return the race without a process."""
    turns = tuple(
        replace(turn, writer=turn.writer - (turn.writer > writer)) for turn in race.turns if turn.writer != writer
    )
    return replace(race, writers=(*race.writers[:writer], *race.writers[writer + 1 :]), turns=turns)
