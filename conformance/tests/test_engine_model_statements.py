"""The model of the merge engines against deletes and statements written by hand. No Spark."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_models import FULL, GROUPWISE, model, only, shape
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.engine_model import EngineModel, model_of
from trinity_conformance.model.expressions import Expression, call, column, is_in, literal
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.statements import MATCHED, Case, Statement


def test_a_hard_delete_cuts_whatever_the_options_say() -> None:  # M11
    kind = shape("k int, a int, b int, kind string", row_kind="kind", ignore_delete=True)
    found = model(kind, [(1, 1, 1, "+I"), (2, 2, 2, "+I")])
    assert found.delete_keys([(1,), (9,)]) == 1
    assert found.delete_where(Condition("a", "=", 2)) == 1
    assert only(found) is None
    found.upsert([(1, 3, None, "+I")])
    assert only(found) == (1, 3, None, "+I")
    assert len(found.merged(1)) == 2


def test_a_hard_delete_has_the_place_of_its_row() -> None:  # M11
    found = model(shape("k int, s int, a int", watermark=("s",)), [(1, 5, 5)])
    found.delete_keys([(1,)])
    found.upsert([(1, 4, 4)])
    assert only(found) is None
    found.upsert([(1, 5, None)])
    assert only(found) == (1, 5, None)


def test_a_hard_delete_forgets_thresholds() -> None:  # M11, D5
    found = model(GROUPWISE, [FULL])
    found.delete_keys([(1,)])
    found.upsert([(1, 1, 7, None, None, None, "+I")])
    assert only(found) == (1, 1, 7, None, None, None, "+I")


def update(where: Expression | None = None, **values: Any) -> Statement:
    """Return the statement UPDATE t SET ..., in which integers and NULL are literals."""
    sets = {n: v if isinstance(v, Expression) else literal("int", v) for n, v in values.items()}
    return Statement("UPDATE", (Case(MATCHED, "UPDATE", where, tuple(sets.items())),))


def test_an_update_sets_null_and_carries_nothing_else() -> None:  # P1, M9
    found = model(shape("k int, a int, b int"), [(1, 1, 1)])
    effect = found.change(update(a=None))
    assert not effect.refused
    assert effect.commit[0].named == frozenset("a")
    assert only(found) == (1, None, 1)
    found.upsert([(1, 7, None)])
    assert only(found) == (1, 7, 1)


def test_an_update_of_a_group_copies_its_sequence_and_its_plain_columns() -> None:  # P1
    kind = shape("k int, g int, a int, b int, t int", groups={"g": "a,b,t"}, functions={"t": "sum"})
    found = model(kind, [(1, 2, 1, 1, 5)])
    effect = found.change(update(a=call("+", column("t", "a"), literal("int", 8))))
    assert effect.commit[0].named == frozenset("gab")
    assert only(found) == (1, 2, 9, 1, 5)
    found.upsert([(1, 1, 7, 7, 1)])  # late: but for the sum
    assert only(found) == (1, 2, 9, 1, 6)


def test_an_update_that_would_lose_is_refused() -> None:  # M9
    kind = shape("k int, s int, g int, a int, x int", groups={"g": "a"}, watermark=("s",))
    found = model(kind, [(1, 5, 5, 1, 1)])
    for statement in (update(a=2, g=4), update(x=2, s=4), update(x=2, s=None)):
        effect = found.change(statement)
        assert effect.refused
        assert effect.codes == {"INVALID_ARGUMENTS"}
    assert found.change(update(a=2, g=6, s=6)).counts.updated == 1
    assert only(found) == (1, 6, 6, 2, 1)


def test_an_update_of_a_group_never_written_must_set_its_sequence() -> None:  # M11
    found = model(shape("k int, g int, a int", groups={"g": "a"}), [(1, None, 9)])
    assert [f.rule for f in found.change(update(a=1)).faults] == ["M11"]
    assert [f.rule for f in found.change(update(a=1, g=None)).faults] == ["M11"]
    assert found.change(update(a=1, g=0)).counts.updated == 1
    assert only(found) == (1, 0, 1)


@pytest.mark.parametrize(("function", "refused"), [("sum", True), ("last_value", True), ("last_non_null_value", False)])
def test_only_the_default_function_may_be_updated(function: str, refused: bool) -> None:  # M11
    found = model(shape("k int, a int", "aggregation", functions={"a": function}), [(1, 1)])
    effect = found.change(update(is_in(column("t", "k"), "int", [9]), a=2))
    assert effect.refused == refused
    assert effect.codes == ({"NOT_SUPPORTED"} if refused else set())
    if not refused:
        found.change(update(a=None))
        assert only(found) == (1, None)


def test_first_row_takes_no_statement() -> None:  # M11
    found = model(shape("k int, a int", "first-row"), [(1, 1)])
    assert found.change(update(a=2)).codes == {"NOT_SUPPORTED"}
    assert found.change(Statement("DELETE", (Case(MATCHED, "DELETE"),))).codes == {"NOT_SUPPORTED"}
    assert only(found) == (1, 1)


def test_a_statement_that_deletes_is_a_hard_delete() -> None:  # M11, M5
    found = model(shape("k int, a int", "aggregation", functions={"a": "sum"}), [(1, 5), (2, 6)])
    effect = found.change(Statement("DELETE", (Case(MATCHED, "DELETE", is_in(column("t", "k"), "int", [1, 9])),)))
    assert effect.counts.deleted == 1
    found.upsert([(1, 1)])
    assert {key: row["a"] for key, row in found.merged().items()} == {(1,): 1, (2,): 6}


def test_what_a_later_retract_would_undo_is_open() -> None:  # M9
    kind = shape("k int, s int, g int, a int, kind string", groups={"g": "a"}, watermark=("s",), row_kind="kind")
    found = model(kind, [(1, 5, 5, 1, "+I"), (1, 9, 6, 1, "-D")])
    [fault] = found.effect(update(a=2)).faults
    assert fault.open


def test_models_are_chosen_by_engine() -> None:
    assert isinstance(model_of(shape("k int")), EngineModel)
    assert not isinstance(model_of(Shape((Column("k", "int"),), ("k",))), EngineModel)
