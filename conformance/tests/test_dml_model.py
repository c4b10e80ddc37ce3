"""The model of statements against examples written by hand, one rule at a time. Needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from trinity_conformance.generate.histories import sample
from trinity_conformance.generate.profiles import DmlProfile, dml_rota
from trinity_conformance.generate.programs import dml_shape, programs
from trinity_conformance.model.expressions import FALSE, TRUE, Expression, all_of, call, column, is_in, literal
from trinity_conformance.model.programs import Counts, DmlModel, Effect
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.statements import BY_SOURCE, MATCHED, NOT_MATCHED, Case, Statement, StatementSource
from trinity_conformance.mutants.tables import ModelSubject
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.traces import History, RowChangeStep
from trinity_conformance.shrink.programs import is_settled, smaller_changes

GENERATED = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
PLAIN = Shape((Column("k", "int"), Column("a", "int"), Column("n", "int", nullable=False)), ())
KEYED = Shape(
    (Column("k", "int", False), Column("w", "int"), Column("gone", "boolean"), Column("a", "int")),
    ("k",),
    watermark=("w",),
    tombstone="gone",
)
ON_KEY = call("=", column("t", "k"), column("s", "k"))
T, S = "t", "s"


def plain(*rows: tuple[int | None, int | None]) -> DmlModel:
    model = DmlModel(PLAIN)
    model.upsert([(k, a, 0) for k, a in rows])
    return model


def keyed(*rows: tuple[int, int | None, int]) -> DmlModel:
    """Return the model of a table with rows of k, w, a."""
    model = DmlModel(KEYED)
    model.upsert([(k, w, None, a) for k, w, a in rows])
    return model


def source(*rows: tuple[Any, ...], shape: Shape = PLAIN) -> StatementSource:
    return StatementSource(
        shape.columns, tuple((*row, 0) if shape is PLAIN else (row[0], row[1], None, row[2]) for row in rows)
    )


def merge(using: StatementSource, *cases: Case, on: Expression = ON_KEY) -> Statement:
    return Statement("MERGE", cases, using, on)


def update(values: Mapping[str, Expression], where: Expression | None = None) -> Statement:
    return Statement("UPDATE", (Case(MATCHED, "UPDATE", where, tuple(values.items())),))


def delete(where: Expression | None = None) -> Statement:
    return Statement("DELETE", (Case(MATCHED, "DELETE", where),))


def sets(**values: Expression) -> tuple[tuple[str, Expression], ...]:
    return tuple(values.items())


def number(value: int | None) -> Expression:
    return literal("int", value)


def rows(model: DmlModel, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[n] for n in names) for row in model.merged().values()), key=repr)


def codes(effect: Effect) -> set[str]:
    return set(effect.codes)


# -- M1 -------------------------------------------------------------------------------------------------


def test_the_first_when_that_holds_wins() -> None:
    model = plain((1, 10), (2, 20))
    cases = (
        Case(MATCHED, "DO NOTHING", call("=", column(T, "k"), number(1))),
        Case(MATCHED, "DELETE"),
        Case(MATCHED, "UPDATE", None, sets(a=number(0))),
    )
    assert model.change(merge(source((1, 0), (2, 0)), *cases)).counts == Counts(deleted=1)
    assert rows(model, "k", "a") == [(1, 10)]


def test_unknown_is_no_match() -> None:
    model = plain((None, 1), (2, None))
    unknown = Case(MATCHED, "DELETE", call("=", column(T, "a"), number(1)))
    new = Case(NOT_MATCHED, "INSERT", None, None)
    assert model.change(merge(source((None, 5), (2, 5)), unknown, new)).counts == Counts(inserted=1)
    assert rows(model, "k", "a") == [(2, None), (None, 1), (None, 5)]


def test_right_hand_sides_see_old_values() -> None:
    model = plain((1, 2))
    model.change(update({"k": column(T, "a"), "a": column(T, "k")}))
    assert rows(model, "k", "a") == [(2, 1)]


def test_rows_that_no_source_row_matches() -> None:
    model = plain((1, 1), (2, 2))
    model.change(merge(source((1, 0)), Case(BY_SOURCE, "UPDATE", None, sets(a=call("+", column(T, "a"), number(5))))))
    assert rows(model, "k", "a") == [(1, 1), (2, 7)]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (call("and", FALSE, literal("boolean", None)), False),
        (call("and", TRUE, literal("boolean", None)), None),
        (call("or", TRUE, literal("boolean", None)), True),
        (call("or", FALSE, literal("boolean", None)), None),
        (call("not", literal("boolean", None)), None),
        (call("=", number(None), number(None)), None),
        (call("same", number(None), number(None)), True),
        (call("same", number(None), number(1)), False),
        (is_in(number(1), "int", (1, None)), True),
        (is_in(number(1), "int", (2, None)), None),
        (is_in(number(1), "int", (2,)), False),
        (is_in(number(None), "int", (2,)), None),
        (call("coalesce", number(None), number(3)), 3),
        (call("+", number(None), number(3)), None),
        (call("is null", number(None)), True),
    ],
)
def test_three_valued_logic(expression: Expression, value: object) -> None:
    assert expression.value({}) is value or expression.value({}) == value


# -- M2, M3, M5 -----------------------------------------------------------------------------------------


def test_a_row_that_several_source_rows_select() -> None:
    every = Case(MATCHED, "UPDATE", None, sets(a=column(S, "a")))
    small = Case(MATCHED, "DELETE", call("<", column(S, "a"), number(1)))
    large = Case(MATCHED, "UPDATE", None, sets(a=column(S, "a")))
    one = Case(MATCHED, "UPDATE", call("=", column(S, "a"), number(1)), sets(a=column(S, "a")))
    for cases, expected in (
        ((every,), {"MERGE_TARGET_ROW_MULTIPLE_MATCHES"}),
        ((small, large), {"MERGE_TARGET_ROW_MULTIPLE_MATCHES"}),
        ((one,), set()),
        ((Case(MATCHED, "DO NOTHING"), every), set()),
        ((Case(MATCHED, "DELETE"),), set()),
    ):
        model = plain((1, 10))
        assert codes(model.change(merge(source((1, 0), (1, 1)), *cases))) == expected
        assert not expected or rows(model, "k", "a") == [(1, 10)]


def test_equal_rows_of_the_source_are_all_inserted() -> None:
    model = plain((1, 1))
    assert model.change(merge(source((2, 2), (2, 2)), Case(NOT_MATCHED, "INSERT", None, None))).counts.inserted == 2
    assert rows(model, "k") == [(1,), (2,), (2,)]


def test_counts_and_commits() -> None:
    model = plain((1, 1), (1, 1), (2, 2))
    assert model.change(update({"a": column(T, "a")})).counts == Counts(updated=3)
    assert model.change(delete(call(">", column(T, "k"), number(5)))).counts.affected == 0
    assert len(model.commits) == 2
    assert model.change(delete(call("=", column(T, "k"), number(1)))).counts == Counts(deleted=2)


def test_values_that_do_not_fit_fail_only_where_they_are_selected() -> None:
    model = plain((1, 1))
    assert codes(model.change(update({"n": number(None)}))) == {"CONSTRAINT_VIOLATION", "INVALID_ARGUMENTS"}
    wide = {"a": literal("bigint", 2**31)}
    assert codes(model.change(update(wide))) == {"NUMERIC_VALUE_OUT_OF_RANGE"}
    assert model.change(update(wide, FALSE)).counts == Counts()
    assert rows(model, "k", "a", "n") == [(1, 1, 0)]


# -- keyed tables: M4, M7, M9 ---------------------------------------------------------------------------


def test_keys_that_are_taken() -> None:
    onto = {"k": number(2), "w": number(9)}
    assert codes(keyed((1, 1, 0), (2, 1, 0)).change(update(onto, call("=", column(T, "k"), number(1))))) == {
        "CONSTRAINT_VIOLATION"
    }
    new = Case(NOT_MATCHED, "INSERT", None, sets(k=number(7), w=column(S, "w")))
    assert codes(keyed((1, 1, 0)).change(merge(source((5, 1, 0), (6, 1, 0), shape=KEYED), new))) == {
        "CONSTRAINT_VIOLATION"
    }


def test_keys_that_move_round() -> None:
    model = keyed((1, 1, 10), (2, 1, 20), (3, 1, 30))
    assert model.change(update({"k": call("+", column(T, "k"), number(1))})).counts == Counts(updated=3)
    assert rows(model, "k", "a") == [(2, 10), (3, 20), (4, 30)]
    gone = [v.row["k"] for v in model.commits[-1] if v.deleted]
    assert gone == [1], "a key both vacated and filled writes only the insert"


def test_a_tombstone_keeps_its_ordering() -> None:
    model = keyed((1, 5, 0))
    model.change(delete())
    model.upsert([(1, 4, None, 1)])
    assert rows(model, "k") == []
    model.upsert([(1, 5, None, 2)])
    assert rows(model, "a") == [(2,)]


def test_updates_that_would_lose() -> None:
    model = keyed((1, 5, 0), (2, 9, 0))
    assert codes(model.change(update({"w": number(4)}, call("=", column(T, "k"), number(1))))) == {"INVALID_ARGUMENTS"}
    assert codes(model.change(update({"a": number(1)}))) == set()
    model.change(delete(call("=", column(T, "k"), number(2))))
    assert codes(model.change(update({"k": number(2)}))) == {"INVALID_ARGUMENTS"}, "tombstones included"


def test_a_merge_that_takes_the_ordering_from_its_source_is_an_upsert() -> None:
    model = keyed((1, 5, 0))
    star = Case(MATCHED, "UPDATE", None, None)
    assert model.change(merge(source((1, 4, 9), shape=KEYED), star)).counts == Counts(updated=1)
    assert rows(model, "w", "a") == [(5, 0)]
    computed = Case(MATCHED, "UPDATE", None, sets(w=call("+", column(T, "w"), number(-1))))
    assert codes(model.change(merge(source((1, 4, 9), shape=KEYED), computed))) == {"INVALID_ARGUMENTS"}


def test_a_key_that_is_deleted_and_inserted_late_stays_deleted() -> None:
    model = keyed((1, 5, 0))
    cases = Case(BY_SOURCE, "DELETE"), Case(NOT_MATCHED, "INSERT", None, None)
    never = call("=", column(T, "a"), column(S, "k"))
    assert model.change(merge(source((1, 4, 9), shape=KEYED), *cases, on=never)).counts == Counts(0, 1, 1)
    assert rows(model, "k") == []


# -- programs -------------------------------------------------------------------------------------------


@GENERATED
@given(st.integers(0, 400).flatmap(lambda n: programs(dml_rota(n))))
def test_programs_conform_to_their_own_model_and_can_be_replayed(history: History) -> None:
    again = History.from_json(history.to_json())
    assert again == history
    assert again.id == history.id
    assert is_settled(history)
    tally = Tally()
    play(ModelSubject(), again, tally)
    assert tally.histories == 1


@pytest.mark.full
def test_programs_meet_every_situation_and_every_rule() -> None:
    tally = Tally()
    for number_ in range(60):
        play(ModelSubject(), sample(programs(dml_rota(number_)), number_), tally)
    wanted = {
        "merge-statement", "update-statement", "delete-statement", "several-cases", "by-source", "unselected",
        "nothing-selected", "key-move", "vacated-and-filled", "late-by-merge", "multiple-matches", "key-taken",
        "refused-late", "wrong-value",
    }  # fmt: skip
    assert wanted <= {name for name, count in tally.coverage.counts.items() if count}


def test_sql_text() -> None:
    shape = dml_shape(DmlProfile())
    statement = Statement(
        "MERGE",
        (
            Case(MATCHED, "UPDATE", call("is null", column(T, "a")), sets(a=call("+", column(S, "a"), number(-1)))),
            Case(NOT_MATCHED, "INSERT", None, None),
        ),
        StatementSource(shape.columns, ((1, None, 2, "it's", 3),)),
        all_of(call("same", column(T, "k0"), column(S, "k0")), TRUE),
    )
    assert statement.sql("x.t", shape) == (
        "MERGE INTO x.t AS t USING (VALUES (1, CAST(NULL AS INT), 2, 'it''s', 3)) AS s(k0, a, b, s, n) "
        "ON ((t.k0 IS NOT DISTINCT FROM s.k0) AND TRUE) WHEN MATCHED AND (t.a IS NULL) THEN UPDATE SET "
        "a = (s.a + (-1)) WHEN NOT MATCHED THEN INSERT *"
    )
    assert "INSERT VALUES (s.k0, s.a, s.b, s.s, s.n)" in statement.sql("x.t", shape, "duckdb")
    assert Statement.from_json(json.loads(json.dumps(statement.to_json()))) == statement


def test_smaller_programs_are_programs() -> None:
    history = sample(programs(dml_rota(1)), 1)
    smaller = list(smaller_changes(history))
    assert smaller
    for candidate in smaller[:40]:
        if is_settled(candidate):
            play(ModelSubject(), candidate)
    assert any(isinstance(step, RowChangeStep) for step in history.steps)
