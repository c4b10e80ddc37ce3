"""Races: writers in several processes, each with its actions, and the turns by which they go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from trinity_conformance.playing.content import Content, read_content
from trinity_conformance.playing.race_actions import FIRST, RACE_ACTIONS, World, definition, mark


@dataclass(frozen=True)
class Turn:
    """A part of a race in which one process runs, and the others are paused.

    Attributes:
        writer: number of the process.
        count: the number of storage operations that it does, until right before the next one; None for all.
        writes: whether only changing operations are counted.
    """

    writer: int
    count: int | None = None
    writes: bool = True

    @property
    def words(self) -> str:
        """The turn in words."""
        if self.count is None:
            return f"process {self.writer} goes on to its end"
        kind = "writing operation" if self.writes else "operation"
        done = f" after {self.count} of them" if self.count else ""
        return f"process {self.writer} goes on, and stands still before its next {kind}{done}"


@dataclass(frozen=True)
class Race(Content):
    """Writers of one table, each a process of its own.

    Attributes:
        keyed: whether the table has a key.
        writers: the actions of each process, in order: names of
            :data:`~trinity_conformance.playing.race_actions.RACE_ACTIONS`.
        turns: the turns, in order. Afterwards each process goes on to its end, one after the other.
        empty: whether the table has no rows and no commit before.
    """

    keyed: bool
    writers: tuple[tuple[str, ...], ...]
    turns: tuple[Turn, ...]
    empty: bool = False

    @property
    def first(self) -> World:
        """The table before the race."""
        return World(self.keyed, () if self.empty else FIRST)

    @property
    def steps(self) -> tuple[str, ...]:
        """The actions and the turns, in words."""
        taken = (
            f"process {writer}: {RACE_ACTIONS[name].words.format(mark=mark(writer, number))}"
            for writer, names in enumerate(self.writers)
            for number, name in enumerate(names)
        )
        return (*taken, *(turn.words for turn in self.turns))

    @property
    def story(self) -> str:
        """The race in words, with a numbered line for each action and each turn."""
        rows = "no rows" if self.empty else f"{' and '.join(map(str, FIRST))}, each of a commit of its own"
        lines = [f"CREATE TABLE t {definition(self.keyed)}, which holds {rows}"]
        lines += [f"{number:>3}  {step}" for number, step in enumerate(self.steps)]
        return "\n".join([*lines, "     Then each process goes on to its end, one after the other."])

    def _fields(self) -> Mapping[str, Any]:
        return {"race": asdict(self)}

    @classmethod
    def from_json(cls, text: str) -> Race:
        """Return the race that :meth:`to_json` wrote.

        Raises:
            ValueError: not a race, or one of another format.
        """

        def made(data: Mapping[str, Any]) -> Race:
            race = data["race"]
            turns = tuple(Turn(**turn) for turn in race["turns"])
            return cls(race["keyed"], tuple(map(tuple, race["writers"])), turns, race.get("empty", False))

        return read_content(text, made)
