"""Shrinks a failing history within a budget: every try costs Spark jobs.

It knows what a history is, so it tries the most useful cuts first: the steps after the failure, then all keys except
those that differ, then single steps and rows, then splits, transactions and payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final, TypeVar

from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.tables import Key, Model
from trinity_conformance.model.values import Json
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.races import Race
from trinity_conformance.playing.traces import (
    Alter,
    Compact,
    Delete,
    History,
    Query,
    Resolve,
    RowChangeStep,
    Step,
    Upsert,
    Vacuum,
)
from trinity_conformance.shrink.programs import is_settled, smaller_changes

_FEW_ROWS: Final = 40
"""Maximum number of rows of a history from which single rows are removed."""

_Played = TypeVar("_Played", History, Race)
Trial = Callable[[History], "NonConformance | None"]


@dataclass(frozen=True)
class ShrinkBudget:
    """The limits of shrinking: it stops after this many seconds, or this many tries."""

    seconds: float = 60.0
    tries: int = 60


def shrink(failure: NonConformance, trial: Trial, budget: ShrinkBudget) -> NonConformance:
    """Return the failure of a smaller history, or the given one.

    Args:
        failure: the failure, with its history.
        trial: plays a history and returns its failure, or None.
        budget: when to stop.
    """
    assert failure.history is not None, "only a played history can be made smaller"
    return smallest(failure, _candidates, trial, budget, {failure.history.id}, is_settled)


def smallest(
    failure: NonConformance,
    candidates: Callable[[NonConformance], Iterator[_Played]],
    trial: Callable[[_Played], NonConformance | None],
    budget: ShrinkBudget,
    tried: set[str],
    is_valid: Callable[[_Played], bool] = lambda _: True,
) -> NonConformance:
    """Return the failure to which one smaller candidate after another leads, until none fails or the budget is used up.

    Args:
        failure: the failure to begin with.
        candidates: yields what is smaller than what failed, the most promising first.
        trial: plays a candidate and returns its failure, or None.
        budget: when to stop.
        tried: ids of what need not be tried; it grows by the candidates that are, and counts towards the budget.
        is_valid: returns False for a candidate that is not to be played.
    """
    until = monotonic() + budget.seconds
    best, found = failure, [failure]
    while found:
        best = found.pop()
        for candidate in candidates(best):
            if len(tried) >= budget.tries or monotonic() > until:
                return best
            if candidate.id not in tried and is_valid(candidate):
                tried.add(candidate.id)
                if (again := trial(candidate)) is not None:
                    found.append(again)
                    break
    return best


def _candidates(failure: NonConformance) -> Iterator[History]:
    """Yield smaller histories, the most promising first."""
    history = failure.history
    assert history is not None
    yield from _cut(failure, history)
    yield from _fewer_executors(history)
    yield from _fewer_faults(failure, history)
    yield from _fewer_keys(failure, history)
    yield from _fewer_steps(history)
    yield from smaller_changes(history)
    yield from _fewer_rows(history)
    yield from _simpler(history)


def _cut(failure: NonConformance, history: History) -> Iterator[History]:
    if failure.step + 1 < len(history.steps):
        yield replace(history, steps=history.steps[: failure.step + 1])


def _fewer_executors(history: History) -> Iterator[History]:
    """Yield the history as each executor plays it alone, then with Spark for single steps.

    Without Spark a failure is easier to look into.
    """
    if len({step.executor for step in history.steps}) == 1:
        return
    for executor in ("local", "spark"):
        yield replace(history, steps=tuple(replace(step, executor=executor) for step in history.steps))
    for i, step in enumerate(history.steps):
        if step.executor == "local":
            yield replace(history, steps=_with_step(history, i, replace(step, executor="spark")))


def _fewer_faults(failure: NonConformance, history: History) -> Iterator[History]:
    """Yield the history with the fault of the failing step alone, then without single ones."""
    faulty = [i for i, step in enumerate(history.steps) if step.fault is not None]
    if faulty and faulty != [failure.step]:
        one = (s if i == failure.step else replace(s, fault=None) for i, s in enumerate(history.steps))
        yield replace(history, steps=tuple(one))
    for i in faulty:
        yield replace(history, steps=_with_step(history, i, replace(history.steps[i], fault=None)))


def _fewer_keys(failure: NonConformance, history: History) -> Iterator[History]:
    keys = _all_keys(history)
    wanted = sorted(keys & failure.keys, key=repr)
    if wanted and len(keys) > 1:
        yield _with_keys(history, frozenset(wanted[:1]))
        yield _with_keys(history, frozenset(wanted))
    ordered = sorted(keys, key=repr)
    if len(ordered) > 1:
        middle = len(ordered) // 2
        yield _with_keys(history, frozenset(ordered[:middle]))
        yield _with_keys(history, frozenset(ordered[middle:]))


def _all_keys(history: History) -> frozenset[Key]:
    model = Model(history.shape)
    upserts = (s for s in history.steps if isinstance(s, Upsert))
    return frozenset(model.key_of(history.shape.decode_row(r, s.names)) for s in upserts for r in s.rows)


def _with_keys(history: History, keys: frozenset[Key]) -> History:
    model = Model(history.shape)

    def kept(step: Upsert, row: tuple[Json, ...]) -> bool:
        return model.key_of(history.shape.decode_row(row, step.names)) in keys

    return _with_rows(history, kept)


def _with_rows(history: History, kept: Callable[[Upsert, tuple[Json, ...]], bool]) -> History:
    steps: list[Step] = []
    for step in history.steps:
        if isinstance(step, Upsert):
            splits = tuple(tuple(row for row in split if kept(step, row)) for split in step.splits)
            if any(splits):
                steps.append(replace(step, splits=splits))
        else:
            steps.append(step)
    return replace(history, steps=tuple(steps))


def _fewer_steps(history: History) -> Iterator[History]:
    *before, last = history.steps or (None,)
    if last is not None and len(before) > 2:
        for kept in (Upsert, (Upsert, Delete, Compact, Resolve, Vacuum)):
            yield replace(history, steps=(*(s for s in before if isinstance(s, kept)), last))
    for i in reversed(range(len(history.steps))):
        yield replace(history, steps=history.steps[:i] + history.steps[i + 1 :])


def _fewer_rows(history: History) -> Iterator[History]:
    if history.rows > _FEW_ROWS:
        return
    for at, step in reversed(list(enumerate(history.steps))):
        if isinstance(step, Upsert) and len(step.rows) > 1:
            for number, split in enumerate(step.splits):
                for i in range(len(split)):
                    splits = (*step.splits[:number], split[:i] + split[i + 1 :], *step.splits[number + 1 :])
                    yield replace(history, steps=_with_step(history, at, replace(step, splits=splits)))


def _with_step(history: History, at: int, step: Step) -> tuple[Step, ...]:
    return (*history.steps[:at], step, *history.steps[at + 1 :])


def _simpler(history: History) -> Iterator[History]:
    for i, step in enumerate(history.steps):
        for simple in _simpler_steps(step):
            yield replace(history, steps=_with_step(history, i, simple))
    if not any(isinstance(s, RowChangeStep) or (isinstance(s, (Delete, Query)) and s.condition) for s in history.steps):
        for name in (n for n in history.shape.names if n.startswith("p")):
            yield _without(history, name)


def _simpler_steps(step: Step) -> Iterator[Step]:
    if isinstance(step, Upsert):
        yield replace(step, splits=(step.rows,))
        yield replace(step, splits=tuple(s for s in step.splits if s))
        if step.fault is None:
            yield replace(step, txn=None)
        yield replace(step, path="arrow")
    elif isinstance(step, Delete) and step.keys and len(step.keys) > 1:
        yield from (replace(step, keys=(key,)) for key in step.keys)
    elif isinstance(step, Compact) and not step.full:
        yield replace(step, full=True)


def _without(history: History, name: str) -> History:
    """Return the history without one payload column."""

    def cut(step: Upsert, row: tuple[Json, ...]) -> tuple[Json, ...]:
        return tuple(v for n, v in zip(step.names or history.shape.names, row, strict=True) if n != name)

    shape: Shape = replace(history.shape, columns=tuple(c for c in history.shape.columns if c.name != name))
    steps: list[Step] = []
    for step in history.steps:
        if isinstance(step, Upsert):
            splits = tuple(tuple(cut(step, row) for row in split) for split in step.splits)
            step = replace(step, splits=splits, names=step.names and tuple(n for n in step.names if n != name))
        elif isinstance(step, Alter) and name in step.columns:
            continue
        elif isinstance(step, Query):
            step = replace(step, columns=tuple(n for n in step.columns if n != name) or ("v",))
        steps.append(step)
    return History(shape, tuple(steps))
