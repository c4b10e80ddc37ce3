"""Histories of the merge engines: their contents, the faults they find, and the laws on the model. Needs no Spark."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from trinity_conformance.generate.engine_histories import engine_histories, resplit
from trinity_conformance.generate.engine_profiles import FUNCTION_TYPES, LANES, engine_rota
from trinity_conformance.generate.histories import sample
from trinity_conformance.model.engine_fold import FUNCTIONS
from trinity_conformance.model.engine_model import EngineModel
from trinity_conformance.model.expressions import literal
from trinity_conformance.model.functions import OutOfRange
from trinity_conformance.model.shapes import Column, Group, Shape
from trinity_conformance.model.statements import MATCHED, Case, Statement
from trinity_conformance.model.values import decode, encode, equal_form
from trinity_conformance.mutants.tables import ModelSubject
from trinity_conformance.playing.coverage import SITUATIONS
from trinity_conformance.playing.differences import NonConformance, compare
from trinity_conformance.playing.engine_options import BAD_OPTIONS
from trinity_conformance.playing.engine_refusals import ENGINE_REFUSALS
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.traces import History, RowChangeStep, Upsert
from trinity_conformance.shrink.programs import is_settled
from trinity_conformance.suite.budgets import BUDGETS
from trinity_conformance.suite.checks import CHECKS, check_of

GENERATED = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
ANY = st.integers(0, 1000).flatmap(lambda number: engine_histories(engine_rota(number)))
MINE = (
    "function ", "retract ", "engine ", "delete mode", "partial-update ", "aggregation ", "hard delete", "cut of",
    "row below", "raised", "ignored", "row out", "sequence with", "late row in", "late retract", "tie in", "omitted",
    "row after", "fold-after", "out-of-range", "refused-update", "refused-late",
)  # fmt: skip
ENGINE_CHECKS = [check for check in CHECKS if check.engines]


def same(one: EngineModel, other: EngineModel) -> str:
    """Return how the merged rows of two tables differ; nothing when they are equal."""
    bad = {n for model in (one, other) for names in model.overflows().values() for n in names}
    names = [n for n in one.shape.names if n not in bad]
    found = [{n: row[n] for n in names} for row in other.merged().values()]
    difference = compare(one, one.merged(), found, names)
    return difference[0] if difference else ""


@GENERATED
@given(ANY, st.integers(0, 100))
def test_laws_of_every_history(history: History, number: int) -> None:
    # drawing a history takes most of the time: each is put to all laws
    reads_the_same_in_any_split(history, number)
    survives_json_and_holds_only_legal_rows(history)
    has_the_same_rows_when_it_is_split_again(history, number)
    assert is_settled(history)
    play(ModelSubject(), history, every_step=True)


def reads_the_same_in_any_split(history: History, number: int) -> None:  # L2
    upserts = [step for step in history.steps if isinstance(step, Upsert)]
    whole, single, split = (EngineModel(history.shape) for _ in range(3))
    chance = Random(number)
    for step in upserts:
        whole.upsert(step.rows, None, step.names)
        at = chance.randrange(len(step.rows) + 1)
        for part in (step.rows[:at], step.rows[at:]):
            split.upsert(part, None, step.names)
        for row in step.rows:
            single.upsert([row], None, step.names)
    assert not same(whole, single), history.to_json()
    assert not same(whole, split), history.to_json()


def survives_json_and_holds_only_legal_rows(history: History) -> None:
    assert History.from_json(history.to_json()) == history
    model = EngineModel(history.shape)
    for step in history.steps:
        if isinstance(step, Upsert):
            model.upsert(step.rows, None, step.names)
    assert [r for r in map(model.refusal, model.arrivals(None)) if r] == []


def has_the_same_rows_when_it_is_split_again(history: History, number: int) -> None:
    def rows(of: History) -> list[object]:
        return [(row, s.names) for s in of.steps if isinstance(s, Upsert) for row in s.rows]

    other = resplit(history, number)
    assert rows(other) == rows(history)
    play(ModelSubject(), other)


def test_the_first_eight_histories_meet_engines_functions_and_deletes() -> None:
    tally = Tally()
    for number in range(BUDGETS["smoke"].shares["engines"].most):
        play(ModelSubject(), sample(engine_histories(engine_rota(number)), number), tally)
    counts = tally.coverage.counts
    wanted = [name for check in ENGINE_CHECKS for name in check.quotas]
    assert [name for name in wanted if not counts[name]] == []


@pytest.mark.full
@pytest.mark.parametrize("first", [0, 1000])
def test_eighty_histories_meet_every_situation(first: int) -> None:
    tally = Tally()
    for number in range(first, first + 80):
        play(ModelSubject(), sample(engine_histories(engine_rota(number)), number), tally)
    counts = tally.coverage.counts
    assert {n: counts[n] for c in ENGINE_CHECKS for n, quota in c.quotas.items() if counts[n] < quota} == {}
    mine = [name for name in SITUATIONS if name.startswith(MINE)]
    assert [name for name in mine if not counts[name]] == []
    assert set(counts) <= set(SITUATIONS)


def test_a_run_of_few_histories_says_what_it_did_not_meet() -> None:
    tally = Tally()
    play(ModelSubject(), sample(engine_histories(engine_rota(0)), 0), tally)
    quotas = check_of("merge-engines").quotas
    assert tally.coverage.counts["engine aggregation"] < quotas["engine aggregation"]


def test_the_rota_meets_every_pair_of_lane_and_function() -> None:
    drawn = [engine_rota(number) for number in range(13 * 22)]
    lanes = {(p.engine, bool(p.groups), p.mode, f) for p in drawn for f in p.functions}
    wanted = {(*lane, f) for lane in LANES if lane[1] or lane[0] == "aggregation" for f in FUNCTIONS}
    assert wanted <= lanes
    assert set(FUNCTION_TYPES) == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("kind", "encoded"),
    [
        ("array<int>", (1, None, 2)),
        ("array<array<string>>", (("a",), None, ())),
        ("map<string,int>", (("b", 1), ("a", None))),
        ("struct<a:int,b:decimal(5,2)>", (1, "2.50")),
        ("map<string,struct<x:int,d:date>>", (("k", (1, "2024-02-29")), ("l", None))),
    ],
)
def test_nested_values_survive_json(kind: str, encoded: tuple[object, ...]) -> None:
    value = decode(kind, encoded)  # type: ignore[arg-type]
    assert encode(kind, value) == encoded
    assert hash(equal_form(kind, value)) == hash(equal_form(kind, decode(kind, encode(kind, value))))


# -- what the runner finds ------------------------------------------------------------------------------

TOTALS = Shape((Column("k", "int"), Column("t", "tinyint")), ("k",), engine="aggregation", functions={"t": "sum"})
OVERFLOW = History(TOTALS, (Upsert((((1, 100), (1, 100), (2, 1)),)),))


class _Silent(ModelSubject):
    """A model that shows totals out of range as NULL, without an error."""

    def read(self, *args: object, **more: object) -> list[dict[str, object]]:
        rows = self._model.merged().values()
        return [{n: None if isinstance(v, OutOfRange) else v for n, v in row.items()} for row in rows]


def test_a_total_out_of_range_must_fail_the_read() -> None:  # A4
    play(ModelSubject(), OVERFLOW)
    with pytest.raises(NonConformance, match="NUMERIC_VALUE_OUT_OF_RANGE") as caught:
        play(_Silent(), OVERFLOW)
    assert caught.value.check == "out-of-range"


class _Accepting(EngineModel):
    """A model that accepts any UPDATE."""

    def losing(self, *args: object) -> list[object]:  # type: ignore[override]
        return []


def test_a_statement_that_should_be_refused_is_a_finding() -> None:  # M9, M11
    kind = Shape(
        (Column("k", "int"), Column("g", "int"), Column("a", "int")),
        ("k",),
        engine="partial-update",
        groups=(Group(("g",), ("a",)),),
    )
    late = Statement("UPDATE", (Case(MATCHED, "UPDATE", None, (("g", literal("int", 1)),)),))
    history = History(kind, (Upsert((((1, 2, 1),),)), RowChangeStep(late)))
    play(ModelSubject(), history)
    with pytest.raises(NonConformance, match="M9") as caught:
        play(ModelSubject(_Accepting), history)
    assert caught.value.check == "engine-change"


def test_refusals_have_names_and_codes() -> None:
    assert check_of("engine-options").quotas == {"engine-refusal": len(ENGINE_REFUSALS)}
    assert len({case.name for case in ENGINE_REFUSALS}) == len(ENGINE_REFUSALS)
    assert all(case.codes and case.names for case in ENGINE_REFUSALS)
    assert len({str((o.options, o.columns)) for o in BAD_OPTIONS}) == len(BAD_OPTIONS)
