"""The model against examples written by hand, and the suite against itself. Needs no Spark."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import FEATURES, KEYS, TOMBSTONES, WATERMARKS, rota
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.tables import Model
from trinity_conformance.model.values import POOLS, Json, decode, encode, equal_form, order_form
from trinity_conformance.mutants.effects import DML_MUTANTS
from trinity_conformance.mutants.engines import ENGINE_MUTANTS
from trinity_conformance.mutants.feeds import FEED_MUTANTS
from trinity_conformance.mutants.functions import FUNCTION_MUTANTS
from trinity_conformance.mutants.selftest import self_test
from trinity_conformance.mutants.tables import MUTANTS, ModelSubject, TieToEarlier
from trinity_conformance.playing import traces
from trinity_conformance.playing.coverage import SITUATIONS
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.refusals import REFUSALS
from trinity_conformance.playing.runner import failure_of, play
from trinity_conformance.playing.traces import Alter, Compact, Delete, History, Log, Read, Reopen, Upsert
from trinity_conformance.shrink.histories import ShrinkBudget, shrink
from trinity_conformance.suite.checks import CHECKS, check_of

TELLING = ("TieRefused", "LateRowNotAggregated", "ThresholdForgotten", "CompactionForgetsContributions")
QUICK = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
Rows = list[tuple[Json, ...]]


def orders(watermark: str = "bigint", **options: object) -> Shape:
    """Return the shape of the keyed table of most examples: order_id, ts, deleted, v."""
    columns = (Column("id", "int", False), Column("ts", watermark), Column("deleted", "boolean"), Column("v", "bigint"))
    return Shape(columns, ("id",), watermark=("ts",), tombstone="deleted", **options)  # type: ignore[arg-type]


def read(shape: Shape, *commits: Rows) -> dict[object, object]:
    """Return key -> v after the commits."""
    model = Model(shape)
    for rows in commits:
        model.upsert(rows)
    return {key[0]: row["v"] for key, row in model.merged().items()}


# -- the rules, one by one ------------------------------------------------------------------------------


def test_the_two_examples_of_the_upsert_page() -> None:
    assert read(orders(), [(1, 100, None, 1)], [(1, 200, None, 2)]) == {1: 2}
    assert read(orders(), [(2, 100, None, 1)], [(2, 200, True, 2)]) == {}


def test_late_rows_lose_and_ties_go_to_the_later_arrival() -> None:  # U1, K4
    assert read(orders(), [(1, 5, None, 1)], [(1, 4, None, 2)]) == {1: 1}
    assert read(orders(), [(1, 5, None, 1), (1, 5, None, 2)]) == {1: 2}


def test_null_is_the_smallest_watermark() -> None:  # U2, K3
    assert read(orders(), [(1, -(2**63), None, 1)], [(1, None, None, 2)]) == {1: 1}
    assert read(orders(), [(1, None, None, 1)], [(1, None, None, 2)]) == {1: 2}


def test_nan_is_above_every_number_and_the_zeros_are_one() -> None:  # K3
    assert read(orders("double"), [(1, "NaN", None, 1)], [(1, "Infinity", None, 2)]) == {1: 1}
    assert read(orders("double"), [(1, "0.0", None, 1)], [(1, "-0.0", None, 2)]) == {1: 2}


def test_a_tombstone_beats_older_rows_that_arrive_later_and_a_newer_row_revives() -> None:  # U4
    deleted: Rows = [(1, 5, True, 1)]
    assert read(orders(), deleted, [(1, 4, None, 2)]) == {}
    assert read(orders(), deleted, [(1, 6, None, 2)]) == {1: 2}
    assert read(orders(), deleted, [(1, 5, False, 2)]) == {1: 2}


def test_descending_order_takes_the_smallest_but_not_null() -> None:  # U8
    shape = orders(alias=True, descending=True)
    assert read(shape, [(1, 5, None, 1)], [(1, 4, None, 2)], [(1, None, None, 3)]) == {1: 2}


@pytest.mark.parametrize(
    ("kind", "value", "mark", "gone"),
    [
        ("string", "D", "D", True), ("string", "D", "d", False), ("string", None, "anything", True),
        ("char(3)", "D", "D", True), ("int", None, 0, True), ("binary", None, "", True), ("int", None, None, False),
        ("boolean", None, False, False), ("boolean", None, True, True),
    ],
)  # fmt: skip
def test_every_form_of_tombstone(kind: str, value: str | None, mark: Json, gone: bool) -> None:  # U3
    columns = (Column("id", "int", False), Column("t", kind), Column("v", "bigint"))
    shape = Shape(columns, ("id",), tombstone="t", tombstone_value=value)
    assert read(shape, [(1, mark, 1)]) == ({} if gone else {1: 1})


def test_retracts_hide_the_row_unless_they_are_ignored() -> None:  # U8, D1
    columns = (Column("id", "int", False), Column("kind", "string"), Column("v", "bigint"))
    shape = Shape(columns, ("id",), row_kind="kind")
    ignoring = Shape(columns, ("id",), row_kind="kind", ignore_delete=True)
    commits: list[Rows] = [[(1, "+I", 1)], [(1, "-D", 2)]]
    assert read(shape, *commits) == {}
    assert read(ignoring, *commits) == {1: 1}


def test_a_delete_keeps_the_watermark_so_that_late_rows_lose_and_newer_ones_win() -> None:  # U5
    model = Model(orders())
    model.upsert([(1, 5, None, 1), (2, 5, None, 2)])
    assert model.delete_keys([(1,), (7,)]) == 1
    assert model.delete_where(Condition("v", "=", 2)) == 1
    model.upsert([(1, 4, None, 3), (2, 5, None, 4)])
    assert [row["v"] for row in model.merged().values()] == [4]
    assert [row["v"] for row in model.merged(1).values()] == [1, 2]


def test_a_column_that_is_dropped_and_added_anew_is_blank_in_the_log_too() -> None:  # L10
    shape, subject = orders(), ModelSubject(Model)
    subject.create(shape)
    steps = (Upsert((((1, 1, None, 7),),)), Alter("blank", ("v",)), Upsert((((1, 2, None, 8),),)), Log(), Read())
    play(subject, History(shape, steps))
    assert [row.row["v"] for row in subject.log()] == [None, 8]


def test_a_recorded_transaction_is_a_no_op() -> None:  # L4
    model = Model(orders())
    assert model.upsert([(1, 1, None, 1)], ("app", 2))
    assert not model.upsert([(1, 2, None, 2)], ("app", 2))
    assert not model.upsert([(1, 2, None, 2)], ("app", 1))
    assert model.upsert([(1, 2, None, 3)], ("other", 1))
    assert len(model.commits) == 2


@pytest.mark.parametrize(
    ("kind", "one", "other"), [("double", "0.0", "-0.0"), ("char(3)", "a", "a "), ("double", "NaN", "NaN")]
)
def test_keys_that_are_one(kind: str, one: Json, other: Json) -> None:  # K2
    shape = Shape((Column("k", kind, False), Column("v", "bigint")), ("k",))
    assert list(read(shape, [(one, 1)], [(other, 2)]).values()) == [2]


# -- values, shapes, traces -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(POOLS))
def test_values_survive_json_and_are_ordered(kind: str) -> None:
    for encoded in (*POOLS[kind], None):
        value = decode(kind, json.loads(json.dumps(encoded)))
        assert equal_form(kind, decode(kind, encode(kind, value))) == equal_form(kind, value)
    forms = [order_form(kind, decode(kind, v)) for v in POOLS[kind]]
    assert sorted(forms)[0] > order_form(kind, None)


@QUICK
@given(histories())
def test_histories_survive_json_and_play_on_the_model(history: History) -> None:
    assert History.from_json(history.to_json()) == history
    play(ModelSubject(), history, every_step=True)


def test_a_sample_is_determined_by_its_number() -> None:
    assert sample(histories(rota(3)), 3).id == sample(histories(rota(3)), 3).id
    assert sample(histories(rota(3)), 3).id != sample(histories(rota(3)), 4).id


def test_the_rota_meets_every_kind() -> None:
    drawn = [rota(n) for n in range(max(map(len, (KEYS, WATERMARKS, TOMBSTONES, FEATURES))))]
    assert {p.key for p in drawn} == set(KEYS)
    assert {p.watermark for p in drawn} == set(WATERMARKS)
    assert {p.tombstone for p in drawn} == set(TOMBSTONES)
    assert {p.feature for p in drawn} == set(FEATURES)


def test_traces_are_saved_and_found_by_file_and_by_id(tmp_path: Path) -> None:
    history = sample(histories(rota(0)), 0)
    path = traces.save(history, tmp_path)
    assert traces.load(str(path), Path("nowhere")) == history
    assert traces.load(history.id, tmp_path) == history
    with pytest.raises(ValueError, match="no trace"):
        traces.load("0123", tmp_path)
    path.write_text('{"format": 99}')
    with pytest.raises(ValueError, match="99"):
        traces.load(str(path), tmp_path)


def test_quotas_name_situations_and_checks_cite_rules() -> None:
    assert all(set(check.quotas) <= set(SITUATIONS) for check in CHECKS)
    assert all(check.rules for check in CHECKS)
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    frames = sum(case.of_spark for case in REFUSALS)
    wanted = {"refusal": len(REFUSALS) - frames, "refusal of a DataFrame": frames}
    assert check_of("bad-input").quotas == wanted


# -- the suite bites ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mutants", "histories"),
    [
        pytest.param({**MUTANTS, **FEED_MUTANTS, **DML_MUTANTS}, 60, marks=pytest.mark.full),
        ({name: ENGINE_MUTANTS[name] for name in TELLING}, 15),
        pytest.param({**ENGINE_MUTANTS, **FUNCTION_MUTANTS}, 60, marks=pytest.mark.full),
    ],
    ids=["deduplicate", "some of merge engines", "merge engines"],
)
def test_every_mutant_is_killed_and_the_failure_is_small(mutants: dict[str, type[Model]], histories: int) -> None:
    kills = self_test(histories, mutants=list(mutants))
    assert [k.mutant for k in kills] == list(mutants)
    assert [k.mutant for k in kills if not k.killed] == []
    assert [k for k in kills if k.steps > 5 or k.rows > 8] == []


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.full)])
def test_forty_histories_meet_all_quotas(first: int) -> None:
    tally = Tally()
    for number in range(first, first + 40):
        play(ModelSubject(), sample(histories(rota(number)), number), tally)
    counts = tally.coverage.counts
    checks = [check for check in CHECKS if check.emphasis and not (check.programs or check.engines)]
    quotas = [quota for check in checks for quota in check.quotas.items()]
    missing = {name: counts[name] for name, wanted in quotas if counts[name] < wanted}
    assert missing == {}


def test_a_failure_shows_the_rows_the_steps_and_the_replay_line() -> None:
    history = History(orders(), (Upsert((((1, 5, None, 1), (1, 5, None, 2)),)), Compact(), Reopen(), Read()))
    with pytest.raises(NonConformance) as caught:
        play(ModelSubject(TieToEarlier), history)
    text = caught.value.report()
    assert "expected id=1, ts=5, deleted=None, v=2" in text
    assert "read     id=1, ts=5, deleted=None, v=1" in text
    assert "CREATE TABLE t" in text
    assert f"trinity-conformance replay {history.id}" in text
    trial = partial(failure_of, ModelSubject(TieToEarlier))
    small = shrink(caught.value, trial, ShrinkBudget(math.inf, 100)).history
    assert small is not None
    assert [s.op for s in small.steps] == ["upsert"]


def test_a_crash_of_the_adapter_is_a_finding_and_names_the_step() -> None:
    class Broken(ModelSubject):
        def compact(self, full: bool) -> None:
            raise RuntimeError("out of luck")

    history = History(orders(), (Upsert((((1, 5, None, 1),),)), Delete(keys=((1,),)), Compact()))
    with pytest.raises(NonConformance, match="a legal compact raised RuntimeError: out of luck") as caught:
        play(Broken(), history)
    assert caught.value.step == 2
