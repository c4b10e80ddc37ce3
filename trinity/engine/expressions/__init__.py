"""Expressions of Spark SQL, evaluated over Arrow data in this process.

What is evaluated here has the values that Spark gives it, bit by bit; everything else is a
:class:`~trinity.engine.executes.NotLocal` that names the part which only Spark evaluates.
"""

from trinity.engine.expressions.coercion import common_type, together, widened
from trinity.engine.expressions.compile import compile_expression, compile_predicate, local_tree
from trinity.engine.expressions.functions import MEAN
from trinity.engine.expressions.node import (
    BOOLEAN,
    DOUBLE,
    ONE_ROW,
    STRING,
    VOID,
    Compiled,
    Refused,
    Scope,
    ScopeColumn,
    SubqueryRows,
    or_refuse,
    refusals_as_values,
)

__all__ = [
    "BOOLEAN", "DOUBLE", "MEAN", "ONE_ROW", "STRING", "VOID",
    "Compiled", "SubqueryRows", "Refused", "Scope", "ScopeColumn",
    "common_type", "compile_expression", "compile_predicate", "local_tree", "or_refuse", "refusals_as_values",
    "together", "widened",
]  # fmt: skip
