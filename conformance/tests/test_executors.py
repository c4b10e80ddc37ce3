"""Histories whose steps two executors take by turns: as traces, when they are shrunk, and without Spark."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.budgets import played
from trinity_conformance import run_check
from trinity_conformance.command.cli import app
from trinity_conformance.generate.executors import by_turns, without_spark
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import dml_rota, rota
from trinity_conformance.generate.programs import programs
from trinity_conformance.mutants.tables import ModelSubject
from trinity_conformance.playing import traces
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.runner import failure_of, play
from trinity_conformance.playing.traces import Compact, Executor, History, Upsert
from trinity_conformance.playing.words import story
from trinity_conformance.shrink.histories import ShrinkBudget, shrink
from trinity_conformance.suite.budgets import BUDGETS
from trinity_conformance.suite.checks import check_of
from trinity_conformance.suite.results import CheckResult


class Forgetful(ModelSubject):
    """A subject with a fault: one executor loses the rows that it compacts if the other one has written them."""

    executor: Executor = "spark"
    wrote: Executor = "spark"

    def executed_by(self, executor: Executor) -> None:
        self.executor = executor

    def upsert(self, step: Upsert) -> Any:
        self.wrote = self.executor
        return super().upsert(step)

    def compact(self, full: bool) -> None:
        if (self.wrote, self.executor) == ("spark", "local"):
            self._model.commits.clear()
        super().compact(full)


@pytest.fixture
def turns() -> History:
    """Return a history of a table whose steps the executors take by turns."""
    return by_turns(sample(histories(rota(0)), 0), 0)


def trial(history: History) -> NonConformance | None:
    return failure_of(Forgetful(), history)


def test_a_trace_keeps_who_executes_each_step(turns: History, tmp_path: Path) -> None:
    assert {step.executor for step in turns.steps} == {"spark", "local"}
    assert traces.load(str(traces.save(turns, tmp_path)), tmp_path) == turns
    shown = [line for line in story(turns).splitlines() if "[this process] " in line]
    assert len(shown) == sum(step.executor == "local" for step in turns.steps)


def test_a_program_keeps_it_too() -> None:
    program = by_turns(sample(programs(dml_rota(1)), 1), 1)
    assert {step.executor for step in program.steps} == {"spark", "local"}
    assert History.from_json(program.to_json()) == program


def test_a_trace_that_names_no_executor_is_sparks(turns: History) -> None:
    plain = replace(turns, steps=tuple(replace(step, executor="spark") for step in turns.steps))
    assert all("executor" not in step for step in json.loads(plain.to_json())["steps"])
    assert History.from_json(plain.to_json()) == plain


def test_without_spark_every_step_is_this_process_s(turns: History) -> None:
    alone = without_spark(turns)
    assert {step.executor for step in alone.steps} == {"local"}
    assert {step.path for step in alone.steps if isinstance(step, Upsert)} == {"arrow"}


def test_a_failure_is_made_small_with_the_turns_that_it_needs() -> None:
    drawn = (by_turns(sample(histories(rota(n)), n), n) for n in range(40))
    failure = next(failure for history in drawn if (failure := trial(history)))
    small = shrink(failure, trial, ShrinkBudget(math.inf, 400)).history
    assert small is not None
    assert [(type(step), step.executor) for step in small.steps] == [(Upsert, "spark"), (Compact, "local")]
    assert small.rows == 1


def test_turns_are_counted() -> None:
    tally = Tally()
    upsert = Upsert((((1, 1),),))
    shape = sample(histories(rota(0)), 0).shape
    only = replace(
        shape, columns=tuple(c for c in shape.columns if c.name in ("k0", "v")), watermark=(), tombstone=None
    )
    steps = (upsert, replace(upsert, executor="local"), replace(Compact(), executor="local"), upsert)
    play(ModelSubject(), History(only, steps), tally)
    names = ("local", "local compact", "local after spark", "spark after local")
    assert [tally.coverage.counts[name] for name in names] == [2, 1, 1, 1]


def test_a_fault_is_found_without_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compaction forgets tombstones (against U4)."""
    from trinity.memory import MemoryMetadata

    get_splits = MemoryMetadata.get_splits
    monkeypatch.setattr(MemoryMetadata, "get_splits", lambda self, table: replace(get_splits(self, table), sidecar=()))
    budget = replace(BUDGETS["smoke"], shrink=ShrinkBudget(math.inf, 100))
    report = run_check("memory", None, "maintenance-invisible", budget, folder=tmp_path)
    [failure] = report.failures
    assert failure.history is not None
    assert {step.executor for step in failure.history.steps} == {"local"}
    assert len(failure.history.steps) <= 4


def test_what_only_spark_plays_is_left_out_and_not_passed(tmp_path: Path) -> None:
    few = played(BUDGETS["smoke"], histories=1, programs=1)
    report = run_check("memory", None, "executors", few, folder=tmp_path)
    assert report.tally.coverage.counts["local"] > 0
    assert (report.conforms, report.left_out, report.inconclusive) == (True, ["executors"], [])


@pytest.mark.parametrize(("missing", "status"), [("local after spark", "left out"), ("local", "inconclusive")])
def test_what_only_spark_plays_is_left_out_also_when_time_was_over(missing: str, status: str) -> None:
    result = CheckResult(check_of("executors"), missing={missing: (0, 10)}, alone=True, ended=54)
    assert result.status == status


def test_a_trace_is_played_again_without_spark(turns: History, tmp_path: Path) -> None:
    trace = traces.save(turns, tmp_path)
    done = CliRunner().invoke(app, ["replay", str(trace), "--format", "memory", "--no-spark"])
    assert (done.exit_code, "memory: passed" in done.output) == (0, True), done.output
