"""Faults of adapters: each is found without Spark, and an adapter without a fault passes the checks that find them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from trinity_conformance.command import cli
from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS
from trinity_conformance.mutants.hunt import AdapterKill, hunt_adapters, unbroken
from trinity_conformance.playing import traces

SOME: Final = {
    "OrderAsText": "commits",
    "NothingIsAVersion": "commits",
    "TransactionInASecondCommit": "commits",
    "OrphansCounted": "commits",
    "AppendUndoesDeletes": "commits",
    "VacuumTakesWhatThePastNeeds": "commits",
    "NaNIsLargest": "commits",
    "RestoreForgetsTransactions": "commits",
    "ConflictsOverlooked": "concurrency",
}
"""Fault -> the check that finds it."""
STEPS: Final = 6
"""The most steps in which a fault can be understood."""


def long_or_unfound(kills: Iterable[AdapterKill]) -> list[str]:
    return [kill.mutant for kill in kills if not kill.found or kill.found[0].steps > STEPS]


def survivors(mutants: Collection[str]) -> list[str]:
    return long_or_unfound(hunt_adapters(mutants))


@pytest.mark.parametrize("mutant", SOME)
def test_a_fault_is_found_by_the_check_of_its_rule_in_few_steps_and_played_again(mutant: str, tmp_path: Path) -> None:
    [kill] = hunt_adapters([mutant])
    assert ([found.check for found in kill.found], long_or_unfound([kill])) == ([SOME[mutant]], [])
    trace = str(traces.save(kill.found[0].trace, tmp_path))
    planted = f"trinity_conformance.mutants.planted:{mutant}"
    again = CliRunner().invoke(cli.app, ["replay", trace, "--format", planted])
    assert (again.exit_code, f"{planted}: failed" in again.output) == (1, True), again.output
    assert f": {SOME[mutant]}: {kill.found[0].message.partition(':')[0]}" in again.output, again.output
    well = CliRunner().invoke(cli.app, ["replay", trace, "--format", "memory"])
    assert (well.exit_code, "memory: passed" in well.output) == (0, True), well.output


@pytest.mark.full
def test_every_fault_is_found_in_few_steps() -> None:
    assert survivors(set(ADAPTER_MUTANTS) - set(SOME)) == []


@pytest.mark.full
def test_the_adapter_without_a_fault_passes() -> None:
    assert [str(failure) for failure in unbroken()] == []


def test_the_readme_counts_them() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert f"and {len(ADAPTER_MUTANTS)} of adapters" in readme
