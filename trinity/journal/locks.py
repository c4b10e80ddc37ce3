"""Locks of the keys that a statement is about to write: a query finds the keys before the statement runs.

A key is locked by a 64-bit hash that PostgreSQL computes from its value and the journal's oid. Equal keys have equal
hashes, even if their texts differ. Once the locks are held, the statement runs in its own snapshot. It skips rows whose
key is not locked: they began to match after the statement began, as under READ COMMITTED.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from trinity.journal import tree_parts as trees
from trinity.journal.binding import locked_keys
from trinity.journal.tables import JournalTable

MAX_KEYS: Final = 1000
"""A statement that writes more keys than this locks the whole table instead."""


@dataclass(frozen=True)
class Lock:
    """The keys that have to be locked before a statement runs.

    Attributes:
        keys: a query for the hashes of the keys, at most one more than :data:`MAX_KEYS`; None: the whole table.
    """

    table: JournalTable
    keys: exp.Select | None = None


def lock_of(table: JournalTable, source: exp.Select, key: Sequence[exp.Expr], read: Iterable[exp.Expr | None]) -> Lock:
    """Return a lock of the keys that a query finds; or of the table, when a second run could find other keys.

    ``read`` are all parts of the statement that decide which keys are found. The query's projections are replaced.
    """
    if not all(repeatable(part) for part in read if part is not None):
        return Lock(table)
    found = source.copy()
    found.set("expressions", [exp.alias_(key_hash(table, key), "hash")])
    found.set("distinct", None)
    return Lock(table, found.limit(MAX_KEYS + 1, copy=False))


def key_hash(table: JournalTable, key: Sequence[exp.Expr]) -> exp.Expr:
    """Return the 64-bit hash by which a key is locked."""
    values = [trees.cast(e.copy(), table.column(k).declared) for k, e in zip(table.key, key, strict=True)]
    name = trees.journal(table).sql(dialect="postgres")
    oid = trees.cast(trees.cast(exp.Literal.string(name), "regclass"), "bigint")
    return exp.Anonymous(this="hash_record_extended", expressions=[trees.row(values), oid])


def is_locked(table: JournalTable, key: Sequence[exp.Expr]) -> exp.Expr:
    """Return a condition that is true when a key is locked."""
    among = exp.EQ(this=key_hash(table, key), expression=exp.Any(this=exp.Paren(this=locked_keys())))
    return exp.paren(exp.or_(exp.Is(this=locked_keys(), expression=exp.Null()), among, copy=False), copy=False)


_SAFE: Final = frozenset({
    "abs", "ceil", "floor", "round", "trunc", "mod", "power", "sqrt", "lower", "upper", "trim", "btrim", "ltrim",
    "rtrim", "left", "right", "length", "char_length", "substr", "substring", "replace", "concat", "concat_ws",
    "lpad", "rpad", "position", "strpos", "split_part", "initcap", "reverse", "repeat", "md5", "coalesce",
    "nullif", "greatest", "least", "row", "now", "to_char", "to_date", "to_timestamp", "to_number", "date_trunc",
    "date_part", "extract", "age", "array_length", "cardinality", "unnest", "generate_series",
    "jsonb_build_object", "jsonb_array_elements", "json_build_object", "jsonb_exists", "array_position", "any",
    "all",
})  # fmt: skip
"""PostgreSQL's functions without a class in sqlglot whose result stays the same within a transaction."""


def repeatable(part: exp.Expr) -> bool:
    """Return True when an expression's functions give the same result each time within a transaction."""
    for node in part.walk():
        if isinstance(node, exp.Anonymous) and str(node.name).lower() not in _SAFE:
            return False
        if isinstance(node, (exp.Rand, exp.Randn, exp.Uuid, exp.TableSample, exp.DML)):
            return False
    return True
