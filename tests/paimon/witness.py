"""Check independently: real Apache Paimon 0.9.0 plays histories of the suite. Run by ``make test-paimon``.

Every value that Paimon returns is the model's, or the one that a listed difference predicts.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from tests.paimon.cases import CASES, Case
from tests.paimon.comparison import Comparison, compared, played
from tests.paimon.differences import DIFFERENCES
from tests.paimon.histories import chosen
from tests.paimon.play import Answer, answers
from trinity_conformance.model.engine_model import EngineModel
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.tables import Row
from trinity_conformance.mutants.engines import ENGINE_MUTANTS
from trinity_conformance.playing.differences import cell_form

HISTORIES: Final = dict(chosen())
LEAST_THE_SAME: Final = 0.8
"""Share of the values that must be equal without a difference: else the differences explain too much."""

FAULTS: Final = (
    "TieRefused",
    "LateRowNotAggregated",
    "NullGroupTakesPart",
    "NullPartLeavesGroup",
    "NullPartLargest",
    "FirstPartDecides",
    "ProtectedKeepsValue",
    "SequenceGoesBack",
    "GroupsTogether",
    "NullOverwrites",
)
"""Planted faults of the model that a comparison with Paimon's rows must find."""


@pytest.fixture(scope="module")
def paimon(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """Return Paimon's answers to all histories."""
    made_by_hand = {table(case): case.history for case in CASES}
    return answers({**HISTORIES, **made_by_hand}, tmp_path_factory.mktemp("paimon"))


def table(case: Case) -> str:
    return "case_" + case.difference.replace("-", "_")


def compared_all(paimon: dict[str, Answer], model: type[EngineModel] = EngineModel) -> Comparison:
    whole = Comparison()
    for name, history in HISTORIES.items():
        whole.add(compared(name, history, paimon[name], model))
    return whole


def forms(shape: Shape, rows: tuple[Row, ...]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(cell_form(shape, n, row[n]) for n in shape.names) for row in rows)


def test_every_value_is_the_models_or_explained(paimon: dict[str, Answer]) -> None:
    whole = compared_all(paimon)
    print(f"\n{whole.same} values are the model's; {dict(whole.explained)}")
    assert whole.unexplained == []
    assert whole.same >= LEAST_THE_SAME * (whole.same + whole.explained.total())
    assert set(whole.explained) == {d.name for d in DIFFERENCES if not d.by_hand}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.difference)
def test_differences_by_hand(case: Case, paimon: dict[str, Answer]) -> None:
    answer, shape = paimon[table(case)], case.history.shape
    if isinstance(case.paimon, str):
        assert answer.rows is None
        assert case.paimon in answer.error
    else:
        assert answer.rows is not None, answer.error
        assert forms(shape, answer.rows) == forms(shape, case.paimon)
    oracle = played(case.history)
    if case.trinity is None:
        assert isinstance(oracle, EngineModel)
        assert any(oracle.refusal(version) for version in oracle.arrivals(None))
    else:
        merged = tuple(oracle.merged().values())
        assert forms(shape, merged) == forms(shape, case.trinity)
        assert isinstance(case.paimon, str) or forms(shape, merged) != forms(shape, case.paimon)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_model_shows(name: str, paimon: dict[str, Answer]) -> None:
    assert any(compared(n, h, paimon[n], ENGINE_MUTANTS[name]).unexplained for n, h in HISTORIES.items())
