"""Aggregate functions (A3): their interface, Paimon's functions by name, and those that other packages add."""

from functools import lru_cache
from importlib.metadata import entry_points
from typing import Final

from trinity.merge.functions.base import GROUP, AggregateFunction, Field, FieldFunction, ListFunction, aggregated
from trinity.merge.functions.entries import MergeMap, MergeMapWithKeytime, NestedPartialUpdate, NestedUpdate
from trinity.merge.functions.lists import Collect, ListAgg
from trinity.merge.functions.numbers import Product, Sum
from trinity.merge.functions.sketches import HllSketch, RoaringBitmap32, RoaringBitmap64, ThetaSketch
from trinity.merge.functions.values import (
    BoolAnd,
    BoolOr,
    FirstNonNullValue,
    FirstValue,
    LastNonNullValue,
    LastValue,
    Max,
    Min,
)
from trinity.merge.kernels.rows import ColumnRows, Folded

__all__ = [
    "AggregateFunction",
    "ColumnRows",
    "Field",
    "FieldFunction",
    "Folded",
    "ListFunction",
    "aggregate_function",
    "aggregated",
    "folded_value_stands",
    "function_names",
]


_OWN: Final[dict[str, AggregateFunction]] = {
    kind.name: kind()
    for kind in (
        Sum, Product, Max, Min, LastValue, LastNonNullValue, FirstValue, FirstNonNullValue, ListAgg, BoolAnd, BoolOr,
        Collect, MergeMap, MergeMapWithKeytime, NestedUpdate, NestedPartialUpdate, HllSketch, ThetaSketch,
        RoaringBitmap32, RoaringBitmap64,
    )
}  # fmt: skip
_ALIASES: Final = {"first_not_null_value": "first_non_null_value"}


def aggregate_function(name: str) -> AggregateFunction | None:
    """Return the function of a name, in any case; None for an unknown name."""
    name = name.strip().lower()
    return _OWN.get(_ALIASES.get(name, name)) or others().get(name)


def folded_value_stands(function: FieldFunction) -> bool:
    """Return True when late rows can be merged into the folded value of a column (E3)."""
    found = aggregate_function(function.name)
    return found is not None and found.stands


def function_names() -> tuple[str, ...]:
    """Return the names of all functions, sorted."""
    return tuple(sorted({*_OWN, *_ALIASES, *others()}))


@lru_cache(maxsize=1)
def others() -> dict[str, AggregateFunction]:
    """Return the functions of other packages, which are looked up once in a process."""
    return {point.name.lower(): point.load()() for point in entry_points(group=GROUP)}
