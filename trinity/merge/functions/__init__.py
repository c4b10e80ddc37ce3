"""Aggregate functions (A3): their interface, Paimon's by name, and those that other packages add."""

from trinity.merge.arrow.rows import ColumnRows, Folded
from trinity.merge.functions.base import AggregateFunction, Field, FieldFunction, ListFunction, aggregated
from trinity.merge.functions.registry import aggregate_function, folded_value_stands, function_names

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
