"""Generated histories in which another engine makes the table, or takes some of the steps (U7, L1, L3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from tests.support.other_engine import Shared
from tests.support.other_histories import TYPES, WAYS, mixed
from trinity_conformance.generate.engine_histories import ENGINE_GENERAL, engine_histories
from trinity_conformance.generate.engine_profiles import engine_rota
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import Profile, dml_rota
from trinity_conformance.generate.programs import programs
from trinity_conformance.mutants.tables import ModelSubject
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.traces import Alter, Compact, History, Log, Other, ReadPast, Upsert, Vacuum

PROFILES: Final = (
    Profile(("int",), ("bigint",), ("boolean", None), "plain"),
    Profile(("string", "int"), ("timestamp", "int"), ("string", "D"), "plain"),
    Profile(("bigint", "date"), (), None, "row-kind"),
    Profile(("int",), ("double",), ("int", None), "descending"),
    Profile(("decimal(10,2)", "int"), ("string", "boolean"), ("string", None), "plain"),
)
STEPS: Final = {
    "upsert": 8, "delete": 3, "read": 1, "query": 2, "reopen": 1, "read-past": 2, "log": 1, "compact": 2, "vacuum": 1,
    "alter": 2,
}  # fmt: skip
Draw = Callable[[int], History]


def of_deduplicate(number: int) -> History:
    """Return a history whose column types every writer supports."""
    for seed in range(1000 * number, 1000 * number + 1000):
        history = sample(histories(PROFILES[number % len(PROFILES)], STEPS), seed)
        if {c.type for c in history.shape.columns} <= TYPES:
            return history
    raise AssertionError(f"no history of {TYPES}")


def of_engine(number: int) -> History:
    return sample(engine_histories(engine_rota(number), {**ENGINE_GENERAL, "alter": 2}), number)


def of_program(number: int) -> History:
    return sample(programs(dml_rota(number)), number)


DRAWS: Final[tuple[Draw, ...]] = (of_deduplicate, of_engine, of_program)


def with_steps_of_others(draw: Draw, *ways: str) -> History:
    """Return the first drawn history in which another engine takes each of these steps."""
    every = (mixed(draw(number)) for number in range(100))
    return next(h for h in every if {s.step.op for s in h.steps if isinstance(s, Other)} >= set(ways))


def numbers(fmt: str) -> range:
    """Return the numbers of the histories of a long test. The formats have different ones, all profiles together."""
    first = 3 * ("delta", "iceberg", "parquet").index(fmt)
    return range(first, first + 3)


def external(number: int, connector: str) -> History:
    """Return a history of a table that another engine made, without steps that it cannot take."""
    left_out: tuple[type[Any], ...] = (Compact, Vacuum, Alter, *((ReadPast, Log) if connector == "parquet" else ()))
    history = mixed(of_deduplicate(number), {"upsert"})
    kept = (replace(s, txn=None) if isinstance(s, Upsert) else s for s in history.steps if not isinstance(s, left_out))
    return History(history.shape, tuple(kept))


@pytest.fixture
def shared(fmt: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Shared]:
    """Yield the table under test. The test's parameter has further arguments."""
    found = Shared(fmt, spark, tmp_path, **getattr(request, "param", {}))
    yield found
    found.close()


def played(shared: Shared, found: list[History]) -> Tally:
    tally = Tally()
    for history in found:
        try:
            play(shared, history, tally)
        except NonConformance as failure:  # the trace plays again by History.from_json()
            pytest.fail(f"{failure.report()}\n{history.to_json()}")
    assert tally.histories == len(found)
    assert not tally.unsupported
    return tally


EXTERNAL = pytest.mark.parametrize("shared", [{"external": True}], indirect=True)
LONG = pytest.mark.full


@LONG
@EXTERNAL
def test_a_table_that_another_engine_made(shared: Shared, fmt: str) -> None:
    assert played(shared, [external(0, fmt)]).coverage.counts["late-row"] > 0


@LONG
@EXTERNAL
def test_many_tables_that_another_engine_made(shared: Shared, fmt: str) -> None:
    assert played(shared, [external(n, fmt) for n in numbers(fmt)]).coverage.counts["other upsert"] > 2


@LONG
@pytest.mark.parametrize("shared", [{"stamped": False}], indirect=True)
@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
def test_another_engine_appends_between_commits(shared: Shared, fmt: str) -> None:
    """Without rewrites, the order of commits is all of the order of rows that matters."""
    tally = played(shared, [mixed(of_deduplicate(n), {"upsert", "alter"}) for n in numbers(fmt)])
    assert tally.coverage.counts["other upsert"] > 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("fmt", "draw", "way"),
    [("delta", of_engine, "alter"), ("iceberg", of_deduplicate, "vacuum")],
)
def test_another_engine_takes_steps(shared: Shared, fmt: str, draw: Draw, way: str) -> None:
    counts = played(shared, [with_steps_of_others(draw, "compact", way)]).coverage.counts
    assert counts["other compact"]
    assert counts[f"other {way}"]


@LONG
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
def test_another_engine_takes_steps_of_many_histories(shared: Shared, fmt: str, draw: Draw) -> None:
    played(shared, [mixed(draw(n)) for n in numbers(fmt)])


@pytest.mark.full
def test_the_histories_hold_every_step_of_others_and_mean_the_same_to_the_model() -> None:
    tally = Tally()
    for draw in DRAWS:
        for number in range(8):
            history = mixed(draw(number))
            assert History.from_json(history.to_json()) == history
            play(ModelSubject(), history, tally)
    assert all(tally.coverage.counts[f"other {way}"] > 1 for way in WAYS)
