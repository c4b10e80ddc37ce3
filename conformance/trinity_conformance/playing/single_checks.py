"""Runs checks that are written by hand, each a function. Their findings have the check's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, TypeVar

from trinity.errors import TrinityError
from trinity.spi import Capability
from trinity_conformance.playing.cases import Record
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.subject import LeftToSpark, TrinitySubject

if TYPE_CHECKING:
    from trinity_conformance.playing.observations import Tally
    from trinity_conformance.playing.traces import Executor

_Bench = TypeVar("_Bench")


def try_checks(
    subject: TrinitySubject,
    tally: Tally,
    check_id: str,
    checks: Mapping[str, Callable[[_Bench], None]],
    needs: Mapping[Callable[[_Bench], None], frozenset[Capability]],
    bench: Callable[[Record], _Bench],
    executors: Iterable[Executor],
) -> list[NonConformance]:
    """Run the checks that the adapter's capabilities allow with each executor, and return the failures.

    Args:
        subject: the adapter.
        tally: counts the checks that were run.
        check_id: the id of the suite's check to which they belong.
        checks: name -> check.
        needs: check -> the capabilities that it needs; without an entry it needs none.
        bench: makes the argument of a check, which records the check's steps.
        executors: the executors.
    """
    found = list[NonConformance]()
    for executor, (name, check) in product(executors, checks.items()):
        if not needs.get(check, frozenset()) <= subject.capabilities:
            continue
        subject.executed_by(executor)
        record = Record()
        try:
            subject.run(partial(check, bench(record)))
        except LeftToSpark:
            continue
        except Exception as error:
            failure = _failure(check_id, name, error, _rules_of(check))
            failure.case = record.case(check_id, name, executor)
            found.append(failure)
        tally.observations[check_id] += 1
    return found


def _rules_of(check: Callable[[_Bench], None]) -> tuple[str, ...]:
    """Return the ids of the rules that a check is about, as its docstring names them."""
    return tuple(re.findall(r"\b[A-Z]\d{1,2}\b", check.__doc__ or ""))


def _failure(check_id: str, name: str, error: Exception, rules: tuple[str, ...]) -> NonConformance:
    """Return what a check has found, with the rules that were broken: one that it names itself, or all of its own."""
    if isinstance(error, NonConformance):
        if not error.message.startswith(tuple(f"{rule}:" for rule in rules)):
            error.message = f"{' '.join(rules)}: {error.message}"
        return error
    if isinstance(error, TrinityError):
        return NonConformance(check_id, f"{' '.join(rules)}: {name}: {error}")
    return NonConformance(check_id, f"{' '.join(rules)}: {name}: {type(error).__name__}: {str(error)[:400]}")
