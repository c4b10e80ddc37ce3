"""Plays a case written by hand again, by its check and its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from trinity_conformance.playing.capabilities import PROBES, verify
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.commits import COMMITS, try_commits
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.engine_refusals import ENGINE_REFUSALS, refuse_engines
from trinity_conformance.playing.meanwhile import MEANWHILE, try_meanwhile
from trinity_conformance.playing.refusals import REFUSALS, refuse_all
from trinity_conformance.playing.runner import Tally
from trinity_conformance.playing.sink_checks import SINK_CHECKS, try_sinks
from trinity_conformance.playing.subject import TrinitySubject

__all__ = ["play_case"]

_SECONDS: Final = 600.0

_Cases = Mapping[str, Any]
_PLAYERS: Final[Mapping[str, tuple[_Cases, Callable[[TrinitySubject, _Cases], Sequence[NonConformance]]]]] = {
    "capabilities": (
        {capability.value: (capability, probe) for capability, probe in PROBES.items()},
        lambda subject, cases: verify(subject, Tally(), dict(cases.values())).findings,
    ),
    "bad-input": (
        {case.name: case for case in REFUSALS},
        lambda subject, cases: refuse_all(subject, Tally(), _SECONDS, [*cases.values()]),
    ),
    "engine-options": (
        {case.name: case for case in ENGINE_REFUSALS},
        lambda subject, cases: refuse_engines(subject, Tally(), _SECONDS, [*cases.values()]),
    ),
    "merge-sinks": (SINK_CHECKS, lambda subject, cases: try_sinks(subject, Tally(), cases)),
    "commits": (COMMITS, lambda subject, cases: try_commits(subject, Tally(), cases)),
    "concurrency": (MEANWHILE, lambda subject, cases: try_meanwhile(subject, Tally(), cases)),
}
"""Check -> its cases by name, and what plays some of them."""


def play_case(subject: TrinitySubject, case: Case) -> None:
    """Play a case on each executor.

    Raises:
        NonConformance: what differed first.
        ValueError: this version of the suite has no such case.
    """
    cases, played = _PLAYERS.get(case.check, ({}, None))
    if played is None or case.name not in cases:
        raise ValueError(f"this version of the suite has no case '{case.name}' of '{case.check}'")
    for failure in played(subject, {case.name: cases[case.name]}):
        raise failure
