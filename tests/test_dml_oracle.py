"""A second opinion on plain tables: DuckDB's MERGE, UPDATE and DELETE against the model, and against each format.

Where DuckDB differs from the rules its opinion is not asked. It changes a row that several source rows select as often
as they do (M2), so statements that must be refused are left out; it casts constants though no row needs them (M6), so
those with a number that does not fit are; and it refuses a WHEN behind one that always holds, so that is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from trinity_conformance import connectors
from trinity_conformance.conditions import Condition
from trinity_conformance.differences import NonConformance
from trinity_conformance.dml_model import Counts, DmlModel
from trinity_conformance.dml_programs import programs
from trinity_conformance.histories import sample
from trinity_conformance.model import Row
from trinity_conformance.profiles import DmlProfile
from trinity_conformance.runner import play
from trinity_conformance.shapes import Shape
from trinity_conformance.statements import Case, Statement
from trinity_conformance.subject import LogRow, Outcome, TrinitySubject
from trinity_conformance.traces import Change, History, Step, Upsert
from trinity_conformance.values import Json

PLAIN = st.sampled_from((DmlProfile(), DmlProfile(partitioned=True)))
GENERATED = settings(deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


class DuckDbSubject:
    """A plain table in DuckDB, played as if it were an adapter."""

    durable = False

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.shape = Shape((), ())
        self.commits = 0

    def create(self, shape: Shape) -> None:
        self.shape = replace(shape, partition_by=(), properties={})
        self.commits = 0
        self.connection.execute("DROP TABLE IF EXISTS t")
        self.connection.execute(self.shape.ddl("t"))

    def upsert(self, step: Upsert) -> Outcome:
        marks = ", ".join("?" for _ in self.shape.columns)
        self.connection.executemany(f"INSERT INTO t VALUES ({marks})", step.rows)
        self.commits += 1
        return Outcome(self.commits)

    def change(self, statement: Statement) -> Counts:
        """DuckDB tells the number of changed rows only; their kinds are the model's."""
        effect = self.model().effect(statement)
        [[changed]] = self.connection.execute(reachable(statement).sql("t", self.shape, "duckdb")).fetchall()
        self.commits += changed > 0
        return effect.counts if changed == effect.counts.affected else Counts(changed)

    def model(self) -> DmlModel:
        """The model of the rows as DuckDB has them."""
        model = DmlModel(self.shape)
        model.upsert(tuple(row.values()) for row in self.read())
        return model

    def read(
        self,
        version: Any = None,
        timestamp: datetime | None = None,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        found = self.connection.execute("SELECT * FROM t").fetchall()
        return [dict(zip(self.shape.names, row, strict=True)) for row in found]

    def history(self) -> list[tuple[Any, datetime]]:
        return [(number, datetime(2024, 1, 1)) for number in range(self.commits)]

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        """Programs of statements change no columns."""
        raise AssertionError(kind)

    def reopen(self) -> None:
        """Nothing: the table is in memory."""

    def delete(self, keys: Sequence[tuple[Json, ...]] | None, condition: Condition | None) -> Outcome:
        raise NotImplementedError

    def compact(self, full: bool) -> None:
        raise NotImplementedError

    def vacuum(self) -> None:
        raise NotImplementedError

    def log(self) -> list[LogRow]:
        raise NotImplementedError


def accepted(history: History) -> History:
    """The history without the statements that must be refused."""
    model, kept = DmlModel(history.shape), list[Step]()
    for step in history.steps:
        if isinstance(step, Change) and (too_wide(step.statement) or model.change(step.statement).refused):
            continue
        if isinstance(step, Upsert):
            model.upsert(step.rows)
        kept.append(step)
    return History(history.shape, tuple(kept))


def too_wide(statement: Statement) -> bool:
    return str(2**40) in json.dumps([[n, e.to_json()] for c in statement.cases for n, e in c.values or () if n != "b"])


def reachable(statement: Statement) -> Statement:
    """The statement without the WHENs behind one of their kind that has no condition."""
    kept = list[Case]()
    for case in statement.cases:
        if not any(k.when == case.when and k.condition is None for k in kept):
            kept.append(case)
    return replace(statement, cases=tuple(kept))


def changes(history: History) -> Iterable[Change]:
    return (step for step in history.steps if isinstance(step, Change))


@settings(GENERATED, max_examples=60)
@given(PLAIN.flatmap(programs))
def test_the_model_agrees_with_duckdb(history: History) -> None:
    play(DuckDbSubject(), accepted(history))


@pytest.mark.full
@settings(GENERATED, max_examples=2000)
@given(PLAIN.flatmap(programs))
def test_the_model_agrees_with_duckdb_at_length(history: History) -> None:
    play(DuckDbSubject(), accepted(history))


@pytest.mark.full
def test_duckdb_is_asked_about_statements_of_every_kind() -> None:
    asked = [c.statement for n in range(40) for c in changes(accepted(sample(programs(DmlProfile()), n)))]
    assert {s.kind for s in asked} == {"MERGE", "UPDATE", "DELETE"}
    cases = {(c.when, c.action) for s in asked for c in s.cases}
    assert {when for when, _ in cases} == {"MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"}
    assert {action for _, action in cases} == {"UPDATE", "DELETE", "INSERT", "DO NOTHING"}


def test_a_difference_to_duckdb_is_found() -> None:
    class Wrong(DuckDbSubject):
        def read(self, *args: Any, **kwargs: Any) -> list[Row]:
            return super().read(*args, **kwargs)[1:]

    with pytest.raises(NonConformance):
        play(Wrong(), accepted(sample(programs(DmlProfile()), 0)))


class BesideDuckDb(TrinitySubject):
    """An adapter whose every statement runs in DuckDB too: both must have changed the same rows."""

    def create(self, shape: Shape) -> None:
        self.other = DuckDbSubject()
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
            play(subject, accepted(sample(programs(DmlProfile(partitioned=number % 2 == 1)), number)))
    finally:
        subject.close()
