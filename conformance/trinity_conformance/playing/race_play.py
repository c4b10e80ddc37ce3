"""Plays races on an adapter whose tables other processes open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Final

from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.race_actions import RACE_ACTIONS, World, definition, write
from trinity_conformance.playing.race_processes import RaceProcess, started
from trinity_conformance.playing.race_run import RACES_CHECK, Taken, run_race
from trinity_conformance.playing.races import Race
from trinity_conformance.playing.serial import judge

if TYPE_CHECKING:
    from trinity_conformance.playing.subject import TrinitySubject

_NUMBERS: Final = count()


class Races:
    """A player of races on an adapter, by the same processes until a failure, then by new ones. A context manager."""

    def __init__(self, subject: TrinitySubject) -> None:
        self._subject = subject
        self._processes = list[RaceProcess]()

    def play(self, race: Race, tally: Tally) -> None:
        """Play a race; raises as :func:`_play_race`."""
        alone = len(race.writers) == 1
        while len(self._processes) < len(race.writers):
            self._processes.append(started(self._subject.settings) if alone else self._warm())
        try:
            _play_race(self._subject, race, self._processes, tally)
        except NonConformance:
            self._end()  # the processes are in the middle of actions
            raise
        if alone:
            self._end()

    def failure_of(self, race: Race, tally: Tally) -> NonConformance | None:
        """Play a race; return its failure, None where it passes."""
        try:
            self.play(race, tally)
        except NonConformance as failure:
            return failure
        return None

    def _warm(self) -> RaceProcess:
        """Return a new process that has written once alone: its modules are loaded, and its speed is known.

        If that fails, it is a race of one process, which is played, and made small, in one that has written nothing.
        """
        process, begun = started(self._subject.settings), monotonic()
        can = (name for name, action in RACE_ACTIONS.items() if action.needs <= self._subject.capabilities)
        try:
            _play_race(self._subject, Race(False, (tuple(can),), ()), [process], Tally())
        except NonConformance:
            process.end()
            raise
        process.patience_s = max(process.patience_s, monotonic() - begun)
        return process

    def _end(self) -> None:
        while self._processes:
            self._processes.pop().end()

    def __enter__(self) -> Races:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()


def _play_race(subject: TrinitySubject, race: Race, processes: Sequence[RaceProcess], tally: Tally) -> None:
    """Play a race on a new table.

    Args:
        subject: the adapter.
        race: the race.
        processes: at least as many processes as it has writers; after a failure they cannot be reused.
        tally: counts actions and situations.

    Raises:
        NonConformance: no serial order explains the results, or the table cannot be made or read.
    """
    name = f"c.default.race{next(_NUMBERS)}"
    try:
        subject.session.sql(f"CREATE TABLE {name} {definition(race.keyed)}")
        for row in race.first.rows:
            write(subject.session.table(name), [row])
        taken = run_race(race, name, processes)
        judge(taken, race.first, _world_of(subject, name, race.keyed))
    except NonConformance as failure:
        failure.race = race
        raise
    except Exception as error:
        text = f"its table, which this process makes and reads, raised {type(error).__name__}: {str(error)[:1500]}"
        found = NonConformance(RACES_CHECK, text)
        found.race = race
        raise found from error
    tally.observations[RACES_CHECK] += len(taken)
    tally.coverage.saw(*_situations(taken))


def _world_of(subject: TrinitySubject, name: str, keyed: bool) -> World:
    table = subject.session.table(name)
    rows = [(row["k"], row["n"]) for row in table.to_arrow(["k", "n"]).to_pylist()]
    columns = frozenset(column.name for column in table.definition.visible) - {"k", "n"}
    return World(keyed, tuple(sorted(rows)), columns)


def _situations(taken: Sequence[Taken]) -> list[str]:
    """Return an entry for each action within which another process took one from its beginning to its end."""
    return [
        "action within another process's"
        for outer in taken
        if outer.stops and any(outer.begun < inner.begun and inner.ended < outer.ended for inner in taken)
    ]
