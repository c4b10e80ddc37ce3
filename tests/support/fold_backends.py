"""The backends of the fold by column, side by side: row versions of a model in, merged rows out, without files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest

from trinity import Column, Session, Table
from trinity.engine.reading.spark.view_dialects import translated
from trinity.errors import TrinityError
from trinity.hidden import ARRIVAL, VISIBLE
from trinity.merge.arrow.by_column import ColumnFold as ArrowFold
from trinity.merge.carried import carried_marks, ingested_columns
from trinity.merge.row_kinds import StoredKind
from trinity.merge.spec import merge_spec
from trinity.merge.sql.by_column import ColumnFold as SqlFold
from trinity.merge.sql.rows import SqlRows
from trinity.spark.settings import pinned
from trinity.spark.types import arrow_frame, spark_type
from trinity.spi import CARRIED, ROW_KIND, TableDefinition, type_text
from trinity_conformance.generate.engine_profiles import engine_rota
from trinity_conformance.model.engine_model import EngineModel, model_of
from trinity_conformance.model.programs import DmlModel
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.tables import Version
from trinity_conformance.playing.differences import compare
from trinity_conformance.playing.subject import TrinitySubject
from trinity_conformance.playing.traces import Compact, Delete, History, RowChangeStep, Upsert


def definition_of(shape: Shape, session: Session, name: str) -> TableDefinition:
    columns = [Column(c.name, c.type, nullable=c.nullable) for c in shape.columns]
    made = session.create_table(name, columns, primary_key=shape.key, properties=shape.options())
    return made.definition


def stored(definition: TableDefinition, versions: Iterable[Version]) -> pa.Table:
    """Return row versions as a table stores them: their values, the columns that they carry, and their row kind."""
    rows = [
        {
            **_values(definition, v),
            CARRIED: _carried(definition, v),
            ROW_KIND: StoredKind.DELETED if v.deleted else None,
        }
        for v in versions
    ]
    fields = [column.to_arrow().with_nullable(True) for column in definition.visible]
    return pa.Table.from_pylist(rows, pa.schema([*fields, (CARRIED, pa.string()), (ROW_KIND, pa.int8())]))


def _values(definition: TableDefinition, version: Version) -> Mapping[str, Any]:
    """Return the values of a row version, with NULL in columns that it does not carry."""
    spec = merge_spec(definition)
    kept = {*spec.key, *spec.ordering} | set(version.named or version.row)
    kind = {spec.row_kind: "+I"} if spec.row_kind and version.assigned else {}
    return {name: value if name in kept else None for name, value in version.row.items()} | kind


def _carried(definition: TableDefinition, version: Version) -> str | None:
    if version.named is None:
        return None
    if version.assigned:
        return carried_marks(definition, version.named)
    return ingested_columns(merge_spec(definition), definition, version.named)


def in_arrow(definition: TableDefinition, versions: pa.Table) -> pa.Table:
    fold = ArrowFold(definition, merge_spec(definition))
    return fold(fold.contributions(versions))


def spark_sql(definition: TableDefinition, versions: pa.Schema, of: str = "versions") -> str:
    """Return the fold as a Spark query over the relation ``of``, whose rows have the column ``ARRIVAL``."""
    types = [(field.name, spark_type(type_text(field.type))) for field in versions]
    fold = SqlFold(definition, merge_spec(definition))
    rows = SqlRows(f"SELECT * FROM {of}", [*types, (ARRIVAL, "bigint")])
    return fold(fold.contributions(rows)).where(VISIBLE).selectExpr(*(f"`{c.name}`" for c in definition.visible)).text


def in_duckdb(definition: TableDefinition, versions: pa.Table) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("versions", versions.append_column(ARRIVAL, pa.array(range(len(versions)), pa.int64())))
        try:
            query = translated(spark_sql(definition, versions.schema), "duckdb")
            return connection.sql(query).to_arrow_table()
        except duckdb.InvalidInputException as error:
            if "NUMERIC_VALUE_OUT_OF_RANGE" not in str(error):
                raise
            raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", str(error)) from error


def in_spark(session: Session, folded: Sequence[tuple[TableDefinition, pa.Table]]) -> list[list[dict[str, Any]]]:
    """Fold the row versions of several tables in one query; none of them may be out of range."""
    # it imports pyspark, which tests without Spark cannot
    from trinity.engine.reading.spark.fold_by_column import register_bitmap_unions

    wholes = []
    for number, (definition, versions) in enumerate(folded):
        register_bitmap_unions(session.spark, merge_spec(definition))
        placed = versions.append_column(ARRIVAL, pa.array(range(len(versions)), pa.int64()))
        arrow_frame(session.spark, placed).createOrReplaceTempView(f"versions_{number}")
        query = spark_sql(definition, versions.schema, f"versions_{number}")
        wholes.append(f"(SELECT collect_list(struct(*)) FROM ({query})) AS t{number}")
    with pinned(session.spark):
        [row] = session.spark.sql(f"SELECT {', '.join(wholes)}").toArrow().to_pylist()
    for number in range(len(folded)):
        session.spark.catalog.dropTempView(f"versions_{number}")
    return list(row.values())


def cannot_say(backend: str, definition: TableDefinition) -> Mapping[str, str]:
    """Return the columns whose aggregate function a backend does not implement."""
    spec = merge_spec(definition)
    if backend == "arrow":
        return ArrowFold(definition, spec).not_in_arrow()
    return SqlFold(definition, spec).not_in(backend)


BACKENDS: Final[Mapping[str, Callable[[TableDefinition, pa.Table], pa.Table]]] = {
    "arrow": in_arrow,
    "duckdb": in_duckdb,
}
"""Name -> backend without Spark: the visible rows of row versions in arrival order, or a TrinityError."""


ONLY_SPARK = ("hll_sketch", "theta_sketch")
"""Functions whose results only Spark can write."""
WRITES = {"upsert": 7, "delete": 2, "change": 4}
PROFILES = [
    replace(profile, functions=tuple(f for f in profile.functions if f not in ONLY_SPARK))
    for profile in map(engine_rota, range(91))
    if profile.engine != "first-row"
]
"""Kinds of tables: each engine, function and way to delete, many times."""


def written(history: History) -> DmlModel:
    """Return the model after the writes of a history."""
    model = model_of(history.shape)
    for step in history.steps:
        if isinstance(step, Upsert):
            model.upsert(step.rows, step.txn, step.names)
        elif isinstance(step, Delete) and step.condition is not None:
            model.delete_where(step.condition)
        elif isinstance(step, Delete):
            model.delete_keys(model.key_form(key) for key in step.keys or ())
        elif isinstance(step, RowChangeStep):
            model.change(step.statement)
    return model


KEYS_IN_ARROW = [p for p in PROFILES if "double" not in p.key]
"""Kinds of tables that this process compacts."""
CARE = {"upsert": 7, "compact": 5}


def play(session: Session, name: str, history: History) -> EngineModel:
    """Play the writes and compactions of a history on a table, compare each read with the model, and return the model.

    Unless a step reads a value out of range, the changes must lead from each read to the next, and to the last one.
    """
    shape, model = history.shape, EngineModel(history.shape)
    definition_of(shape, session, name)
    reads = {session.table(name).splits().version: pa.Table.from_pylist([])}
    fits = True
    for number, step in enumerate(history.steps):
        table = session.table(name)
        if isinstance(step, Upsert):
            some = [c for c in shape.columns if step.names is None or c.name in step.names]
            table.upsert(pa.concat_tables(TrinitySubject._arrow(some, split) for split in step.splits), txn=step.txn)
            model.upsert(step.rows, step.txn, step.names)
        elif isinstance(step, Delete) and step.keys is not None:
            key = [c for c in shape.columns if c.name in shape.key]
            table.delete(TrinitySubject._arrow(key, step.keys))
            model.delete_keys(model.key_form(one) for one in step.keys)
        elif isinstance(step, Compact):
            table.compact("full" if step.full else "resolve" if number % 2 else "minor")
        if model.overflows():
            fits = False
            with pytest.raises(TrinityError, match="NUMERIC_VALUE_OUT_OF_RANGE"):
                session.table(name).to_arrow()
        else:
            reads[table.splits().version] = rows = session.table(name).to_arrow()
            assert compare(model, model.merged(), rows.to_pylist()) is None
    if fits:
        check_changes(session.table(name), reads)
    return model


def check_changes(table: Table, reads: Mapping[int, pa.Table]) -> None:
    """Check that the change feed leads from the rows of each of these versions to the rows of the later ones.

    A row whose map has its entries in another order counts as unchanged.
    """
    versions = sorted(reads)
    for before, after in [*pairwise(versions), (versions[0], versions[-1])]:
        for mode in ("dropCarryovers", "netChanges"):
            found = table.changes(before, after, deduplication_mode=mode)
            assert found.engine == "local"
            rows = Counter(map(_text_of, reads[before].to_pylist()))
            for row in found.to_arrow().to_pylist():
                change = row.pop("_change_type")
                del row["_commit_version"], row["_commit_timestamp"]
                rows[_text_of(row)] += 1 if change in ("insert", "update_postimage") else -1
            assert +rows == Counter(map(_text_of, reads[after].to_pylist())), (before, after, mode)
            assert not -rows


def _text_of(row: Mapping[str, Any]) -> str:
    return repr({name: _with_sorted_entries(value) for name, value in row.items()})


def _with_sorted_entries(value: Any) -> Any:
    """Return a value with the entries of its maps, which are lists of pairs, in the order of their keys."""
    if isinstance(value, Mapping):
        return {name: _with_sorted_entries(part) for name, part in value.items()}
    if not isinstance(value, list):
        return value
    if value and isinstance(value[0], tuple):
        return sorted((key, repr(_with_sorted_entries(part))) for key, part in value)
    return [_with_sorted_entries(part) for part in value]
