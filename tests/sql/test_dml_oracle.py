"""Further opinions on plain tables: other engines' MERGE, UPDATE and DELETE against the model, and against each format.

Where an engine differs from the rules its opinion is not asked:

- DuckDB changes a row that several source rows select as often as they do (M2), and PostgreSQL's UPDATE takes any one
  of them: what must be refused is left out, but for MERGE, which PostgreSQL refuses too;
- DuckDB and PostgreSQL refuse a MERGE that only deletes its matches where several source rows match a row (M2): such a
  MERGE is left out;
- DuckDB and PostgreSQL cast constants though no row needs them (M6): numbers that do not fit are left out;
- all of them refuse a WHEN after an unconditional one of its kind, so that is left out;
- PostgreSQL has WHEN NOT MATCHED BY SOURCE from version 17 on;
- Delta and Iceberg have no DO NOTHING, no UPDATE with FROM and no DELETE with USING, and Delta no subqueries there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.oracles import (
    DuckDb,
    NativeDelta,
    NativeIceberg,
    Oracle,
    Postgres,
    accepted,
    said_by_formats,
    too_wide,
)
from trinity_conformance import connectors
from trinity_conformance.generate.histories import sample
from trinity_conformance.generate.profiles import DmlProfile
from trinity_conformance.generate.programs import programs
from trinity_conformance.model.programs import Counts, DmlModel, Effect
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import BY_SOURCE, Statement
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.subject import Outcome, TrinitySubject
from trinity_conformance.playing.traces import History, RowChangeStep, Step, Upsert

PLAIN = st.sampled_from((DmlProfile(), DmlProfile(partitioned=True)))
GENERATED = settings(deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))

Asked = Callable[[Statement, Effect], bool]


def said_by_postgres(postgres: Postgres) -> Asked:
    def chosen(statement: Statement, effect: Effect) -> bool:
        if too_wide(statement) or (effect.refused and statement.kind != "MERGE") or deletes_once(statement):
            return False
        return postgres.by_source or all(case.when != BY_SOURCE for case in statement.cases)

    return chosen


def said_by_duckdb(statement: Statement, effect: Effect) -> bool:
    return accepted(statement, effect) and not deletes_once(statement) and not asks_twice(statement)


def asks_twice(statement: Statement) -> bool:
    """Return whether a MERGE has several subqueries in its conditions: DuckDB 2.0 fails with an internal error."""
    return statement.kind == "MERGE" and statement.sql("t", Shape((), ()), "duckdb").count("SELECT q.m") > 1


def deletes_once(statement: Statement) -> bool:
    """Return whether a MERGE deletes a row only once that several source rows match."""
    return statement.kind == "MERGE" and statement.deletes_matches


def narrowed(history: History, chosen: Asked = accepted) -> History:
    """Return the history with only the statements that an engine is tested with."""
    model, kept = DmlModel(history.shape), list[Step]()
    for step in history.steps:
        if isinstance(step, RowChangeStep):
            if not chosen(step.statement, model.effect(step.statement)):
                continue
            model.change(step.statement)
        if isinstance(step, Upsert):
            model.upsert(step.rows)
        kept.append(step)
    return History(history.shape, tuple(kept))


def statements(histories: Iterable[History]) -> list[Statement]:
    return [step.statement for history in histories for step in history.steps if isinstance(step, RowChangeStep)]


# -- DuckDB -----------------------------------------------------------------------------------------------


@settings(GENERATED, max_examples=12)
@given(PLAIN.flatmap(programs))
def test_the_model_agrees_with_duckdb(history: History) -> None:
    play(DuckDb(), narrowed(history, said_by_duckdb))


@pytest.mark.full
@settings(GENERATED, max_examples=2000)
@given(PLAIN.flatmap(programs))
def test_the_model_agrees_with_duckdb_at_length(history: History) -> None:
    play(DuckDb(), narrowed(history, said_by_duckdb))


@pytest.mark.full
def test_duckdb_is_asked_about_statements_of_every_kind() -> None:
    chosen = statements(narrowed(sample(programs(DmlProfile()), n), said_by_duckdb) for n in range(40))
    assert {s.kind for s in chosen} == {"MERGE", "UPDATE", "DELETE"}
    cases = {(c.when, c.action) for s in chosen for c in s.cases}
    assert {when for when, _ in cases} == {"MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"}
    assert {action for _, action in cases} == {"UPDATE", "DELETE", "INSERT", "DO NOTHING"}


def test_a_difference_to_duckdb_is_found() -> None:
    class Wrong(DuckDb):
        def rows(self) -> list[tuple[Any, ...]]:
            return super().rows()[1:]

    with pytest.raises(NonConformance):
        play(Wrong(), narrowed(sample(programs(DmlProfile()), 0), said_by_duckdb))


# -- PostgreSQL -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [(*range(13), 55), pytest.param(range(100, 700), marks=pytest.mark.full)], ids=len)
def test_the_model_agrees_with_postgres(server: dict[str, str], numbers: Sequence[int]) -> None:
    """It agrees on statements that a MERGE must refuse, too: several matches (M2), NULL for NOT NULL (M6)."""
    with Postgres(server) as subject:
        played = [narrowed(sample(PLAIN.flatmap(programs), n), said_by_postgres(subject)) for n in numbers]
        for history in played:
            play(subject, history)
    assert {s.kind for s in statements(played)} == {"MERGE", "UPDATE", "DELETE"}
    assert subject.refused == {"MERGE_TARGET_ROW_MULTIPLE_MATCHES", "CONSTRAINT_VIOLATION"}


# -- the formats ------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("native", [NativeDelta, NativeIceberg])
def test_the_model_agrees_with_the_formats_own_statements(
    spark: SparkSession, tmp_path: Path, native: Callable[[SparkSession, Path], Oracle]
) -> None:
    subject = native(spark, tmp_path)
    played = [narrowed(sample(PLAIN.flatmap(programs), n), said_by_formats) for n in range(12)]
    for history in played:
        play(subject, history)
    chosen = statements(played)
    assert {s.kind for s in chosen} == {"MERGE", "UPDATE", "DELETE"}
    assert {c.when for s in chosen for c in s.cases} == {"MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"}


class BesideDuckDb(TrinitySubject):
    """An adapter whose every statement also runs in DuckDB; both must change the same rows."""

    def create(self, shape: Shape) -> None:
        self.other = DuckDb()
        self.other.create(shape)
        super().create(shape)

    def upsert(self, step: Upsert) -> Outcome:
        self.other.upsert(step)
        return super().upsert(step)

    def change(self, statement: Statement) -> Counts:
        self.other.change(statement)
        counts = super().change(statement)
        assert sorted(map(str, self.read())) == sorted(map(str, self.other.read()))
        return counts


@pytest.mark.full
@pytest.mark.parametrize("connector", connectors())
def test_formats_agree_with_duckdb(connector: str, spark: SparkSession, tmp_path: Path) -> None:
    subject = BesideDuckDb(connector, spark, tmp_path)
    try:
        for number in range(12):
            play(subject, narrowed(sample(programs(DmlProfile(partitioned=number % 2 == 1)), number), said_by_duckdb))
    finally:
        subject.close()
