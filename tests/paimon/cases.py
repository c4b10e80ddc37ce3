"""Differences that no generated history shows: a small case for each, with what Paimon 0.9.0 reads.

Most are tables that Paimon cannot read, or rows that the model's tables refuse when they are written (L8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from trinity_conformance.model.functions import OutOfRange
from trinity_conformance.model.shapes import Column, Group, Shape
from trinity_conformance.model.sketches import sketch_bytes
from trinity_conformance.model.tables import Row
from trinity_conformance.model.values import Json
from trinity_conformance.playing.traces import History, Upsert


@dataclass(frozen=True)
class Case:
    """A case.

    Attributes:
        difference: the name of the difference that it shows.
        history: the commits.
        paimon: the rows that Paimon returns, or a part of its error.
        trinity: the rows that the rules require; None when a row must be refused.
    """

    difference: str
    history: History
    paimon: tuple[Row, ...] | str
    trinity: tuple[Row, ...] | None


def _history(columns: dict[str, str], commits: Sequence[Sequence[tuple[Json, ...]]], **options: Any) -> History:
    """Return the history of a table with the key ``k``; each commit is a list of rows."""
    shape = Shape(tuple(Column(n, t, n != "k") for n, t in columns.items()), ("k",), **options)
    return History(shape, tuple(Upsert((tuple(rows),)) for rows in commits))


_KINDS: Final = {"k": "int", "kind": "string", "a": "int"}
_PARTIAL: Final = {"engine": "partial-update", "row_kind": "kind"}
_TOTALS: Final = {"engine": "aggregation", "row_kind": "kind"}

CASES: Final = (
    Case(
        "wraps",
        _history({"k": "int", "a": "tinyint"}, [[(1, 100)], [(1, 100)]], engine="aggregation", functions={"a": "sum"}),
        ({"k": 1, "a": -56},),
        ({"k": 1, "a": OutOfRange(200)},),
    ),
    Case(
        "first-array",
        _history(
            {"k": "int", "a": "array<struct<id:int,name:string>>"},
            [[(1, ((1, "a"), (1, "b")))], [(1, None)]],
            engine="aggregation",
            functions={"a": "nested_update"},
            function_options={"a": {"nested-key": "id"}},
        ),
        ({"k": 1, "a": [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]},),
        ({"k": 1, "a": [{"id": 1, "name": "b"}]},),
    ),
    Case(
        "default-on-sequence",
        _history(
            {"k": "int", "s": "int", "t": "int", "a": "int"},
            [[(1, 2, None, 2), (1, 1, 5, 1)]],
            engine="partial-update",
            groups=(Group(("s", "t"), ("a",)),),
            default_function="last_non_null_value",
        ),
        ({"k": 1, "s": 2, "t": 5, "a": 2},),
        ({"k": 1, "s": 2, "t": None, "a": 2},),
    ),
    Case(
        "decimal-null",
        _history(
            {"k": "int", "a": "decimal(3,2)"},
            [[(1, "9.99"), (1, "0.01")]],
            engine="aggregation",
            functions={"a": "sum"},
        ),
        ({"k": 1, "a": None},),
        ({"k": 1, "a": OutOfRange(Decimal("10.00"))},),
    ),
    Case(
        "no-way-to-delete",
        _history(_KINDS, [[(1, "+I", 1)], [(1, "-D", 1)]], **_PARTIAL),
        "Partial update can not accept delete records",
        None,
    ),
    Case(
        "no-add-after-delete",
        _history(_KINDS, [[(1, "+I", 1)], [(1, "-D", 1)], [(1, "+I", 2)]], remove_on_delete=True, **_PARTIAL),
        "NullPointerException",
        ({"k": 1, "kind": "+I", "a": 2},),
    ),
    Case(
        "null-key",
        _history(
            {**_KINDS, "s": "int"}, [[(1, "-D", 1, 1), (1, "-D", 1, 2)]], groups=(Group(("s",), ("a",)),), **_PARTIAL
        ),
        "Failed to read",
        (),
    ),
    Case(
        "no-retract",
        _history(_KINDS, [[(1, "+I", 1)], [(1, "-D", 1)]], functions={"a": "max"}, **_TOTALS),
        "does not support retraction",
        None,
    ),
    Case(
        "null-retract",
        _history(
            {"k": "int", "kind": "string", "a": "array<int>"},
            [[(1, "+I", (1, 2))], [(1, "-D", None)]],
            functions={"a": "collect"},
            **_TOTALS,
        ),
        "NullPointerException",
        ({"k": 1, "kind": "+I", "a": [1, 2]},),
    ),
    Case(
        "endless-quotient",
        _history(
            {"k": "int", "kind": "string", "a": "decimal(10,2)"},
            [[(1, "+I", "1.00")], [(1, "-D", "3.00")]],
            functions={"a": "product"},
            **_TOTALS,
        ),
        "Non-terminating decimal expansion",
        ({"k": 1, "kind": "+I", "a": Decimal("0.33")},),
    ),
    Case(
        "null-elements",
        _history(
            {"k": "int", "a": "array<struct<id:int,name:string>>"},
            [[(1, (None, (1, "a")))], [(1, ((2, "b"),))]],
            engine="aggregation",
            functions={"a": "nested_update"},
        ),
        ({"k": 1, "a": [{"id": None, "name": None}, {"id": 1, "name": "a"}, {"id": 2, "name": "b"}]},),
        ({"k": 1, "a": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]},),
    ),
    Case(
        "bitmap-form",
        _history(
            {"k": "int", "a": "binary"},
            [[(1, sketch_bytes("rbm64", [1, 2]).hex())], [(1, sketch_bytes("rbm64", [2, 3]).hex())]],
            engine="aggregation",
            functions={"a": "rbm64"},
        ),
        "Unable to se/deserialize roaring bitmap",
        ({"k": 1, "a": sketch_bytes("rbm64", [1, 2, 3])},),
    ),
)  # fmt: skip
"""All cases."""
