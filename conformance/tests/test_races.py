"""Writers in several processes: which serial order explains a race, which faults only they show, and replayed races."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.budgets import QUICK
from trinity.spi import EVERYTHING, Format, SplitSource, TableHandle
from trinity.storage import TableVersion
from trinity_conformance import run_check
from trinity_conformance.command import cli
from trinity_conformance.generate.races import races
from trinity_conformance.mutants.hunt import hunt_adapters
from trinity_conformance.mutants.shared import SHARED, LockOfThreads, SharedFormat, SharedMetadata
from trinity_conformance.playing import traces
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.race_actions import World
from trinity_conformance.playing.race_play import Races
from trinity_conformance.playing.race_run import Taken
from trinity_conformance.playing.races import Race, Turn
from trinity_conformance.playing.serial import judge
from trinity_conformance.playing.subject import TrinitySubject

STEPS = 6
LOST_UPDATE = Race(False, (("add",), ("add",)), (Turn(0, 4), Turn(1)))
AT_ONCE, LATER = ((0, 3), (1, 2)), ((0, 1), (2, 3))
"""(beginning, end) of two actions."""


@contextmanager
def raced(adapter: type[Format], folder: Path) -> Iterator[Races]:
    subject = TrinitySubject(adapter, None, folder)
    with Races(subject) as found:
        yield found
    subject.close()


def actions(places: tuple[tuple[int, int], tuple[int, int]], *outcomes: tuple[str, object]) -> list[Taken]:
    return [
        Taken(writer, name, 100 + writer, *place, result=outcome)
        for writer, (place, (name, outcome)) in enumerate(zip(places, outcomes, strict=True))
    ]


ONE = (1, 0, 0)
"""The counts of an UPDATE of one row."""


def test_a_serial_order_explains_both_updates() -> None:
    judge(actions(AT_ONCE, ("add", ONE), ("add", ONE)), World(False), World(False, ((1, 2), (2, 0))))


@pytest.mark.parametrize(
    ("taken", "last"),
    [
        pytest.param(actions(AT_ONCE, ("add", ONE), ("add", ONE)), ((1, 1), (2, 0)), id="lost update"),
        pytest.param(actions(AT_ONCE, ("add", ONE), ("truncate", None)), ((1, 1), (2, 0)), id="undone truncate"),
        pytest.param(actions(AT_ONCE, ("load", False), ("load", False)), ((1, 0), (2, 0), (5, 100)), id="loaded twice"),
        pytest.param(actions(LATER, ("add", ONE), ("read", ((1, 0), (2, 0)))), ((1, 1), (2, 0)), id="stale read"),
        pytest.param(
            actions(AT_ONCE, ("add", (2, 0, 0)), ("append", None)), ((1, 1), (1, 101), (2, 0), (3, 101)), id="count"
        ),
    ],
)
def test_no_serial_order_explains(taken: list[Taken], last: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(NonConformance, match="no serial order explains"):
        judge(taken, World(False), World(False, last))


def test_a_read_at_the_same_time_may_be_before_or_after() -> None:
    for seen in (((1, 0), (2, 0)), ((1, 1), (2, 0))):
        judge(actions(AT_ONCE, ("add", ONE), ("read", seen)), World(False), World(False, ((1, 1), (2, 0))))


def test_only_a_conflict_with_another_action_is_no_failure() -> None:
    lost = ("TRANSACTION_CONFLICT", "others committed")
    for places, fails in ((AT_ONCE, False), (LATER, True)):
        taken = actions(places, ("add", ONE), ("add", lost))
        taken[1].failed = True
        last = World(False, ((1, 1), (2, 0)))
        if not fails:
            judge(taken, World(False), last)
            continue
        with pytest.raises(NonConformance, match="an action failed"):
            judge(taken, World(False), last)


def test_the_second_process_commits_amid_the_first_one(tmp_path: Path) -> None:
    tally = Tally()
    with raced(SharedFormat, tmp_path) as played:
        played.play(LOST_UPDATE, tally)
    assert tally.coverage.counts["action within another process's"] == 1
    assert tally.observations["writers"] == 2


def test_a_lost_update_is_found(tmp_path: Path) -> None:
    with raced(LockOfThreads, tmp_path) as played, pytest.raises(NonConformance, match="no serial order") as caught:
        played.play(LOST_UPDATE, Tally())
    assert caught.value.trace == LOST_UPDATE
    assert "which stood still before: " in caught.value.message


def test_races_have_ids_and_are_kept_whole(tmp_path: Path) -> None:
    drawn = [*islice(races(0, EVERYTHING), 40)]
    assert len({race.id for race in drawn}) == len(drawn)
    for race in drawn:
        traces.save(race, tmp_path)
        assert traces.load(race.id, tmp_path) == race


def replayed(file: Path, adapter: str) -> tuple[int, str]:
    again = CliRunner().invoke(cli.app, ["replay", str(file), "--format", adapter])
    return again.exit_code, again.output


@pytest.mark.full
@pytest.mark.parametrize("fault", SHARED)
def test_a_fault_that_only_several_processes_show_is_found_and_played_again(
    fault: type[Format], tmp_path: Path
) -> None:
    [kill] = hunt_adapters([fault.__name__])
    [found] = kill.found
    assert (found.check, found.steps <= STEPS) == ("writers", True), found.message
    file = traces.save(found.trace, tmp_path)
    code, output = replayed(file, f"trinity_conformance.mutants.planted:{fault.__name__}")
    assert (code, ": writers: " in output) == (1, True), output
    code, output = replayed(file, "trinity_conformance.mutants.shared:SharedFormat")
    assert (code, "SharedFormat: passed" in output) == (0, True), output


class _Unreadable(SharedMetadata):
    def get_splits(self, table: TableHandle) -> SplitSource:
        if self.newest_version(table):
            raise OSError("the disk is gone")
        return super().get_splits(table)


class Unreadable(SharedFormat):
    metadata = _Unreadable


class _OwnLast(SharedMetadata):
    """Remembers the newest version that this process has seen or committed."""

    def __init__(self, catalog: str, warehouse: str) -> None:
        super().__init__(catalog, warehouse)
        self._known: dict[str, int] = {}

    def newest_version(self, table: TableHandle) -> int:
        return self._known.setdefault(table.location, super().newest_version(table))

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        super().write_version(table, version)
        self._known[table.location] = version.number


class OwnLast(SharedFormat):
    metadata = _OwnLast


def test_what_one_process_shows_alone_is_made_small(tmp_path: Path) -> None:
    """It is seen before the first race, when a process that is to take part in it tries every action."""
    [failure] = run_check(OwnLast, None, "writers", QUICK).failures
    assert failure.race is not None
    assert ([*map(len, failure.race.writers)], failure.race.turns) == ([1], ())
    with raced(OwnLast, tmp_path) as played, pytest.raises(NonConformance, match="no serial order"):
        played.play(failure.race, Tally())


def test_a_table_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    with raced(Unreadable, tmp_path) as played, pytest.raises(NonConformance, match=r"raised .*the disk is gone"):
        played.play(LOST_UPDATE, Tally())


@pytest.mark.full
def test_the_adapter_without_a_fault_passes() -> None:
    report = run_check(SharedFormat, None, "writers")
    assert ([r.status for r in report.results], report.text()) == (["passed"], f"{report.connector}: no finding")


def test_tables_of_one_process_are_not_raced() -> None:
    [result] = run_check("memory", None, "writers").results
    assert (result.status, result.unplayed) == ("not played", "no other process can open its tables")
