"""Faults of adapters: each is found without Spark, and the adapter without a fault passes what finds them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

import pytest

from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS
from trinity_conformance.mutants.hunt import hunt_adapters, unbroken

SOME: Final = {
    "OrderAsText": "commits",
    "TransactionInASecondCommit": "commits",
    "OrphansCounted": "commits",
    "AppendUndoesDeletes": "commits",
    "VacuumTakesWhatThePastNeeds": "commits",
    "ConflictsOverlooked": "concurrency",
}
"""Fault -> the check that finds it."""


def survivors(mutants: Collection[str]) -> list[str]:
    return [kill.mutant for kill in hunt_adapters(mutants) if not kill.killed]


@pytest.mark.parametrize("mutant", SOME)
def test_a_fault_is_found_by_the_check_of_its_rule(mutant: str) -> None:
    [kill] = hunt_adapters([mutant])
    assert kill.check == SOME[mutant], kill.message


@pytest.mark.full
def test_every_fault_is_found() -> None:
    assert survivors(set(ADAPTER_MUTANTS) - set(SOME)) == []


@pytest.mark.full
def test_the_adapter_without_a_fault_passes() -> None:
    assert [str(failure) for failure in unbroken()] == []


def test_the_readme_counts_them() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert f"and {len(ADAPTER_MUTANTS)} of adapters" in readme
