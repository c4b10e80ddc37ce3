"""The checks that are cases written by hand, and single cases again by check and name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from trinity_conformance.playing.capabilities import PROBES, verify
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.commits import COMMITS, try_commits
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.engine_refusals import ENGINE_REFUSALS, refuse_engines
from trinity_conformance.playing.meanwhile import MEANWHILE, try_meanwhile
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.refusals import REFUSALS, refuse_all
from trinity_conformance.playing.sink_checks import SINK_CHECKS, try_sinks
from trinity_conformance.playing.subject import TrinitySubject

Cases: TypeAlias = Mapping[str, Any]
Player: TypeAlias = Callable[[TrinitySubject, Tally, Cases], Sequence[NonConformance]]

BY_HAND: Final[Mapping[str, tuple[Cases, Player]]] = {
    "bad-input": (
        {case.name: case for case in REFUSALS},
        lambda subject, tally, cases: refuse_all(subject, tally, [*cases.values()]),
    ),
    "engine-options": (
        {case.name: case for case in ENGINE_REFUSALS},
        lambda subject, tally, cases: refuse_engines(subject, tally, [*cases.values()]),
    ),
    "merge-sinks": (SINK_CHECKS, try_sinks),
    "commits": (COMMITS, try_commits),
    "concurrency": (MEANWHILE, try_meanwhile),
}
"""Check -> (its cases by name, the function that plays them). They run in this order, after the drawn histories."""

CASES_OF: Final[Mapping[str, tuple[Cases, Player]]] = {
    "capabilities": (
        {capability.value: (capability, probe) for capability, probe in PROBES.items()},
        lambda subject, tally, cases: verify(subject, tally, dict(cases.values())).findings,
    ),
    **BY_HAND,
}
"""The checks of :data:`BY_HAND`, and the one of the capabilities that an adapter may declare."""


def case_of(case: Case) -> Any:
    """Return the check, or its data, of a case by its name. Raises ValueError if this version has no such case."""
    cases, _ = CASES_OF.get(case.check, ({}, None))
    if case.name not in cases:
        raise ValueError(f"this version of the suite has no case '{case.name}' of '{case.check}'")
    return cases[case.name]


def play_case(subject: TrinitySubject, case: Case) -> None:
    """Play a case on each executor.

    Raises:
        NonConformance: the first difference.
        ValueError: as :func:`case_of`.
    """
    found = case_of(case)
    for failure in CASES_OF[case.check][1](subject, Tally(), {case.name: found}):
        raise failure
