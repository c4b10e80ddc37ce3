"""Smaller statements: fewer rows, fewer clauses, simpler conditions, as long as the rules determine their effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trinity_conformance.model.engine_model import model_of
from trinity_conformance.model.programs import DmlModel
from trinity_conformance.model.statements import Case, Statement
from trinity_conformance.playing.traces import Delete, History, RowChangeStep, Step, Upsert


def smaller_changes(history: History) -> Iterator[History]:
    """Yield histories with one smaller statement, or with fewer rows before it; none without a statement."""
    if not any(isinstance(step, RowChangeStep) for step in history.steps):
        return
    for at, step in enumerate(history.steps):
        if isinstance(step, Upsert):
            for rows in _fewer(step.rows):
                yield _with(history, at, replace(step, splits=(rows,)))
        elif isinstance(step, RowChangeStep):
            for statement in _smaller(step.statement):
                yield _with(history, at, replace(step, statement=statement))


def is_settled(history: History) -> bool:
    """Return False when the rules leave a statement's effect open, as when either of two rows of a key may win."""
    model = model_of(history.shape)
    for step in history.steps:
        if isinstance(step, Upsert):
            model.upsert(step.rows, step.txn, step.names)
        elif isinstance(step, Delete):
            _delete(model, step)
        elif isinstance(step, RowChangeStep) and any(f.open for f in model.change(step.statement).faults):
            return False
    return True


def _delete(model: DmlModel, step: Delete) -> None:
    if step.condition is not None:
        model.delete_where(step.condition)
    else:
        model.delete_keys(model.key_form(key) for key in step.keys or ())


def _with(history: History, at: int, step: Step) -> History:
    return replace(history, steps=(*history.steps[:at], step, *history.steps[at + 1 :]))


def _fewer(rows: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield one half, the other, then all rows but one, for each row."""
    if len(rows) > 2:
        yield rows[: len(rows) // 2]
        yield rows[len(rows) // 2 :]
    if len(rows) > 1:
        yield from (rows[:i] + rows[i + 1 :] for i in range(len(rows)))


def _smaller(statement: Statement) -> Iterator[Statement]:
    if statement.source is not None and not statement.source.target:
        for rows in _fewer(statement.source.rows):
            yield replace(statement, source=replace(statement.source, rows=rows))
    cases = statement.cases
    if len(cases) > 1:
        yield from (replace(statement, cases=cases[:i] + cases[i + 1 :]) for i in range(len(cases)))
    for i, case in enumerate(cases):
        for simple in _simpler(case):
            yield replace(statement, cases=(*cases[:i], simple, *cases[i + 1 :]))
    if statement.dialect != "spark":
        yield replace(statement, dialect="spark")


def _simpler(case: Case) -> Iterator[Case]:
    if case.condition is not None:
        yield replace(case, condition=None)
        if case.condition.op in ("and", "or"):
            yield from (replace(case, condition=part) for part in case.condition.parts)
    if case.action == "UPDATE" and case.values and len(case.values) > 1:
        yield from (replace(case, values=case.values[:i] + case.values[i + 1 :]) for i in range(len(case.values)))
