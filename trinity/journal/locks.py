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


_SCALARS: Final = frozenset({
    "abs", "acos", "acosh", "age", "all", "any", "array_append", "array_cat", "array_length", "array_position",
    "array_prepend", "array_remove", "array_to_string", "ascii", "asin", "asinh", "atan", "atan2", "atanh",
    "bit_length", "btrim", "cardinality", "cbrt", "ceil", "ceiling", "char_length", "character_length", "chr",
    "coalesce", "concat", "concat_ws", "convert", "cos", "cosh", "cot", "current_database", "current_schema",
    "current_user", "date", "date_bin", "date_part", "date_trunc", "decode", "degrees", "div", "encode", "exp",
    "extract", "factorial", "floor", "format", "get_bit", "greatest", "initcap", "json_build_object",
    "json_extract_path", "json_extract_path_text", "json_object", "json_strip_nulls", "jsonb_build_object",
    "jsonb_exists", "justify_days", "justify_hours", "justify_interval", "least", "left", "length", "ln", "log",
    "log10", "lower", "lpad", "ltrim", "make_date", "make_interval", "make_time", "make_timestamp", "md5", "mod",
    "normalize", "now", "nullif", "octet_length", "overlay", "pi", "position", "pow", "power", "radians",
    "regexp_count", "regexp_instr", "regexp_like", "regexp_replace", "regexp_substr", "repeat", "replace",
    "reverse", "right", "round", "row", "rpad", "rtrim", "session_user", "sha256", "sha384", "sha512", "sign",
    "sin", "sinh", "split_part", "sqrt", "starts_with", "string_to_array", "strpos", "substr", "substring", "tan",
    "tanh", "timezone", "to_char", "to_date", "to_hex", "to_number", "to_timestamp", "translate", "trim", "trunc",
    "version", "width_bucket",
})  # fmt: skip
"""PostgreSQL's functions of one row whose result stays the same within a transaction."""

_OF_ROWS: Final = frozenset({
    "array_agg", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr", "count", "covar_pop",
    "covar_samp", "cume_dist", "dense_rank", "every", "first_value", "generate_series", "grouping", "json_agg",
    "json_object_agg", "jsonb_agg", "jsonb_array_elements", "jsonb_object_agg", "lag", "last_value", "lead", "max",
    "min", "mode", "nth_value", "ntile", "percent_rank", "percentile_cont", "percentile_disc", "rank", "regr_avgx",
    "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    "row_number", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "unnest", "var_pop", "var_samp",
    "variance",
})  # fmt: skip
"""PostgreSQL's aggregates, window functions, and functions that return rows, whose result stays the same, too."""


def repeatable(part: exp.Expr) -> bool:
    """Return True when an expression's functions give the same result each time within a transaction."""
    for node in part.walk():
        if isinstance(node, exp.Anonymous) and not _is_one_of(node, _SCALARS | _OF_ROWS):
            return False
        if isinstance(node, (exp.TableSample, exp.DML)):
            return False
    return True


def is_of_one_row(part: exp.Expr) -> bool:
    """Return True when an expression has a value for each row: it calls no aggregate, and nothing unknown."""
    calls = part.find_all(exp.Anonymous)
    return part.find(exp.AggFunc, exp.Window) is None and all(_is_one_of(call, _SCALARS) for call in calls)


def _is_one_of(call: exp.Anonymous, names: frozenset[str]) -> bool:
    """Return True for a call of one of PostgreSQL's own functions; one in a schema may be somebody's own."""
    schema = call.parent.this.name if isinstance(call.parent, exp.Dot) else "pg_catalog"
    return str(schema) == "pg_catalog" and str(call.name).lower() in names
