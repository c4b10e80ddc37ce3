"""The model of the merge engines against examples written by hand, a seed's, and one rule at a time. No Spark."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_models import FULL, GROUPWISE, Cells, model, only, shape
from trinity_conformance.model.functions import OutOfRange
from trinity_conformance.model.shapes import Column, Shape


def after(kind: Shape, *rows: Cells) -> Cells | None:
    """Return the row after the rows of one key, and check that it is the same in one commit and in several (L2)."""
    one, each = only(model(kind, list(rows))), only(model(kind, *([row] for row in rows)))
    assert one == each
    return one


# -- examples of the seed -------------------------------------------------------------------------------


def test_three_records_complete_each_other() -> None:
    kind = shape("k int, price double, n int, note string")
    rows = [(1, 23.0, 10, None), (1, None, None, "This is a book"), (1, 25.2, None, None)]
    assert after(kind, *rows) == (1, 25.2, 10, "This is a book")


def test_two_groups() -> None:
    kind = shape("k int, a int, b int, g_1 int, c int, d int, g_2 int", groups={"g_1": "a,b", "g_2": "c,d"})
    rows = [(1, 1, 1, 1, 1, 1, 1), (1, 2, 2, 2, 2, 2, None), (1, 3, 3, 1, 3, 3, 3)]
    assert after(kind, *rows[:2]) == (1, 2, 2, 2, 1, 1, 1)
    assert after(kind, *rows) == (1, 2, 2, 2, 3, 3, 3)


def test_a_composite_sequence() -> None:
    kind = shape(
        "k int, a int, b int, g_1 int, c int, d int, g_2 int, g_3 int", groups={"g_1": "a,b", "g_2,g_3": "c,d"}
    )
    rows = [(1, 1, 1, 1, 1, 1, 1, 1), (1, 2, 2, 2, 2, 2, 1, None), (1, 3, 3, 1, 3, 3, 3, 1)]
    assert after(kind, *rows[:2]) == (1, 2, 2, 2, 1, 1, 1, 1)
    assert after(kind, *rows) == (1, 2, 2, 2, 3, 3, 3, 1)


@pytest.mark.parametrize("function", ["first_value", "last_non_null_value"])
def test_functions_in_groups(function: str) -> None:
    """The third and the fifth example: first_value of b, and a default of last_non_null_value."""
    default = {"default_function": function} if function == "last_non_null_value" else {}
    functions = {"d": "sum"} if default else {"b": function, "d": "sum"}
    kind = shape("k int, a int, b int, c int, d int", groups={"a": "b", "c": "d"}, functions=functions, **default)
    rows = [(1, 1, 1, None, None), (1, None, None, 1, 1), (1, 2, 2, None, None), (1, None, None, 2, 2)]
    assert after(kind, *rows) == (1, 2, 1 if function == "first_value" else 2, 2, 3)


def test_a_sum_in_a_composite_group_counts_late_rows() -> None:
    kind = shape(
        "k int, a int, b int, g_1 int, c string, g_2 int, g_3 int",
        groups={"g_1,g_3": "a", "g_2": "c"},
        functions={"a": "sum"},
    )
    rows = [(1, 1, 1, 1, "1", 1, 1), (1, 2, 2, 2, "2", None, 2), (1, 3, 3, 2, "3", 3, 1)]
    assert after(kind, *rows[:2]) == (1, 3, 2, 2, "1", 1, 2)
    assert after(kind, *rows) == (1, 6, 3, 2, "3", 3, 2)


# -- what a row carries (P1) ----------------------------------------------------------------------------


def test_sequence_field_orders_rows_and_late_ones_fill_what_newer_ones_leave() -> None:  # P1
    kind = shape("k int, s int, a int, b int", watermark=("s",))
    assert after(kind, (1, 5, 1, None), (1, 4, 2, 2)) == (1, 5, 1, 2)
    falling = shape("k int, s int, a int, b int", watermark=("s",), alias=True, descending=True)
    assert after(falling, (1, 4, 1, None), (1, 5, 2, 2), (1, None, 3, 3)) == (1, 4, 1, 2)


def test_omitted_columns_are_not_carried_also_in_a_group() -> None:  # P1
    found = model(shape("k int, g int, a int, b int", groups={"g": "a,b"}), [(1, 1, 1, 1)])
    found.upsert([(1, 2, 2)], names=("k", "g", "a"))
    assert only(found) == (1, 2, 2, 1)


def test_omitted_columns_of_aggregation_are_null() -> None:  # E1
    found = model(shape("k int, a int", "aggregation", functions={"a": "last_value"}), [(1, 1)])
    found.upsert([(1,)], names=("k",))
    assert only(found) == (1, None)


def test_a_null_where_none_may_be_is_refused() -> None:  # P1
    kind = Shape((Column("k", "int", False), Column("n", "int", False)), ("k",), engine="partial-update")
    found = model(kind, [(1, None), (2, 2)])
    assert [found.refusal(v) for v in found.commits[0]] == ["NULL in n", None]


# -- groups ---------------------------------------------------------------------------------------------


PAIR = shape("k int, g int, h int, a int", groups={"g,h": "a"})


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([(1, None, None, 5)], (1, None, None, None)),  # G2, also as the only row
        ([(1, 1, 1, 5), (1, None, None, 6)], (1, 1, 1, 5)),  # G2
        ([(1, 1, 1, 5), (1, 1, None, 6)], (1, 1, 1, 5)),  # G3: (1, NULL) < (1, 1)
        ([(1, 1, 9, 5), (1, 2, None, 6)], (1, 2, None, 6)),  # G3, and all parts are set (G4)
        ([(1, None, 5, 5), (1, 1, None, 6)], (1, 1, None, 6)),  # G3: (NULL, 5) < (1, NULL)
        ([(1, 1, 1, 5), (1, 1, 1, 6)], (1, 1, 1, 6)),  # G4: ties are accepted
        ([(1, 1, 1, 5), (1, 2, 1, None)], (1, 2, 1, None)),  # G4: NULL is taken
        ([(1, 2, 1, 5), (1, 1, 9, 6)], (1, 2, 1, 5)),  # G5
    ],
)
def test_groups(rows: list[Cells], wanted: Cells) -> None:
    assert after(PAIR, *rows) == wanted


def test_groups_do_not_depend_on_each_other_nor_on_the_order_of_columns() -> None:  # G6
    rows: list[dict[str, Any]] = [
        {"k": 1, "g": 2, "a": 1, "h": 1, "b": 1, "x": 1},
        {"k": 1, "g": 1, "a": 2, "h": 2, "b": 2, "x": None},
    ]
    for names in ("k g a h b x", "b a x h g k", "x b k a g h"):
        order = names.split()
        kind = shape(", ".join(f"{n} int" for n in order), groups={"g": "a", "h": "b"})
        [row] = model(kind, [tuple(r[n] for n in order) for r in rows]).merged().values()
        assert row == {"k": 1, "g": 2, "a": 1, "h": 2, "b": 2, "x": 1}


def test_sequence_columns_are_never_aggregated() -> None:  # G7
    kind = shape("k int, g int, a int", groups={"g": "a"}, default_function="sum")
    assert after(kind, (1, 2, 1), (1, 3, 1), (1, 1, 1)) == (1, 3, 3)


def test_order_dependent_functions_see_the_order_of_the_group() -> None:  # A2
    kind = shape("k int, g int, a string", groups={"g": "a"}, functions={"a": "listagg"})
    assert after(kind, (1, 1, "a"), (1, 3, "c"), (1, 2, "b")) == (1, 3, "a,b,c")
    assert after(kind, (1, 1, "a"), (1, 1, "c"), (1, 1, "b")) == (1, 1, "a,c,b")


def test_a_retract_has_its_place_among_the_rows() -> None:  # A2, D4
    kind = shape("k int, g int, a int, kind string", groups={"g": "a"}, functions={"a": "last_value"}, row_kind="kind")
    assert after(kind, (1, 3, 3, "+I"), (1, 2, 2, "-D")) == (1, 3, 3, "+I")
    assert after(kind, (1, 3, 3, "+I"), (1, 4, 3, "-D")) == (1, 4, None, "+I")


def test_totals_are_checked_when_they_are_read_and_later_rows_repair_them() -> None:  # A4
    kind = shape("k int, t tinyint", "aggregation", functions={"t": "sum"})
    found = model(kind, [(1, 100), (1, 100)])
    assert only(found) == (1, OutOfRange(200))
    assert found.overflows() == {(1,): {"t"}}
    found.upsert([(1, -100)])
    assert only(found) == (1, 100)
    assert found.overflows() == {}


# -- retracts -------------------------------------------------------------------------------------------


def test_ignore_delete() -> None:  # D1
    kind = shape("k int, a int, kind string", row_kind="kind", ignore_delete=True)
    assert after(kind, (1, 1, "+I"), (1, 2, "-D"), (1, 3, "-U")) == (1, 1, "+I")
    assert after(kind, (1, 1, "-D")) is None


def test_a_retract_without_group_or_option_is_refused() -> None:  # D2
    found = model(shape("k int, a int, kind string", row_kind="kind"), [(1, 1, "-D"), (1, 1, "-U"), (1, 1, "+U")])
    assert [found.refusal(v) is None for v in found.commits[0]] == [False, False, True]


def test_remove_record_on_delete() -> None:  # D3
    kind = shape("k int, a int, b int, kind string", row_kind="kind", remove_on_delete=True)
    assert after(kind, (1, 1, 1, "+I"), (1, None, None, "-D")) is None
    assert after(kind, (1, 1, 1, "+I"), (1, None, None, "-U")) == (1, 1, 1, "+I")
    assert after(kind, (1, 1, 1, "+I"), (1, None, None, "-D"), (1, None, 2, "+I")) == (1, None, 2, "+I")


def test_remove_record_on_delete_has_its_place_in_sequence_field() -> None:  # D3
    kind = shape("k int, s int, a int, kind string", row_kind="kind", remove_on_delete=True, watermark=("s",))
    assert after(kind, (1, 5, 5, "-D"), (1, 4, 4, "+I")) is None
    assert after(kind, (1, 5, 5, "-D"), (1, 6, None, "+I"), (1, 4, 4, "+I")) == (1, 6, None, "+I")


RETRACTING = shape(
    "k int, g int, a int, t int, x int, kind string", groups={"g": "a,t"}, functions={"t": "sum"}, row_kind="kind"
)


@pytest.mark.parametrize("kind", ["-D", "-U"])
@pytest.mark.parametrize(
    ("sequence", "wanted"),
    [
        (3, (1, 3, None, 7, 1, "+I")),  # newer: sequence set, plain NULL, sum retracted, outside unchanged
        (2, (1, 2, None, 7, 1, "+I")),  # a tie is not smaller
        (1, (1, 2, 5, 7, 1, "+I")),  # smaller: functions only
        (None, (1, 2, 5, 10, 1, "+I")),  # out of the group: nothing
    ],
)
def test_retracts_of_a_group(kind: str, sequence: int | None, wanted: Cells) -> None:  # D4
    assert after(RETRACTING, (1, 2, 5, 10, 1, "+I"), (1, sequence, 9, 3, 9, kind)) == wanted


def test_functions_that_cannot_retract_refuse_unless_told_to_ignore() -> None:  # D4
    for options, refused in (({}, True), ({"m": {"ignore-retract": "true"}}, False)):
        kind = shape(
            "k int, g int, m int, kind string",
            groups={"g": "m"}, functions={"m": "max"}, function_options=options, row_kind="kind",
        )  # fmt: skip
        found = model(kind, [(1, 1, 5, "+I"), (1, 2, 5, "-D"), (1, None, 5, "-D")])
        assert [found.refusal(v) is not None for v in found.commits[0]] == [False, refused, False]
        if not refused:
            assert only(found) == (1, 2, 5, "+I")


def test_a_product_refuses_the_retract_of_zero() -> None:  # D4
    found = model(
        shape("k int, p int, kind string", "aggregation", functions={"p": "product"}, row_kind="kind"),
        [(1, 0, "-D"), (1, None, "-D"), (1, 2, "-D"), (1, 0, "+I")],
    )
    assert [found.refusal(v) is not None for v in found.commits[0]] == [True, False, False, False]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([(1, 2, None, None, None, None, "-D")], None),  # a tie deletes
        ([(1, 1, None, None, None, None, "-D")], FULL),  # smaller: nothing for plain columns
        ([(1, 3, None, None, None, None, "-U")], (1, 3, None, 2, 5, 1, "+I")),  # -U only retracts
        ([(1, None, None, 3, None, None, "-D")], (1, 2, 5, 3, None, 1, "+I")),  # another group: a retract of that
        ([(1, 3, None, None, None, None, "-D"), (1, 2, 7, 9, 7, 7, "+I")], None),  # below the threshold: dropped whole
        ([(1, 3, None, None, None, None, "-D"), (1, None, None, 9, 7, 7, "+I")], None),  # all NULL does not revive
        # equal or newer: from blank
        ([(1, 3, None, None, None, None, "-D"), (1, 3, 7, None, None, None, "+I")], (1, 3, 7, None, None, None, "+I")),
        # the other group's sequence is blank again
        ([(1, 3, None, None, None, None, "-D"), (1, 4, 7, 1, 7, None, "+I")], (1, 4, 7, 1, 7, None, "+I")),
        # a later retract raises the threshold, -U too; an older one does not lower it
        ([(1, 3, *4 * (None,), "-D"), (1, 5, *4 * (None,), "-U"), (1, 4, 7, *3 * (None,), "+I")], None),
        (
            [(1, 3, *4 * (None,), "-D"), (1, 1, *4 * (None,), "-D"), (1, 2, 7, *3 * (None,), "+I")],
            None,
        ),
    ],
)
def test_remove_record_on_sequence_group(rows: list[Cells], wanted: Cells | None) -> None:  # D5
    assert after(GROUPWISE, FULL, *rows) == wanted


def test_two_listed_groups() -> None:  # D5
    kind = shape(
        "k int, g int, a int, h int, b int, kind string",
        groups={"g": "a", "h": "b"}, remove_on_groups=("g", "h"), row_kind="kind",
    )  # fmt: skip
    deleted = [(1, 2, 5, 2, 5, "+I"), (1, 3, None, 3, None, "-D")]
    assert after(kind, *deleted, (1, 3, 7, 2, 7, "+I")) is None  # smaller in one of them
    assert after(kind, *deleted, (1, 3, 7, None, None, "+I")) == (1, 3, 7, None, None, "+I")
    partly = [(1, 2, 5, 2, 5, "+I"), (1, 3, None, 1, None, "-D")]  # reaches g alone
    assert after(kind, *partly, (1, 3, 7, 0, 7, "+I")) == (1, 3, 7, 0, 7, "+I")


def test_retracts_fold_from_blank_and_show_no_row_alone() -> None:  # D6
    assert after(RETRACTING, (1, 2, 5, 3, 1, "-D")) is None
    assert after(RETRACTING, (1, 2, 5, 3, 1, "-D"), (1, 1, 6, 10, 1, "+I")) == (1, 2, None, 7, 1, "+I")


# -- aggregation and first-row --------------------------------------------------------------------------


def test_every_column_of_aggregation_has_a_function() -> None:  # E1
    kind = shape("k int, t int, m int, x int", "aggregation", functions={"t": "sum", "m": "max"})
    assert after(kind, (1, 1, 5, 1), (1, 2, 4, None)) == (1, 3, 5, 1)
    other = shape("k int, t int, x int", "aggregation", functions={"t": "sum"}, default_function="last_value")
    assert after(other, (1, 1, 1), (1, 2, None)) == (1, 3, None)


def test_aggregation_sees_the_order_of_sequence_field() -> None:  # E1
    kind = shape("k int, s int, f int, x int", "aggregation", functions={"f": "first_value"}, watermark=("s",))
    assert after(kind, (1, 4, 4, 4), (1, 2, 2, None), (1, 3, 3, 3)) == (1, 4, 2, 4)


def test_retracts_of_aggregation() -> None:  # E1, D6
    kind = shape("k int, t int, x int, kind string", "aggregation", functions={"t": "sum"}, row_kind="kind")
    assert after(kind, (1, 5, 1, "+I"), (1, 2, 1, "-U"), (1, 4, 2, "+U")) == (1, 7, 2, "+U")
    assert after(kind, (1, 5, 1, "-D")) is None
    assert after(kind, (1, 5, 1, "-D"), (1, 1, 1, "+I")) == (1, -4, 1, "+I")


def test_aggregation_shows_the_sequence_of_the_last_row() -> None:  # E1
    kind = shape("k int, s int, t int, kind string", "aggregation", functions={"t": "sum"}, row_kind="kind",
                 watermark=("s",))  # fmt: skip
    assert after(kind, (1, 1, 5, "+I"), (1, 3, 2, "-D"), (1, 2, 1, "+U")) == (1, 3, 4, "+U")


def test_remove_record_on_delete_of_aggregation() -> None:  # E1, D3
    kind = shape("k int, t int, kind string", "aggregation", functions={"t": "sum"}, row_kind="kind",
                 remove_on_delete=True)  # fmt: skip
    assert after(kind, (1, 5, "+I"), (1, 1, "-U"), (1, 7, "-D")) is None
    assert after(kind, (1, 5, "+I"), (1, 7, "-D"), (1, 1, "+I")) == (1, 1, "+I")


def test_first_row() -> None:  # E2
    kind = shape("k int, a int, kind string", "first-row", row_kind="kind", ignore_delete=True)
    assert after(kind, (1, 9, "-D"), (1, None, "+U"), (1, 2, "+I"), (1, 3, "-D")) == (1, None, "+U")
    strict = model(shape("k int, kind string", "first-row", row_kind="kind"), [(1, "-D"), (1, "-U"), (1, "+U")])
    assert [strict.refusal(v) is None for v in strict.commits[0]] == [False, False, True]
