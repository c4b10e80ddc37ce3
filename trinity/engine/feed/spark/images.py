"""Rows before and after a change: pairs of images, and the rows of the feed made of them.

An image is a STRUCT of the columns of the feed, NULL where there is no row. The feed has the columns of its last
version: a column that an older version lacks is NULL, and one that was dropped since is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

from trinity.engine.feed.shape import CHANGE_TYPE, VERSION, FeedMode
from trinity.engine.feed.spark.within import value_by_id
from trinity.spark.types import spark_type
from trinity.spark_names import DataFrame, F
from trinity.spi import Column, DataType, TableDefinition, parse_type
from trinity.syntax.quoting import quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Mapping

BEFORE: Final = "_trinity_before"
"""Image of a row as it was."""
AFTER: Final = "_trinity_after"
"""Image of a row as it became."""


def image(columns: Sequence[Column], of: TableDefinition) -> str:
    """Return Spark SQL for the image, in the columns of the feed, of a row that has the columns of a definition."""
    fields = zip(columns, _values(columns, of.visible), strict=True)
    return f"named_struct({', '.join(f'{text_literal(column.name)}, {value}' for column, value in fields)})"


def feed_rows(rows: DataFrame, columns: Sequence[Column], old: Sequence[Column]) -> DataFrame:
    """Convert rows with the ``old`` columns of another version to the columns of the feed."""
    shown = zip(columns, _values(columns, old), strict=True)
    return rows.selectExpr(*(f"{value} AS {quoted(column.name)}" for column, value in shown), CHANGE_TYPE, VERSION)


def _values(columns: Sequence[Column], old: Sequence[Column]) -> list[str]:
    """Return Spark SQL for each column of the feed, over rows with the ``old`` columns of another version."""
    known: Mapping[object, Column] = {c.identity: c for c in old}
    return [_value(column, known.get(column.identity)) for column in columns]


def _value(column: Column, old: Column | None) -> str:
    kind = spark_type(column.type)
    if old is None:
        return f"CAST(NULL AS {kind})"
    if column.within and old.within and (column.within, column.type) != (old.within, old.type):
        return value_by_id(column, old)
    return quoted(old.name) if spark_type(old.type) == kind else f"CAST({quoted(old.name)} AS {kind})"


def differ(columns: Sequence[Column]) -> str:
    """Return Spark SQL that is true where the images of a pair differ (C1). Two absent rows do not differ."""
    before, after = (f"IF({side} IS NULL, NULL, {comparable_image(columns, side)})" for side in (BEFORE, AFTER))
    return f"NOT ({before} <=> {after})"


def comparable_image(columns: Sequence[Column], of: str) -> str:
    """Return Spark SQL for a value by which images are compared: maps, which Spark cannot compare, become arrays."""
    return f"struct({', '.join(_comparable(parse_type(c.type), f'{of}.{quoted(c.name)}') for c in columns)})"


def _comparable(kind: DataType, value: str) -> str:
    if not _has_map(kind):
        return value
    if kind.name == "array":
        return f"transform({value}, e -> {_comparable(kind.children[0], 'e')})"
    if kind.name == "map":
        entry = f"struct({_comparable(kind.children[0], 'e.key')}, {_comparable(kind.children[1], 'e.value')})"
        return f"array_sort(transform(map_entries({value}), e -> {entry}))"
    fields = (
        _comparable(child, f"{value}.{quoted(name)}") for name, child in zip(kind.fields, kind.children, strict=True)
    )
    return f"IF({value} IS NULL, NULL, struct({', '.join(fields)}))"


def _has_map(kind: DataType) -> bool:
    return kind.name == "map" or any(map(_has_map, kind.children))


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return all rows of one or more DataFrames, by the names of their columns."""
    return reduce(DataFrame.unionByName, frames)


def net_pairs(pairs: DataFrame, columns: Sequence[Column], key: Sequence[str]) -> DataFrame:
    """Return one pair for each key: its row before the first change and after the last, unless these are equal."""
    names = _key_names(key)
    by = [f"coalesce({AFTER}, {BEFORE}).{quoted(k)} AS {name}" for k, name in zip(key, names, strict=True)]
    found = (
        pairs.selectExpr("*", *by)
        .groupBy(*names)
        .agg(
            F.expr(f"max({VERSION}) AS {VERSION}"),
            F.expr(f"min_by({BEFORE}, {VERSION}) AS {BEFORE}"),
            F.expr(f"max_by({AFTER}, {VERSION}) AS {AFTER}"),
        )
    )
    return found.where(differ(columns)).drop(*names)


def _key_names(key: Sequence[str]) -> list[str]:
    """Return names, which no column of a table has, for copies of key columns."""
    return [f"_trinity_key_{number}" for number in range(len(key))]


def changed_rows(pairs: DataFrame, columns: Sequence[Column], mode: FeedMode) -> DataFrame:
    """Return the rows of the feed: its columns, :data:`CHANGE_TYPE` and :data:`VERSION`.

    The pairs have :data:`VERSION`, :data:`BEFORE` and :data:`AFTER`, which differ.
    """
    before = _change("update_preimage" if mode.updates else "delete", BEFORE)
    after = _change("update_postimage" if mode.updates else "insert", AFTER)
    both = f"array({before}, {after})" if mode.preimages or not mode.updates else f"array({after})"
    rows = (
        f"CASE WHEN {BEFORE} IS NULL THEN array({_change('insert', AFTER)}) "
        f"WHEN {AFTER} IS NULL THEN array({_change('delete', BEFORE)}) ELSE {both} END"
    )
    found = pairs.selectExpr(VERSION, f"inline({rows})")
    return found.selectExpr(*(f"row.{quoted(c.name)}" for c in columns), f"kind AS {CHANGE_TYPE}", VERSION)


def in_mode(rows: DataFrame, mode: FeedMode) -> DataFrame:
    """Convert rows of a complete feed, which has updates and preimages, to a mode."""
    if not mode.updates:
        other = f"CASE {CHANGE_TYPE} WHEN 'update_preimage' THEN 'delete' WHEN 'update_postimage' THEN 'insert' "
        return rows.withColumn(CHANGE_TYPE, F.expr(f"{other} ELSE {CHANGE_TYPE} END"))
    return rows if mode.preimages else rows.where(f"{CHANGE_TYPE} <> 'update_preimage'")


def paired(rows: DataFrame, columns: Sequence[Column], key: Sequence[str]) -> DataFrame:
    """Pair the rows of a complete feed by key and version."""
    names = _key_names(key)
    by = [f"{quoted(column)} AS {name}" for column, name in zip(key, names, strict=True)]
    row = f"struct({', '.join(quoted(c.name) for c in columns)})"
    sides = {BEFORE: "'delete', 'update_preimage'", AFTER: "'insert', 'update_postimage'"}
    images = [f"any_value({row}) FILTER (WHERE {CHANGE_TYPE} IN ({kinds})) AS {s}" for s, kinds in sides.items()]
    keyed = rows.selectExpr("*", *by).groupBy(*names, VERSION)
    return keyed.agg(*map(F.expr, images)).select(VERSION, BEFORE, AFTER)


def _change(kind: str, row_sql: str) -> str:
    return f"named_struct('kind', '{kind}', 'row', {row_sql})"
