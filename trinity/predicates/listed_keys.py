"""Keys that a predicate lists, so that it is false for rows of all other keys; and a predicate that lists keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.predicates.comparisons import Comparison, ValueSet, conjuncts
from trinity.spi import TableDefinition, parse_type

_MOST: Final = 10_000
"""The most keys that are listed: more keys would be spread over all files of a table anyway."""


def listed_keys(definition: TableDefinition, tree: exp.Expr, timezone: Callable[[], str]) -> pa.Table | None:
    """Return the keys that a predicate lists by comparing every key column with literals, by AND-ed ``=`` or IN.

    Returns:
        the key columns in their logical types; None if the predicate lists no keys or too many, or if it is not certain
        how Spark compares the literals.
    """
    key = definition.primary_key
    # Spark compares 0.1 with a FLOAT as DOUBLE
    if any(parse_type(definition.column(name).type).is_floating for name in key):
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
    """Return a predicate that is true for the rows of a few keys: each key column has one of the keys' values.

    Returns:
        None for no keys, for too many, and for other types than integers and strings.
    """
    if not 0 < len(keys) <= _MOST_WRITTEN:
        return None
    parts = []
    for name in definition.primary_key:
        kind, values = parse_type(definition.column(name).type), pc.unique(keys.column(name)).to_pylist()
        if not (kind.is_integer or kind.name == "string") or None in values:
            return None
        parts.append(exp.In(this=exp.column(name, quoted=True), expressions=[exp.convert(value) for value in values]))
    return exp.and_(*parts)


_MOST_WRITTEN: Final = 256
