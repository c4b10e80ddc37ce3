"""The fold of whole rows, in Arrow and in SQL: generated row versions fold to the rows of the model, in both backends.

The row versions are cut into a base and a log, as a read and a compaction have them: each is folded alone, then both
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trinity
from tests.support.fold_backends import definition_of, stored, written
from trinity import Session
from trinity.arrays import as_arrow, as_numpy
from trinity.engine.reading.spark.view_dialects import translated
from trinity.hidden import ARRIVAL
from trinity.merge.arrow import fold as arrow
from trinity.merge.spec import merge_spec
from trinity.merge.sql import fold as sql
from trinity.merge.sql.rows import SqlRows
from trinity.spark.types import spark_type
from trinity.spi import TableDefinition, type_text
from trinity.syntax.quoting import quoted
from trinity_conformance.generate.engine_histories import engine_histories
from trinity_conformance.generate.engine_profiles import engine_rota
from trinity_conformance.generate.histories import histories
from trinity_conformance.model.tables import Model, Version
from trinity_conformance.model.values import POOLS, decode
from trinity_conformance.playing.differences import compare
from trinity_conformance.playing.traces import History

pytestmark = pytest.mark.inner

WRITES: Final = {"upsert": 7, "delete": 2}
FIRST_ROW: Final = [profile for profile in map(engine_rota, range(91)) if profile.engine == "first-row"]
HISTORIES: Final = st.one_of(
    histories(emphasis=WRITES),
    histories(emphasis=WRITES),
    st.sampled_from(FIRST_ROW).flatmap(lambda profile: engine_histories(profile, emphasis={"upsert": 7})),
)


@pytest.fixture(scope="module")
def definitions() -> Iterator[Session]:
    """Return a session in which tables are defined, and hold nothing."""
    with trinity.connect(catalogs={"memory": {"connector": "memory"}}, catalog="memory", engine="local") as opened:
        yield opened


NAMES: Final = (f"memory.default.t{number}" for number in count())


def in_arrow(definition: TableDefinition, base: pa.Table, log: pa.Table) -> pa.Table:
    """Fold a base and a log in Arrow. Return the visible rows."""
    spec = merge_spec(definition)
    _, base = arrow.winners(spec, arrow.taking_part(spec, base))
    keys, log = arrow.winners(spec, arrow.taking_part(spec, log))
    base_loses, log_loses = arrow.losers(spec, base, keys, log)
    rows = pa.concat_tables([_without(base, base_loses), _without(log, log_loses)])
    return _without(rows, np.flatnonzero(as_numpy(arrow.is_deleted(spec, rows))))


def _without(rows: pa.Table, indices: np.ndarray) -> pa.Table:
    return rows.take(as_arrow(np.setdiff1d(np.arange(len(rows)), indices)))


def in_sql(definition: TableDefinition, base: pa.Table, log: pa.Table) -> pa.Table:
    """Fold a base and a log by Spark's SQL, which DuckDB runs. Return the visible rows."""
    spec = merge_spec(definition)
    types = [(field.name, spark_type(type_text(field.type))) for field in base.schema]
    earlier, later = (sql.winners(spec, SqlRows(f"SELECT * FROM {name}", types)).text for name in ("base", "log"))
    same_key = " AND ".join(f"b.{quoted(name)} = l.{quoted(name)}" for name in spec.key)
    log_loses = f"l.{quoted(spec.key[0])} IS NULL OR {sql.beats(spec, 'b', 'l')}"
    columns = ", ".join(f"IF({log_loses}, b.{quoted(n)}, l.{quoted(n)}) AS {quoted(n)}" for n, _ in types)
    rows = SqlRows(f"SELECT {columns} FROM ({earlier}) AS b FULL JOIN ({later}) AS l ON {same_key}", types)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("base", base)
        connection.register("log", log)
        visible = rows.where(f"NOT {sql.is_deleted(spec, rows)}").text
        return connection.sql(translated(visible, "duckdb")).to_arrow_table()


BACKENDS: Final[dict[str, Callable[[TableDefinition, pa.Table, pa.Table], pa.Table]]] = {
    "arrow": in_arrow,
    "sql": in_sql,
}


def as_written(model: Model, version: Version) -> Version:
    """Return a row version as writers write it: CHAR values are padded, and a deleted row has the table's mark."""
    shape, row = model.shape, dict(version.row)
    if version.deleted and shape.row_kind and not shape.ignore_delete:
        row[shape.row_kind] = "-D"
    elif version.deleted and shape.tombstone:
        kind = shape.type_of(shape.tombstone)
        row[shape.tombstone] = True if kind == "boolean" else shape.tombstone_value or decode(kind, POOLS[kind][0])
    for column in shape.columns:
        if column.type.startswith("char") and row[column.name] is not None:
            row[column.name] = row[column.name].ljust(int(column.type[5:-1]))
    return replace(version, row=row)


def check_backends(session: Session, history: History, cut: int) -> None:
    """Fold the writes of a history in every backend, with the first ``cut`` row versions as the base."""
    model = written(history)
    definition = definition_of(history.shape, session, next(NAMES))
    versions = stored(definition, (as_written(model, version) for version in model.arrivals()))
    versions = versions.append_column(ARRIVAL, pa.array(range(len(versions)), pa.int64()))
    for name, fold in BACKENDS.items():
        found = fold(definition, versions[:cut], versions[cut:])
        assert compare(model, model.merged(), found.select(history.shape.names).to_pylist()) is None, name


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(history=HISTORIES, cut=st.integers(0, 40))
def test_generated_row_versions_fold_as_the_model_does(definitions: Session, history: History, cut: int) -> None:
    check_backends(definitions, history, cut)


@pytest.mark.full
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=HISTORIES, cut=st.integers(0, 40))
def test_many_generated_row_versions_fold_as_the_model_does(definitions: Session, history: History, cut: int) -> None:
    check_backends(definitions, history, cut)
