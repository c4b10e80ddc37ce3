"""How many histories are played: counts and times of a budget, measured by a clock of the test's own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.budgets import played
from trinity.spi import EVERYTHING
from trinity_conformance import BUDGETS, Budget, NonConformance, Report, Results, Share, Tally, run_check
from trinity_conformance.command import cli
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import rota
from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS
from trinity_conformance.mutants.tables import ModelSubject, TieToEarlier
from trinity_conformance.playing.again import BY_HAND
from trinity_conformance.playing.elsewhere import call_elsewhere
from trinity_conformance.playing.traces import History
from trinity_conformance.report.results import Outcome, load
from trinity_conformance.shrink.histories import ShrinkBudget
from trinity_conformance.suite.budgets import SEEDS_OF_A_ROUND
from trinity_conformance.suite.checks import check_of
from trinity_conformance.suite.parts import Part, generated_of
from trinity_conformance.suite.results import results_of
from trinity_conformance.suite.running import OnFinding, run_histories

SMOKE = BUDGETS["smoke"]
ONE_HISTORY = replace(played(BUDGETS["soak"], histories=1), longer=1, minutes=5.5, shrink=ShrinkBudget(0, 0))
ONE_ROUND = replace(ONE_HISTORY, minutes=0)


def drawn(number: int) -> list[History]:
    return [sample(histories(rota(n), {"upsert": 1, "read": 1}), n) for n in range(number)]


class Clock:
    """A clock on which each history takes a minute."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def tick(self, *_: object) -> None:
        self.seconds += 60


def test_a_run_stops_after_its_failures() -> None:
    part, tally = Part("histories", drawn(12), Share(300, 12), ["read-equality", "time-travel"]), Tally()
    found = list(run_histories(ModelSubject(TieToEarlier), SMOKE, part, tally))
    assert [f.check for f in found] == ["read-equality"]
    [failed, stopped] = results_of([check_of(check) for check in part.checks], tally, found, alone=True)
    assert (failed.status, stopped.status) == ("failed", "inconclusive")  # Spark would not have seen more
    told = Outcome.of(stopped, "memory").note
    assert told == f"stopped by findings after {stopped.stopped} played: mend these, and run again"


@pytest.mark.parametrize("least", [1, 2])
def test_a_run_that_has_no_time_plays_the_least_and_says_how_many(least: int) -> None:
    tally, part = Tally(), Part("histories", drawn(3), Share(-1, 3, least), ["split"], lambda: ["split"])
    assert list(run_histories(ModelSubject(), SMOKE, part, tally)) == []
    assert (tally.histories, tally.ended) == (least, {"split": least})


@pytest.mark.parametrize("name", ["standard", "deep", "soak"])
def test_a_larger_budget_plays_at_least_what_smoke_plays(name: str) -> None:
    """On a machine so busy that time is over after two."""
    clock, tally, budget = Clock(), Tally(), BUDGETS[name]
    share = budget.shares["histories"]
    part = Part("histories", drawn(min(share.most, 20)), replace(share, seconds=min(share.seconds, 90)))
    assert list(run_histories(ModelSubject(), budget, part, tally, clock.tick, (), clock)) == []
    assert tally.histories == SMOKE.shares["histories"].most
    assert all(budget.shares[kind].least == share.most for kind, share in SMOKE.shares.items())


def test_a_run_without_spark_goes_on_while_a_check_has_seen_too_little() -> None:
    found = {}
    for longer in (1, 2):
        tally, budget = Tally(), replace(played(SMOKE, histories=1), longer=longer)
        play_idempotence(budget, tally)
        found[longer] = tally.histories
    assert found == {1: 1, 2: 2}


def test_a_busy_machine_has_more_time_while_a_check_has_seen_too_little() -> None:
    found = {}
    for patience in (1, 10):
        tally, shares = Tally(), {**SMOKE.shares, "histories": Share(90, 12)}
        play_idempotence(replace(SMOKE, shares=shares, patience=patience), tally)
        found[patience] = tally.histories, tally.ended.get("idempotence")
    assert found == {1: (1, 1), 10: (3, 3)}


def play_idempotence(budget: Budget, tally: Tally) -> None:
    """Play the histories of a check, each of which takes a minute."""
    clock = Clock()
    [part] = generated_of([check_of("idempotence")], budget, 0, EVERYTHING, tally, alone=True)
    assert list(run_histories(ModelSubject(), budget, part, tally, clock.tick, (), clock)) == []


def test_a_check_that_is_out_of_time_says_so() -> None:
    budget = replace(SMOKE, shares=dict.fromkeys(SMOKE.shares, Share(-1, 12)))
    [check] = Results.of(run_check("memory", None, "faults", budget), spark=False).checks
    assert check.status == "inconclusive"
    assert check.note.endswith("(out of time after 1 played)")


def test_a_soak_plays_fresh_seeds_until_its_time_and_goes_on_after_a_finding() -> None:
    clock, found = Clock(), list[NonConformance]()
    broken = ADAPTER_MUTANTS["CommitsInReverse"].adapter()
    report = run_check(
        broken, None, "read-equality", ONE_HISTORY, progress=clock.tick, on_finding=found.append, clock=clock
    )
    assert (report.rounds, report.seconds) == (3, 360)
    assert found == report.failures
    seeds = [seed * SEEDS_OF_A_ROUND for seed in range(3)]
    played_alone = [run_check(broken, None, "read-equality", ONE_ROUND, seed).failures for seed in seeds]
    assert [f.message for f in found] == [f.message for failures in played_alone for f in failures]
    assert len(found) >= 2
    assert "3 rounds, of seeds 0 to 2000 by 1000: " in Results.of(report, spark=False).work


def test_a_soak_that_is_interrupted_reports_what_it_played() -> None:
    clock = Clock()

    def interrupted(*_: object) -> None:
        clock.tick()
        if clock() == 240:
            raise KeyboardInterrupt

    report = run_check("memory", None, "read-equality", ONE_HISTORY, progress=interrupted, clock=clock)
    assert (report.rounds, report.tally.histories, report.conforms) == (2, 2, True)


@pytest.mark.parametrize(
    ("number", "found", "status", "verdict"),
    [
        (signal.SIGINT, [NonConformance("commits", "row 1 is there twice")], "failed", "does not conform"),
        (signal.SIGTERM, [], "inconclusive", "interrupted"),
    ],
)
@pytest.mark.usefixtures("interruptible")
def test_a_run_that_is_interrupted_reports_what_it_played(
    number: signal.Signals,
    found: list[NonConformance],
    status: str,
    verdict: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A check whose cases were not all played has not passed; earlier findings are reported."""

    def interrupted(_: object, tally: Tally, __: object) -> Iterator[NonConformance]:
        tally.observations["commits"] += 1
        yield from found
        os.kill(os.getpid(), number)

    monkeypatch.setitem(BY_HAND, "commits", (BY_HAND["commits"][0], interrupted))
    file = tmp_path / "results.json"
    words = ["--check", "commits", "--no-spark", "--traces", str(tmp_path), "--report", str(file)]
    done = CliRunner().invoke(cli.app, ["run", "memory", *words])
    assert (done.exit_code, "this is what was played until then" in done.output) == (130, True), done.output
    results = load(file)
    assert (results.interrupted, results.verdict, results.with_status(status)) == (True, verdict, ["commits"])
    assert results.checks[0].note == "interrupted before it was over"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Set Python's own handler for Ctrl-C, which a process lacks that a shell started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_call_of_another_process_leaves_no_answer_to_the_next_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        call_elsewhere(os.kill, os.getpid(), signal.SIGINT)
    assert call_elsewhere(abs, -1) == 1


def test_a_soak_ends_where_nothing_is_drawn() -> None:
    assert run_check("memory", None, "first-steps", ONE_HISTORY).rounds == 1


def test_the_command_saves_findings_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*given: Any, on_finding: OnFinding, **_: object) -> Report:
        assert (given[3].name, given[3].minutes) == ("soak", 90)
        failure = NonConformance("split", "row 1 is there twice")
        failure.history = drawn(1)[0]
        on_finding(failure)
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "run_check", run)
    words = ["--budget", "soak", "--minutes", "90", "--no-spark", "--traces", str(tmp_path)]
    done = CliRunner().invoke(cli.app, ["run", "memory", *words])
    saved = tmp_path / f"{drawn(1)[0].id}.json"
    assert (f"found by split, saved as {saved}" in done.output, saved.exists()) == (True, True), done.output


def test_only_a_soak_takes_minutes() -> None:
    done = CliRunner().invoke(cli.app, ["run", "memory", "--minutes", "1"])
    assert (done.exit_code, "--minutes is for --budget soak" in done.output) == (2, True)
