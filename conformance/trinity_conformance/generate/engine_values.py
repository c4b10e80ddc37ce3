"""Values and options of columns with aggregate functions: pools so small that rows collide, with the traps of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st

from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.sketches import SKETCH_FUNCTIONS, sketch_bytes
from trinity_conformance.model.values import POOLS, Json

_ORDERING: Final[Mapping[str, tuple[Json, ...]]] = {
    "int": (1, 2, 3),
    "bigint": (1, 2, 3, 2**53 + 1),
    "double": ("1.5", "-2.25", "NaN"),
    "decimal(10,2)": ("1.50", "2.00", "10.00"),
    "string": ("9", "10", "a"),
    "boolean": (False, True),
    "date": ("1969-12-31", "2024-02-29"),
    "timestamp": ("1970-01-01T00:00:00", "2024-03-31T01:30:00", "2024-03-31T01:30:00.000001"),
}
"""Values of sequence columns: so few that ties are the rule."""

_WHOLE: Final[tuple[Json, ...]] = (0, 1, -1, 2, 5)
_TOTALS: Final[Mapping[str, tuple[Json, ...]]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _WHOLE),
    "decimal(10,2)": ("0.00", "0.01", "-1.50", "99.99", "2.00"),
    "float": ("0.0", "1.5", "-2.25", "8.0"),
    "double": ("0.1", "1.5", "-2.25", "0.3"),
}
WIDE_TOTALS: Final[Mapping[str, tuple[Json, ...]]] = {
    "tinyint": (100, -100, 1),
    "smallint": (30000, -30000, 1),
    "int": (2**31 - 1, -(2**31), 1),
    "bigint": (2**63 - 1, -(2**63), 1),
    "decimal(10,2)": ("99999999.99", "-99999999.99", "0.01"),
}
"""Sums that leave the range of their column, and come back (A4)."""
_FACTORS: Final[Mapping[str, tuple[Json, ...]]] = {
    **dict.fromkeys(("int", "bigint"), (1, -1, 2, 3, -2)),
    "decimal(10,2)": ("1.00", "1.50", "-0.50", "0.33", "2.00"),
    "double": ("1.5", "-2.0", "0.5", "1.0"),
}
_TEXTS: Final[tuple[Json, ...]] = ("a", "b", "a,b", "", " ", "b,,c", "x;y", "ä")
_ARRAYS: Final[Mapping[str, tuple[Json, ...]]] = {
    "array<int>": ((1, 2), (2, 2, 3), (), (3, None), (1,)),
    "array<string>": (("a", "b"), ("b",), (), ("a", "a"), (None, "c")),
}
_MAPS: Final[tuple[Json, ...]] = (
    (("a", 1), ("b", 2)),
    (("b", 3),),
    (),
    (("c", None), ("a", 4)),
    (("a", None),),
)
_TIMED: Final[tuple[Json, ...]] = (
    (("a", (1, "9")), ("b", (2, "10"))),
    (("a", (3, "10")),),
    (("b", None),),
    (("c", (4, None)), ("a", (5, "9"))),
    (),
    (("b", (6, "9")), ("c", (7, "2"))),
)
_TIMED_FIRST: Final[tuple[Json, ...]] = (
    (("a", (9, 1)), ("b", (10, 2))),
    (("a", (10, 3)),),
    (("b", None),),
    (("c", (None, 4)), ("a", (9, 5))),
    (("b", (9, 6)),),
)
_NESTED: Final[tuple[Json, ...]] = (
    ((1, "a", 1), (2, "b", 1)),
    ((1, "c", 2),),
    ((3, "d", None), (1, None, 1)),
    ((None, "e", 1),),
    (None, (2, "f", 3)),
    (),
    ((1, "a", 1),),
)
_SETS: Final = ((1, 2, 3), (3, 4), (), (1,), (70000, 5))


def pool_of(shape: Shape, name: str, wide: bool = False) -> tuple[Json, ...]:
    """Return the values of a column outside the key, without NULL.

    Args:
        shape: the table.
        name: the column.
        wide: True for numbers whose sums leave the range of their column.
    """
    function, kind = shape.function_of(name), shape.type_of(name)
    if name in shape.watermark or any(name in g.sequence for g in shape.groups):
        return _ORDERING[kind]
    if function == "sum":
        return (WIDE_TOTALS if wide else _TOTALS)[kind]
    if function == "product":
        return _FACTORS[kind]
    if function is not None and function in SKETCH_FUNCTIONS:
        return tuple(sketch_bytes(function, members).hex() for members in _SETS)
    return _TEXTS if function == "listagg" else _nested_pool(kind) or POOLS[kind]


def _nested_pool(kind: str) -> tuple[Json, ...]:
    if kind.startswith("array<struct"):
        return _NESTED
    if kind.startswith("map<string,struct"):
        return _TIMED if kind.endswith("string>>") else _TIMED_FIRST
    return _MAPS if kind.startswith("map") else _ARRAYS.get(kind, ())


@st.composite
def function_options(draw: st.DrawFn, function: str, kind: str) -> dict[str, str]:
    """Draw options of a function on a column of a type, by their last part."""
    if function in ("listagg", "collect"):
        found = {"distinct": "true"} if draw(st.booleans()) else {}
        return found | ({"list-agg-delimiter": ";"} if function == "listagg" and draw(st.booleans()) else {})
    if function == "merge_map_with_keytime" and not kind.endswith("string>>"):
        return {"ts-field": "ts"}
    if function in ("nested_update", "nested_partial_update"):
        return draw(_nested_options(function))
    return {}


@st.composite
def _nested_options(draw: st.DrawFn, function: str) -> dict[str, str]:
    keys = ("id", "id", "id,name") if function == "nested_partial_update" else (None, "id", "id", "id,name")
    key, found = draw(st.sampled_from(keys)), dict[str, str]()
    if key is not None:
        found["nested-key"] = key
        strategy = draw(st.sampled_from((None, "merge", "ignore")))
        found |= {"nested-key-null-strategy": strategy} if strategy else {}
    if function == "nested_update":
        found |= {"nested-sequence-field": "seq"} if key and draw(st.booleans()) else {}
        found |= {"count-limit": "2"} if draw(st.integers(0, 2)) == 0 else {}
    return found
