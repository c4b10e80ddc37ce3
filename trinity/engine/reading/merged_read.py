"""The merged read: tiers to rows (architecture.md, A read)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from trinity.depth import room
from trinity.engine.appending.run_sinks import DELETED
from trinity.engine.reading import fold_by_column as by_column
from trinity.engine.reading.base_buckets import layers, well_bucketed
from trinity.engine.reading.listed_keys import listed_keys
from trinity.engine.reading.pruning import prune
from trinity.engine.reading.read_plan import Way, in_words, plan_of
from trinity.engine.reading.scan import (
    bucketed_scan,
    log_scan,
    native_rows,
    plain_scan,
    tiers,
    version_scan,
)
from trinity.engine.spark.remote import analysed, is_alone
from trinity.engine.spark.settings import pinned
from trinity.engine.spark.texts import with_char
from trinity.engine.spark.types import arrow_frame, spark_type
from trinity.engine.target import Host
from trinity.merge.fold import SINCE, beats, is_deleted, winners
from trinity.merge.parse import merge_spec
from trinity.merge.quoting import quoted
from trinity.merge.rows import AnyRows, SqlRows
from trinity.merge.spec import MergeSpec
from trinity.spark_names import DataFrame, F
from trinity.spark_tree import spark_tree
from trinity.spi import NATIVE_FILE, NATIVE_ROW, Column, DataFile, SplitSource, parse_type
from trinity.sql.parsing.operands import compared_alone
from trinity.storage import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_BASE_WINS: Final = "_trinity_base_wins"

__all__ = [
    "explained_read",
    "filtered_read",
    "folded",
    "logical",
    "merged_read",
    "newest_versions",
    "row_versions",
    "stored_winners",
    "with_key",
]


def merged_read(
    spark: SparkSession, splits: SplitSource, where: str | None = None, keys: DataFrame | None = None
) -> DataFrame:
    """The rows of a version: visible columns, logical types, one row per live key.

    Args:
        spark: the session.
        splits: the version.
        where: Spark SQL over key columns by which files and rows may be left out below the fold (L9).
        keys: of a keyed table, values of some key columns under their names, few enough for every task to hold:
            rows with other keys are left out below the fold.
    """
    definition = splits.definition
    files = _files(spark, splits, where)
    if not definition.keyed:
        rows = version_scan(spark, files, splits)
    else:
        spec = merge_spec(definition)
        rows = _live(spark, splits, spec, files, _below(spark, splits, spec, where, keys))
    return logical(rows, splits)


def _files(spark: SparkSession, splits: SplitSource, where: str | None) -> list[DataFile]:
    """The files that may hold a row for which a predicate is true.

    Below the fold only key columns leave files out, but those also where the rest of the predicate cannot.
    """
    columns = splits.definition.primary_key or None
    return prune(splits.files, splits.definition, where, columns, partial(_time_zone, spark))


def _time_zone(spark: SparkSession) -> str:
    return str(spark.conf.get("spark.sql.session.timeZone"))


def filtered_read(session: Host, splits: SplitSource, where: str | None) -> DataFrame:
    """The rows of :func:`merged_read` that meet a predicate; all without one. Raises as ``Table.to_df``."""
    with _asked(session, where) as where:
        rows = merged_read(session.spark, splits, where)
        return analysed(rows.where(where) if where else rows)


def explained_read(session: Host, splits: SplitSource, where: str | None = None) -> str:
    """The plan of :func:`filtered_read` in words; nothing is read. Raises as that does."""
    with _asked(session, where) as where:
        definition, files = splits.definition, _files(session.spark, splits, where)
        spec = merge_spec(definition) if definition.keyed else None
        below = _ALL if spec is None else _below(session.spark, splits, spec, where)
        return in_words(splits, files, plan_of(splits, spec, files, whole=below == _ALL, keys=below.listed).way)


@contextmanager
def _asked(session: Host, where: str | None) -> Iterator[str | None]:
    """A predicate of the caller's as it is compared: none that reaches anything, and Spark's errors are Trinity's."""
    from trinity.calls.spark import spark_errors
    from trinity.engine.guard import guard_predicate

    with pinned(session.spark), spark_errors():
        if where is not None:
            guard_predicate(session, where)
        yield compared_alone(where) if where else where


@dataclass(frozen=True)
class _Below:
    """The rows that may be left out below the fold (L9).

    Attributes:
        where: rows that do not meet it.
        columns: those that it names.
        listed: all keys for which it may be true, where it lists them and this process may look them up.
        keys: rows whose keys are not among these.
        few: whether the keys are known to be few enough for every task to hold.
    """

    where: str | None = None
    columns: tuple[Column, ...] = ()
    listed: pa.Table | None = None
    keys: DataFrame | None = None
    few: bool = True

    def of(self, rows: DataFrame) -> DataFrame:
        if self.where:
            rows = with_char(rows, self.columns).where(self.where)
        if self.keys is not None:
            keys = F.broadcast(self.keys) if self.few else self.keys
            rows = rows.join(keys, self.keys.columns, "left_semi").select(*map(quoted, rows.columns))
        return rows


_ALL: Final = _Below()


def _live(
    spark: SparkSession, splits: SplitSource, spec: MergeSpec, files: Sequence[DataFile], below: _Below
) -> DataFrame:
    """The live rows in some files of a version, which have all versions of the keys that are not left out."""
    plan = plan_of(splits, spec, files, whole=below == _ALL, keys=below.listed)
    if plan.way is Way.SCAN:  # compacted: a file scan and nothing above it
        return below.of(plain_scan(spark, files, splits.storage))
    passed = plan.outlook.passed(spark) if plan.outlook else None
    if passed is not None:  # (a search may fail)
        return below.of(plain_scan(spark, files, splits.storage, passed))
    return folded(spark, replace(splits, files=tuple(files)), spec, below).where(f"NOT {DELETED}")


def stored_winners(spark: SparkSession, splits: SplitSource, keys: DataFrame | None) -> DataFrame:
    """The winning versions of some keys, or all, dead ones too, in storage form with ``DELETED`` BOOLEAN (M4, M9)."""
    spec = merge_spec(splits.definition)
    return folded(spark, splits, spec, _Below(keys=keys, few=False)).drop(SINCE)


def folded(spark: SparkSession, splits: SplitSource, spec: MergeSpec, below: _Below = _ALL) -> DataFrame:
    """The winning version of every key in storage form, with ``DELETED`` (True for a deleted key).

    Of engines that keep rows whole also with ``SINCE``. The log is folded by itself, then met with the base by a full
    outer sort-merge join. The base is read once, and with one sorted file per bucket neither exchanged nor sorted.
    """
    if spec.by_column:
        rows = with_key(by_column.versions(spark, splits, spec), splits, spec)
        return by_column.folded(below.of(rows), splits, spec)
    base, log = tiers(splits.files)
    base, runs = layers(base, splits.definition)
    versions = log_scan(spark, splits, spec, log, splits.sidecar, runs=runs)
    versions = below.of(with_key(versions, splits, spec))
    buckets = well_bucketed(base, splits.definition)
    earlier: DataFrame | None
    if buckets:
        versions = versions.repartition(buckets, *map(quoted, spec.key))
        earlier = bucketed_scan(spark, base, splits.storage, spec.key, buckets)
    else:
        earlier = plain_scan(spark, base, splits.storage) if base else None
    return _met_with_base(below.of(earlier) if earlier else None, versions, spec, splits.storage)


def _met_with_base(earlier: DataFrame | None, versions: DataFrame, spec: MergeSpec, storage: pa.Schema) -> DataFrame:
    """The winning version of every key as :func:`folded` has it, of an engine that keeps rows whole.

    Args:
        earlier: base rows in storage form; None when there are none.
        versions: row versions of log and sidecar, with their arrival.
        spec: the table's options.
        storage: the storage columns.
    """
    later = newest_versions(versions, spec, storage)
    return later if earlier is None else _meet(earlier, later, spec, storage)


def newest_versions(versions: DataFrame, spec: MergeSpec, storage: pa.Schema) -> DataFrame:
    """The winning version of each key among some, in storage form with ``DELETED`` and ``SINCE``."""
    found = winners(versions, spec)
    return found.selectExpr(*_stored(storage), f"{is_deleted(spec, found)} AS {DELETED}", SINCE)


def with_key(versions: AnyRows, splits: SplitSource, spec: MergeSpec) -> AnyRows:
    """Without the rows of other writers that have a NULL in their key (K1)."""
    nullable = [k for k in spec.key if splits.definition.external and splits.definition.column(k).nullable]
    return versions.where(" AND ".join(f"{quoted(k)} IS NOT NULL" for k in nullable)) if nullable else versions


def _meet(earlier: DataFrame, later: DataFrame, spec: MergeSpec, storage: pa.Schema) -> DataFrame:
    matched = " AND ".join(f"b.{quoted(k)} = l.{quoted(k)}" for k in spec.key)
    both = earlier.alias("b").join(later.alias("l").hint("merge"), F.expr(matched), "full_outer")
    # decided once, then used by every column
    both = both.selectExpr("*", f"l.{quoted(spec.key[0])} IS NULL OR {beats(spec, 'b', 'l')} AS {_BASE_WINS}")
    columns = [f"CASE WHEN {_BASE_WINS} THEN b.{name} ELSE l.{name} END AS {name}" for name in _stored(storage)]
    deleted = f"NOT {_BASE_WINS} AND coalesce(l.{DELETED}, false) AS {DELETED}"
    return both.selectExpr(*columns, deleted, f"l.{SINCE}")


def row_versions(spark: SparkSession, splits: SplitSource) -> DataFrame:
    """The rows of ``log()``: stored row versions with ``_commit_version`` BIGINT, ``_file``, ``_pos``, ``_tier``."""
    with pinned(spark):
        rows = _with_origin(spark, [*splits.files, *splits.sidecar], splits)
        return logical(rows, splits, ("_commit_version", "_file", "_pos", "_tier"))


def _with_origin(spark: SparkSession, files: Sequence[DataFile], splits: SplitSource) -> DataFrame:
    if splits.native is None:
        rows = plain_scan(spark, files, splits.storage)
    else:
        rows = native_rows(spark, files, splits.native, splits.storage)
    if not files:
        origin = {"_commit_version": "bigint", "_file": "string", "_pos": "bigint", "_tier": "string"}
        return rows.select("*", *[F.lit(None).cast(kind).alias(name) for name, kind in origin.items()])
    facts = arrow_frame(
        spark,
        pa.table(
            {
                NATIVE_FILE: [splits.native.name(f) if splits.native else f.name for f in files],
                "_commit_version": pa.array([f.commit for f in files], pa.int64()),
                "_file": [f.path for f in files],
                "_tier": [f.tier.value for f in files],
            }
        ),
    )
    if splits.native is None:
        rows = rows.selectExpr("*", f"_metadata.file_name AS {NATIVE_FILE}", f"_metadata.row_index AS {NATIVE_ROW}")
    return rows.withColumnRenamed(NATIVE_ROW, "_pos").join(F.broadcast(facts), NATIVE_FILE)


def logical(rows: AnyRows, splits: SplitSource, further: Sequence[str] = ()) -> AnyRows:
    """Storage form to what users see: visible columns under their names, in their types."""
    stored = spark_schema(splits.storage)
    columns = [
        _logical_column(field.name, field.dataType.simpleString(), column)
        for column, field in zip(splits.definition.columns, stored.fields, strict=True)
        if not column.hidden
    ]
    shown = rows.selectExpr(*columns, *further)
    return shown if isinstance(shown, SqlRows) else with_char(shown, splits.definition.visible)


def _logical_column(stored: str, stored_type: str, column: Column) -> str:
    kind = spark_type(column.type)
    value = quoted(stored)
    if kind != stored_type and parse_type(column.type).name == "time" and stored_type == "bigint":
        value = _time_of_micros(value)
    elif kind != stored_type:
        value = f"CAST({value} AS {kind})"
    return f"{value} AS {quoted(column.name)}"


def _time_of_micros(micros: str) -> str:
    """TIME out of a BIGINT of microseconds: Spark has no cast for that."""
    second = f"CAST(CAST({micros} % 60000000 AS DECIMAL(8,0)) / 1000000 AS DECIMAL(8,6))"
    minute = f"CAST({micros} DIV 60000000 % 60 AS INT)"
    return f"make_time(CAST({micros} DIV 3600000000 AS INT), {minute}, {second})"


def _stored(storage: pa.Schema) -> list[str]:
    return [quoted(f.name) for f in storage]


@room()
def _below(
    spark: SparkSession, splits: SplitSource, spec: MergeSpec, where: str | None, keys: DataFrame | None = None
) -> _Below:
    """Some keys, and a predicate unless it names more than key columns whose stored type is their own."""
    tree = spark_tree(where) if where else None
    if tree is None:
        return _Below(keys=keys)
    key = {k.lower() for k in spec.key}
    named = {c.name.lower() for c in tree.find_all(exp.Column)}
    plain = all(parse_type(splits.definition.column(n).type).name != "time" for n in named & key)
    if not (named <= key and plain):
        return _Below(keys=keys)
    listed = listed_keys(splits.definition, tree, partial(_time_zone, spark)) if is_alone(spark) else None
    return _Below(where, tuple(map(splits.definition.column, spec.key)), listed, keys)
