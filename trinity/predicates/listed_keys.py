"""Keys listed by a predicate, which is false for rows of all others; and a predicate built from keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.predicates.comparisons import Comparison, ValueSet, conjuncts
from trinity.spi import TableDefinition, parse_type

_ROUNDED: Final = frozenset({"float", "double"})
"""Types that cannot hold every literal: Spark compares 0.1 with a FLOAT as DOUBLE."""
_MOST: Final = 10_000
"""Most keys worth listing: more are spread over all files of a table."""


def listed_keys(definition: TableDefinition, tree: exp.Expr, timezone: Callable[[], str]) -> pa.Table | None:
    """Return the keys that a predicate lists by comparing every key column with literals, by AND-ed ``=`` or IN.

    Returns:
        the key columns in their logical types; None where it lists none, too many, or where it is not certain what
        Spark compares.
    """
    key = definition.primary_key
    if {parse_type(definition.column(name).type).name for name in key} & _ROUNDED:
        return None
    listed, lower = dict[str, Sequence[Any]](), {k.lower() for k in key}
    for part in conjuncts(tree):
        found = Comparison.of(part)
        if found is None or found.column.table or found.column.name.lower() not in lower:
            continue
        column = definition.column(found.column.name)
        values = ValueSet.of(found, column.type, timezone)
        if values is not None and values.listed is not None:
            listed.setdefault(column.name, values.listed)
    if set(listed) != set(key):
        return None
    every = list(itertools.islice(itertools.product(*(listed[k] for k in key)), _MOST + 1))
    schema = pa.schema([definition.column(k).to_arrow() for k in key])
    try:
        return pa.table(list(zip(*every, strict=True)), schema) if len(every) <= _MOST else None
    except (pa.ArrowException, OverflowError):  # a value that no key has, as 2 ** 70 for a BIGINT
        return None


def listing(definition: TableDefinition, keys: pa.Table) -> exp.Expr | None:
    """Return the predicate that lists a few keys: each key column has one of their values; whole numbers of any width.

    Returns:
        None for too many keys, and for types whose literals are not written here.
    """
    if not 0 < len(keys) <= _MOST_WRITTEN:
        return None
    parts = []
    for name in definition.primary_key:
        kind, values = parse_type(definition.column(name).type).name, pc.unique(keys.column(name)).to_pylist()
        if kind not in _WRITTEN or None in values:
            return None
        parts.append(exp.In(this=exp.column(name, quoted=True), expressions=[exp.convert(value) for value in values]))
    return exp.and_(*parts)


_MOST_WRITTEN: Final = 256
_WRITTEN: Final = frozenset({"tinyint", "smallint", "int", "bigint", "string"})
