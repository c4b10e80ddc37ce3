"""Faults of the storage within histories: each is judged by the table afterwards, shrunk, saved and replayed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from trinity.memory import MemoryFormat
from trinity.spi import Capability, Format
from trinity_conformance import Tally, connectors, play, run_check
from trinity_conformance.command import cli
from trinity_conformance.generate.faults import faulted
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS, AdapterMutant
from trinity_conformance.mutants.stored import STORED, StoredMetadata
from trinity_conformance.playing import traces
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.every_fault import every_fault
from trinity_conformance.playing.runner import failure_of
from trinity_conformance.playing.subject import TrinitySubject
from trinity_conformance.playing.traces import FAULTS, Compact, Delete, Fault, History, Read, Upsert, Vacuum
from trinity_conformance.playing.words import story
from trinity_conformance.shrink.histories import ShrinkBudget, shrink
from trinity_conformance.suite.budgets import BUDGETS

SHAPE: Final = Shape((Column("k", "int", nullable=False), Column("v", "bigint", nullable=False)), ("k",))
UPSERT: Final = Upsert((((1, 1), (2, 2)),), txn=("app", 1), executor="local")
AGAIN: Final = Upsert((((1, 3),),), txn=("app", 2), executor="local")
HISTORY: Final = History(SHAPE, (UPSERT, Compact(executor="local"), AGAIN, Read(executor="local")))
PLANTED: Final = {
    "PutsAreVersions": (2, Fault("torn", 1)),
    "VersionsWrittenInPlace": (2, Fault("torn", 1)),
    "TransactionInASecondObject": (2, Fault("crash after", 5)),
    "ReplacedFilesGoFirst": (1, Fault("crash after", 5)),
    "ErrorsAreMissingVersions": (3, Fault("error", 2)),
    "KeptBeforeItIsPut": (0, Fault("crash before", 5)),
    "UnknownIsRefused": (2, Fault("error after", 4)),
    "UnknownIsSuccess": (2, Fault("unknown")),
    "UnknownIsRepeated": (2, Fault("error after", 4)),
    "FollowUpWorkIsTold": (2, Fault("error after", 5)),
    "ErrorsAreForgotten": (2, Fault("unknown")),
    "ErrorsAreCorruption": (3, Fault("error", 2)),
}
"""Fault of an adapter -> (step, fault of the storage in it) that shows it."""
STORED_WELL: Final = AdapterMutant("no fault", metadata=StoredMetadata)


@contextmanager
def subject(adapter: str | type[Format], folder: Path) -> Iterator[TrinitySubject]:
    opened = TrinitySubject(adapter, None, folder)
    try:
        yield opened
    finally:
        opened.close()


def faulty(place: int, fault: Fault) -> History:
    """Return the history with one fault."""
    steps = list(HISTORY.steps)
    steps[place] = replace(steps[place], fault=fault)
    return replace(HISTORY, steps=tuple(steps))


@pytest.mark.parametrize("mutant", [c.__name__ for c in STORED])
def test_a_planted_fault_is_found_by_one_fault_in_four_steps(mutant: str, tmp_path: Path) -> None:
    history = faulty(*PLANTED[mutant])
    with subject(STORED_WELL.adapter(), tmp_path) as opened:
        play(opened, history)
    with subject(ADAPTER_MUTANTS[mutant].adapter(), tmp_path) as opened, pytest.raises(NonConformance) as caught:
        play(opened, history)
    assert (caught.value.check, caught.value.history) == ("faults", history)


def test_what_commits_by_a_put_withstands_every_fault(tmp_path: Path) -> None:
    with subject(STORED_WELL.adapter(), tmp_path) as opened:
        assert every_fault(opened, replace(HISTORY, steps=(UPSERT,))) > 30


def test_a_call_without_a_transaction_is_not_repeated(tmp_path: Path) -> None:
    """It was where ``txn=None`` was given by place; the statement then found its own commit (49fa1c7cee66)."""
    shape = replace(HISTORY.shape, properties={"changelog-producer": "lookup"})
    steps = (replace(UPSERT, txn=None), Delete(executor="local", condition=Condition("v", "<>", 10)))
    with subject("memory", tmp_path) as opened:
        assert every_fault(opened, History(shape, steps)) > 10


@pytest.mark.full
@pytest.mark.parametrize("connector", connectors())
def test_the_formats_withstand_every_fault(connector: str, tmp_path: Path) -> None:
    whole = replace(HISTORY, steps=(*HISTORY.steps, Vacuum(executor="local")))
    with subject(connector, tmp_path) as opened:
        assert every_fault(opened, whole) > 100  # in memory 111: its commits are none of storage


@pytest.mark.parametrize("connector", connectors())
def test_a_drawn_history_meets_faults_and_is_as_it_should(connector: str, tmp_path: Path) -> None:
    tally = Tally()
    with subject(connector, tmp_path) as opened:
        play(opened, faulted(1), tally)
    assert tally.coverage.counts["fault"] > 1


@pytest.mark.full
@pytest.mark.parametrize("connector", connectors())
def test_smoke_meets_every_kind_of_fault(connector: str, tmp_path: Path) -> None:
    report = run_check(connector, None, "faults", folder=tmp_path)
    assert [(r.check.id, r.status, r.missing) for r in report.results] == [("faults", "passed", {})]


def test_a_finding_is_made_smaller_and_keeps_its_fault(tmp_path: Path) -> None:
    adapter = ADAPTER_MUTANTS["TransactionInASecondObject"].adapter()
    with subject(adapter, tmp_path) as opened:
        trial = partial(failure_of, opened)
        found = next(failure for failure in map(trial, map(faulted, range(3))) if failure is not None)
        small = shrink(found, trial, ShrinkBudget(math.inf, 60)).history
    assert small is not None
    assert (len(small.steps), small.rows, small.steps[-1].fault is not None) == (1, 1, True)
    assert small.steps[-1].fault is not None
    assert FAULTS[small.steps[-1].fault.kind] in story(small)
    assert History.from_json(small.to_json()) == small


def test_where_commits_are_is_verified() -> None:
    report = run_check(STORED_WELL.adapter(), None, "capabilities")
    assert (report.failures, report.undeclared) == ([], ["commits in storage"])


def test_a_commit_that_is_no_operation_of_storage_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = MemoryFormat().capabilities | {Capability.COMMITS_IN_STORAGE}
    monkeypatch.setattr(MemoryFormat, "capabilities", property(lambda _: declared))
    [failure] = run_check("memory", None, "capabilities").failures
    assert failure.message.startswith("commits in storage: declared, and refused: a commit takes effect by no")


def test_a_history_with_faults_is_replayed_without_spark_and_not_exported(tmp_path: Path) -> None:
    faulty = History(SHAPE, (replace(UPSERT, fault=Fault("crash after", 4), executor="spark"),))
    trace = str(traces.save(faulty, tmp_path))
    done = CliRunner().invoke(cli.app, ["replay", trace, "--format", "memory"])
    assert (done.exit_code, "fault 'crash after'" in done.output) == (0, True), done.output
    assert "memory: passed" in done.output
    refused = CliRunner().invoke(cli.app, ["export", trace, "--format", "memory"])
    assert (refused.exit_code, f"replay {faulty.id} --format memory" in refused.output) == (2, True), refused.output


@pytest.mark.full
def test_a_replay_with_every_fault_counts_them(tmp_path: Path) -> None:
    trace = str(traces.save(History(SHAPE, (UPSERT,)), tmp_path))
    done = CliRunner().invoke(cli.app, ["replay", trace, "--format", "memory", "--exhaustive"])
    assert (done.exit_code, "memory: 27 faults" in done.output) == (0, True), done.output


def test_the_budgets_that_decide_have_faults() -> None:
    assert all(budget.shares["faults"].most >= 8 for budget in BUDGETS.values() if budget.decides)


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the adapters of tests/plugins importable, as they are not installed."""
    for name in ("acme", "ledger"):
        monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "tests/plugins" / name))


def named(place: str) -> type[Format]:
    """Return the class of an adapter, named as module:Class."""
    module, _, name = place.partition(":")
    found: type[Format] = getattr(import_module(module), name)
    return found


@pytest.mark.usefixtures("plugins")
def test_a_crash_is_looked_at_by_a_fresh_process(tmp_path: Path) -> None:
    """The adapter's memory outlives a session, but not a process."""
    forgetful = named("tests.support.forgetful:Forgetful")
    with subject(forgetful, tmp_path / "before") as opened:
        crashed = faulty(2, Fault("crash after", operation("call", "crash after", opened)))
    with subject(forgetful, tmp_path) as opened, pytest.raises(NonConformance, match="in a fresh process") as caught:
        play(opened, crashed)
    assert caught.value.check == "faults"
    with subject(named("acme_trinity:AcmeFormat"), tmp_path / "well") as opened:
        play(opened, crashed, tally := Tally())
    assert tally.coverage.counts["read by a fresh process"] == 1


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize("place", ["trinity_iceberg.format:IcebergFormat", "ledger_trinity:LedgerFormat"])
def test_the_commit_of_a_database_is_among_the_operations(place: str, tmp_path: Path) -> None:
    for kind in ("crash before", "crash after"):
        with subject(named(place), tmp_path / kind) as opened:
            at = operation("commit", kind, opened)
            play(opened, replace(HISTORY, steps=(replace(UPSERT, fault=Fault(kind, at)),)), tally := Tally())
            seen = tally.coverage.counts
            assert (seen["fault at the commit"], seen["read by a fresh process"]) == (1, 1), kind


def operation(verb: str, kind: str, opened: TrinitySubject) -> int:
    """Return the number of an upsert's first operation with a verb, counting operations to which this kind applies."""
    opened.create(SHAPE)
    with opened.inject(Fault(kind, -1)) as seen:
        opened.upsert(UPSERT)
    could = [what for what, kinds in seen.seen if kind in kinds]
    return next(number for number, what in enumerate(could) if what.startswith(verb))
