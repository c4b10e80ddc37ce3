"""The keys that a predicate lists: all that the rows for which it is true may have."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from trinity.merge.arrow.keys import compared_alike
from trinity.spi import TableDefinition
from trinity.syntax.comparisons import Comparison
from trinity.syntax.literals import literal_value
from trinity.syntax.spark_tree import conjuncts

__all__ = ["listed_keys"]

_MOST: Final = 10_000
"""Keys that are worth a look: more are all over a table."""


def listed_keys(definition: TableDefinition, tree: exp.Expr, timezone: Callable[[], str]) -> pa.Table | None:
    """Return the keys that a predicate lists by comparing every key column with literals, by AND-ed ``=`` or IN.

    Args:
        definition: a keyed table.
        tree: the predicate over bare column names.
        timezone: see :func:`~trinity.syntax.literals.literal_value`.

    Returns:
        the key columns in their logical types; None where it lists none, too many, or where it is not certain what
        Spark compares.
    """
    key = definition.primary_key
    if not compared_alike(definition, key):
        return None
    listed = dict[str, list[Any]]()
    for part in conjuncts(tree):
        found = Comparison.of(part)
        if found is None or found.negated or found.operator not in (exp.EQ, exp.In):
            continue
        if found.column.name.lower() in (k.lower() for k in key):
            column = definition.column(found.column.name)
            listed.setdefault(column.name, [literal_value(v, column.type, timezone) for v in found.values])
    if set(listed) != set(key) or any(None in values for values in listed.values()):
        return None
    every = list(itertools.islice(itertools.product(*(listed[k] for k in key)), _MOST + 1))
    schema = pa.schema([definition.column(k).to_arrow() for k in key])
    try:
        return pa.table(list(zip(*every, strict=True)), schema) if len(every) <= _MOST else None
    except (pa.ArrowException, OverflowError):  # a value that no key has, as 2 ** 70 for a BIGINT
        return None
