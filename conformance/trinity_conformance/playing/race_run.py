"""Run a race: give its processes their turns, and record each action's result and the actions that overlapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Any, Final

from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.race_actions import RACE_ACTIONS, mark
from trinity_conformance.playing.race_processes import Permit, RaceProcess, ready
from trinity_conformance.playing.races import Race

RACES_CHECK: Final = "writers"
_PATIENCES: Final = 20
"""Multiple of the patience with a process after which all are considered blocked."""


@dataclass
class Taken:
    """An action that was run.

    Attributes:
        writer: number of the process.
        name: the action.
        mark: the number that identifies it.
        begun, ended: its place among all beginnings and ends; an action that began after another one's end is later.
        result: its result; its error code and message if it failed.
        failed: whether it failed.
        stops: the operations before which it was paused.
    """

    writer: int
    name: str
    mark: int
    begun: int
    ended: int = -1
    result: Any = None
    failed: bool = False
    stops: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The action and its result, in a line."""
        what = RACE_ACTIONS[self.name].words.format(mark=self.mark)
        stood = f", which stood still before: {'; '.join(self.stops)}" if self.stops else ""
        outcome = f"failed: {': '.join(self.result)}" if self.failed else f"returned {self.result}"
        return f"process {self.writer}: {what}{stood}; {outcome if self.failed or self.result is not None else 'done'}"

    def precedes(self, other: Taken) -> bool:
        """Return whether this action had ended before another one began."""
        return self.ended < other.begun

    def overlaps(self, other: Taken) -> bool:
        """Return whether this action and another one overlapped in time."""
        return not self.precedes(other) and not other.precedes(self)


@dataclass
class _Writer:
    """A process, and its remaining actions."""

    number: int
    process: RaceProcess
    names: tuple[str, ...]
    taken: list[Taken] = field(default_factory=list)
    amid: bool = False

    @property
    def over(self) -> bool:
        """True once it has taken all of its actions."""
        return not self.amid and len(self.taken) == len(self.names)


def run_race(race: Race, table: str, processes: Sequence[RaceProcess]) -> list[Taken]:
    """Run a race on a table, and return its actions in the order of their beginnings.

    Raises:
        NonConformance: a process ended unexpectedly, or none of them continues.
    """
    run = _Running(race, table, processes)
    for turn in race.turns:
        run.turn(run.writers[turn.writer], Permit(turn.count, turn.writes))
    seconds = _PATIENCES * max(process.patience_s for process in processes)
    until = monotonic() + seconds
    while not all(writer.over for writer in run.writers):
        for writer in run.writers:
            run.turn(writer, Permit())
        if monotonic() > until:
            raise NonConformance(RACES_CHECK, f"for {seconds:g} s no process came to its end: {run.story}")
    return sorted((taken for writer in run.writers for taken in writer.taken), key=lambda taken: taken.begun)


class _Running:
    """A race as it runs.

    Attributes:
        writers: its processes.
    """

    def __init__(self, race: Race, table: str, processes: Sequence[RaceProcess]) -> None:
        self.writers = [_Writer(n, processes[n], names) for n, names in enumerate(race.writers)]
        self._table, self._places = table, count()

    @property
    def story(self) -> str:
        """The actions so far, in words."""
        return "\n".join(["", *(f"  {taken.words}" for writer in self.writers for taken in writer.taken)])

    def turn(self, writer: _Writer, permit: Permit) -> None:
        """Let a process run as far as a permit allows, or until it waits for another process."""
        until = monotonic() + writer.process.patience_s
        if not writer.process.running:
            self._onwards(writer, permit)
        while writer.process.running and (left := until - monotonic()) > 0:
            running = [other for other in self.writers if other.process.running]
            came = ready([other.process for other in running], left)
            for other in running:
                if other.process in came:
                    self._hear(other, go_on=other is writer)

    def _onwards(self, writer: _Writer, permit: Permit) -> None:
        """Let a process go on with its action, or begin its next one."""
        if writer.amid:
            writer.process.go_on(permit)
        elif not writer.over:
            number = len(writer.taken)
            name, marked = writer.names[number], mark(writer.number, number)
            writer.taken.append(Taken(writer.number, name, marked, next(self._places)))
            writer.amid = True
            writer.process.begin(name, self._table, marked, permit)

    def _hear(self, writer: _Writer, *, go_on: bool) -> None:
        """Record the message of a process; begin its next action if its permit allows."""
        taken = writer.taken[-1]
        try:
            kind, result, rest = writer.process.heard()
        except EOFError:
            ended = f"process {writer.number} ended by itself: {self.story}"
            raise NonConformance(RACES_CHECK, ended) from None
        if kind == "stopped":
            taken.stops.append(result)
            return
        taken.ended, taken.result, taken.failed = next(self._places), result, kind == "failed"
        writer.amid = False
        if go_on and rest.count != 0:
            self._onwards(writer, rest)
