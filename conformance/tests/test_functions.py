"""Every aggregate function of the model, by hand (A3). No Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from trinity_conformance.generate.engine_profiles import FUNCTION_TYPES
from trinity_conformance.model.engine_fold import FUNCTIONS
from trinity_conformance.model.functions import OutOfRange
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.sketches import SKETCH_FORMS, SKETCH_FUNCTIONS, sketch_bytes

ROWS = "array<struct<id:int,x:string,s:int>>"
TIMED = "map<string,struct<x:int,ts:string>>"


def folded(name: str, kind: str, *rows: Any, **options: str) -> Any:
    """Return the value of a column after some rows; a retract is a tuple of ``-`` and a value."""
    function = FUNCTIONS[name](kind, {o.replace("_", "-"): v for o, v in options.items()})
    acc: Any = None
    for row in rows:
        retract = isinstance(row, tuple)
        acc = function.retract(acc, row[1]) if retract else function.add(acc, row)
    return function.result(acc)


def minus(value: Any) -> tuple[str, Any]:
    return "-", value


def at(number: int | None, text: str | None = None, order: int | None = None) -> Mapping[str, Any]:
    """Return a nested row."""
    return {"id": number, "x": text, "s": order}


@pytest.mark.parametrize(
    ("name", "kind", "rows", "wanted"),
    [
        ("sum", "int", [1, None, 2], 3),
        ("sum", "int", [None], None),
        ("sum", "int", [minus(3)], -3),
        ("sum", "int", [5, minus(None), minus(2)], 3),
        ("sum", "tinyint", [127, 1], OutOfRange(128)),
        ("sum", "tinyint", [127, 1, -1], 127),
        ("sum", "bigint", [2**63 - 1, 2**63 - 1, minus(2**63 - 1)], 2**63 - 1),
        ("sum", "decimal(3,2)", [Decimal("9.99"), Decimal("0.01")], OutOfRange(Decimal("10.00"))),
        ("sum", "double", [0.5, 0.25], 0.75),
        ("sum", "float", [3e38, 3e38], math.inf),
        ("product", "int", [2, None, 3], 6),
        ("product", "int", [7, minus(2)], 3),
        ("product", "int", [-7, minus(2)], -3),
        ("product", "int", [minus(2), 7], 7),
        ("product", "decimal(10,2)", [Decimal("1.50"), Decimal("1.50"), Decimal("1.50")], Decimal("3.38")),
        ("product", "decimal(10,2)", [Decimal("1.00"), minus(Decimal("3.00"))], Decimal("0.33")),
        ("product", "double", [3.0, minus(2.0)], 1.5),
        ("max", "int", [None, 1, 3, None, 2], 3),
        ("max", "double", [math.inf, math.nan, 1.0], math.nan),
        ("max", "string", ["b", "ä", "a"], "ä"),
        ("min", "double", [math.nan, 1.0], 1.0),
        ("min", "binary", [b"\x80", b"\x7f"], b"\x7f"),
        ("bool_and", "boolean", [None, True, None], True),
        ("bool_and", "boolean", [True, False], False),
        ("bool_or", "boolean", [False, None, True], True),
        ("bool_or", "boolean", [None], None),
        ("last_value", "int", [1, None], None),
        ("last_value", "int", [1, minus(7)], None),
        ("last_non_null_value", "int", [1, None], 1),
        ("last_non_null_value", "int", [1, minus(7)], None),
        ("last_non_null_value", "int", [1, minus(None)], 1),
        ("first_value", "int", [None, 1], None),
        ("first_value", "int", [2, 1], 2),
        ("first_value", "int", [], None),
        ("first_non_null_value", "int", [None, 1, 2], 1),
        ("first_not_null_value", "int", [None, 1, 2], 1),
        ("listagg", "string", ["a", None, "", " ", "b", "a"], "a,b,a"),
        ("listagg", "string", [None, " "], None),
        ("collect", "array<int>", [[1, 2], None, [2, None]], [1, 2, 2, None]),
        ("collect", "array<int>", [[1, 2, 1, 2], minus([2, 1, 1, 9])], [2]),
        ("collect", "array<int>", [minus([1])], None),
        ("collect", "array<int>", [[1], minus([1])], []),
        ("merge_map", "map<string,int>", [[("a", 1), ("b", 2)], None, [("a", 3)]], [("a", 3), ("b", 2)]),
        ("merge_map", "map<string,int>", [[("a", 1), ("b", 2)], minus([("a", 9), ("c", 1)])], [("b", 2)]),
        ("merge_map", "map<string,int>", [minus([("a", 1)])], None),
        ("merge_map", "map<string,int>", [[("a", 1)], [("a", None)]], [("a", None)]),
        ("nested_update", ROWS, [[at(1), None], [at(1)]], [at(1), at(1)]),
        ("nested_update", ROWS, [[at(1), at(2), at(1)], minus([at(1)])], [at(2)]),
        ("nested_update", ROWS, [minus([at(1)])], None),
    ],
)  # fmt: skip
def test_functions(name: str, kind: str, rows: list[Any], wanted: Any) -> None:
    found = folded(name, kind, *rows)
    assert found == wanted or (isinstance(found, float) and math.isnan(found) and math.isnan(wanted))


def test_listagg_options() -> None:
    assert folded("listagg", "string", "a", "b", list_agg_delimiter="; ") == "a; b"
    assert folded("listagg", "string", "a,b,a", "b,, ,c", distinct="true") == "a,b,c"
    assert folded("listagg", "string", "a;b", "b;c", distinct="true", list_agg_delimiter=";") == "a;b;c"


def test_collect_distinct_keeps_the_first_of_equal_elements() -> None:
    found = folded("collect", "array<double>", [0.5, math.nan, None], [math.nan, None, 1.0], distinct="true")
    assert found[0::2] == [0.5, None]
    assert len(found) == 4


def test_keytime_compares_times_as_text() -> None:
    def entry(key: str, x: int, time: Any) -> tuple[str, Any]:
        return key, {"x": x, "ts": time}

    def fold(*rows: Any) -> dict[str, Any]:
        return {key: value["x"] for key, value in folded("merge_map_with_keytime", TIMED, *rows)}

    assert fold([entry("a", 1, "10")], [entry("a", 2, "9")]) == {"a": 2}
    assert fold([entry("a", 1, "9")], [entry("a", 2, "9")]) == {"a": 1}
    assert fold([entry("a", 1, "9")], [entry("a", 2, None)], None) == {"a": 1}
    assert fold([entry("a", 1, "9"), entry("b", 1, "9")], [("a", None)]) == {"b": 1}
    assert fold([entry("a", 1, "9")], [("a", None)], [entry("a", 3, "1")]) == {"a": 3}


def test_keytime_takes_its_time_from_a_field() -> None:
    kind = "map<string,struct<ts:int,x:int>>"
    rows = [[("a", {"ts": 9, "x": 1})], [("a", {"ts": 10, "x": 2})]]
    assert dict(folded("merge_map_with_keytime", kind, *rows, ts_field="ts"))["a"]["x"] == 1
    assert dict(folded("merge_map_with_keytime", kind, *rows))["a"]["x"] == 2


def test_nested_update_by_key() -> None:
    assert folded("nested_update", ROWS, [at(1, "a"), at(2)], [at(1, "b")], nested_key="id") == [at(1, "b"), at(2)]
    assert folded("nested_update", ROWS, [at(1, "a"), at(2)], minus([at(1, "z")]), nested_key="id") == [at(2)]
    assert folded("nested_update", ROWS, [at(1, "a")], [at(1, "b")], nested_key="id,x") == [at(1, "a"), at(1, "b")]


def test_nested_update_by_sequence() -> None:
    def fold(*orders: int | None) -> Any:
        rows = [[at(1, str(n), order)] for n, order in enumerate(orders)]
        return folded("nested_update", ROWS, *rows, nested_key="id", nested_sequence_field="s")[0]["x"]

    assert (fold(2, 1), fold(1, 2), fold(2, 2), fold(1, None), fold(None, 1)) == ("0", "1", "1", "0", "1")


def test_nested_update_within_a_limit() -> None:
    assert folded("nested_update", ROWS, [at(1)], [at(2), at(3)], count_limit="2") == [at(1), at(2)]
    options = {"count_limit": "2", "nested_key": "id"}
    assert folded("nested_update", ROWS, [at(1), at(2)], [at(3), at(1, "b")], **options) == [at(1, "b"), at(2)]
    assert folded("nested_update", ROWS, [at(1), at(2)], minus([at(1)]), [at(3)], **options) == [at(2), at(3)]


@pytest.mark.parametrize("name", ["nested_update", "nested_partial_update"])
def test_nested_keys_that_are_null(name: str) -> None:
    rows = [[at(None, "a"), at(1)], [at(None, "b")]]
    assert folded(name, ROWS, *rows, nested_key="id") == [at(None, "b"), at(1)]
    assert folded(name, ROWS, *rows, nested_key="id", nested_key_null_strategy="ignore") == [at(1)]


def test_nested_partial_update_keeps_fields_that_are_not_given() -> None:
    rows = [[at(1, "a", None)], [at(1, None, 5), None, at(2)]]
    assert folded("nested_partial_update", ROWS, *rows, nested_key="id") == [at(1, "a", 5), at(2)]


@pytest.mark.parametrize("name", sorted(SKETCH_FUNCTIONS))
def test_sketches_and_bitmaps_are_united(name: str) -> None:
    one, other = sketch_bytes(name, [1, 2, 3]), sketch_bytes(name, [3, 4])
    wanted = SKETCH_FORMS[name](sketch_bytes(name, [1, 2, 3, 4]))
    assert SKETCH_FORMS[name](folded(name, "binary", None, one, other, None)) == wanted
    assert SKETCH_FORMS[name](folded(name, "binary", other, one, one)) == wanted
    assert wanted in (4.0, frozenset({1, 2, 3, 4}))
    assert folded(name, "binary", None) is None


def test_bitmaps_have_the_bytes_of_the_format_specification() -> None:
    """RoaringFormatSpec: the cookie 12346, containers, keys, cardinalities less one, offsets, values."""
    small = "3a300000 01000000 0000 0100 10000000 0100 0200"
    assert sketch_bytes("rbm32", [1, 2]) == bytes.fromhex(small)
    assert sketch_bytes("rbm64", [1, 2]) == bytes.fromhex("0100000000000000 00000000" + small)


def test_functions_that_can_retract_say_so() -> None:
    able = {n for n in FUNCTIONS if FUNCTIONS[n](FUNCTION_TYPES[n][0], {}).retracts}
    assert able == {
        "sum", "product", "last_value", "last_non_null_value", "collect", "merge_map", "nested_update",
    }  # fmt: skip
    with pytest.raises(TypeError, match="Max does not retract"):
        folded("max", "int", 1, minus(1))


def test_the_engines_give_columns_their_functions() -> None:
    """A1, E1: the column's function, else the default, else last_non_null_value; none for keys and ordering."""
    columns = tuple(Column(n, "int") for n in ["k", "s", "a", "b", "kind"])
    kind = Shape(columns, ("k",), watermark=("s",), row_kind="kind", engine="aggregation", functions={"a": "sum"})
    assert [kind.function_of(c.name) for c in columns] == [None, None, "sum", "last_non_null_value", None]
