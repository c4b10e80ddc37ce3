"""The rows that other engines read from tables of every kind: for docs/other-engines.md, and for its tests.

``python -m tests.support.reader_matrix`` runs every reader, and writes the page's table.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

import trinity
from tests.support.iceberg import iceberg_spark, pyiceberg
from tests.support.paths import ROOT
from trinity import Column, Session, Table

PAGE: Final = ROOT / "docs" / "other-engines.md"
Rows = list[dict[str, Any]]


# -- readers ----------------------------------------------------------------------------------------------


def _files(table: Table) -> list[str]:
    """Return the data files, newest first: readers that take the columns of the first file then know all columns."""
    return [f.path for f in sorted(table.splits().files, key=lambda f: f.commit or 0, reverse=True)]


def _duckdb_parquet(session: Session, table: Table) -> pa.Table:
    return duckdb.read_parquet(_files(table), union_by_name=True, hive_partitioning=False).to_arrow_table()


def _polars_parquet(session: Session, table: Table) -> pa.Table:
    return pl.scan_parquet(_files(table), missing_columns="insert", hive_partitioning=False).collect().to_arrow()


def _spark_parquet(session: Session, table: Table) -> pa.Table:
    return session.spark.read.option("mergeSchema", "true").parquet(*_files(table)).toArrow()


def _spark_delta(session: Session, table: Table) -> pa.Table:
    return session.spark.read.format("delta").load(table.location).toArrow()


def _delta_rs(session: Session, table: Table) -> pa.Table:
    # QueryBuilder honours deletion vectors, count() does not
    query = QueryBuilder().register("t", DeltaTable(table.location))
    return pa.table(query.execute("SELECT * FROM t").read_all())


def _polars_delta(session: Session, table: Table) -> pa.Table:
    return pl.scan_delta(table.location).collect().to_arrow()


def _duckdb_delta(session: Session, table: Table) -> pa.Table:
    # to_pyarrow_dataset() does not honour column mapping: after a rename it shows wrong values
    return duckdb.from_arrow(_delta_rs(session, table)).to_arrow_table()


def _spark_iceberg(session: Session, table: Table) -> pa.Table:
    return iceberg_spark(session).table(f"iceberg.default.{table.name.table}").toArrow()


def _pyiceberg(session: Session, table: Table) -> pa.Table:
    return pyiceberg(table).scan().to_arrow()


def _polars_iceberg(session: Session, table: Table) -> pa.Table:
    # so that PyIceberg plans the scan
    with warnings.catch_warnings(action="ignore", category=pl.exceptions.PerformanceWarning):
        return pl.scan_iceberg(pyiceberg(table)).collect().to_arrow()


def _duckdb_iceberg(session: Session, table: Table) -> pa.Table:
    return duckdb.from_arrow(pyiceberg(table).scan().to_arrow()).to_arrow_table()


READERS: Final[Mapping[str, Mapping[str, Callable[[Session, Table], pa.Table]]]] = {
    "parquet": {"DuckDB": _duckdb_parquet, "Polars": _polars_parquet, "Spark": _spark_parquet},
    "delta": {
        "Spark's Delta reader": _spark_delta,
        "delta-rs": _delta_rs,
        "Polars": _polars_delta,
        "DuckDB over Arrow": _duckdb_delta,
    },
    "iceberg": {
        "Iceberg's Spark runtime": _spark_iceberg,
        "PyIceberg": _pyiceberg,
        "Polars": _polars_iceberg,
        "DuckDB over Arrow": _duckdb_iceberg,
    },
}

FOLDER_READERS: Final[Mapping[str, Callable[[Session, str], pa.Table]]] = {
    "DuckDB": lambda _, folder: duckdb.read_parquet(f"{folder}/**/*.parquet").to_arrow_table(),
    "Polars": lambda _, folder: pl.read_parquet(f"{folder}/**/*.parquet").to_arrow(),
    "pyarrow": lambda _, folder: pq.read_table(folder, partitioning=None),
    "pandas": lambda _, folder: pa.Table.from_pandas(pd.read_parquet(folder, partitioning=None)),
    "Spark": lambda session, folder: session.spark.read.parquet(folder).toArrow(),
}
"""Readers of a folder, as they are commonly called."""


# -- tables -----------------------------------------------------------------------------------------------

_COLUMNS: Final = [Column("part", "string"), Column("k", "int"), Column("w", "bigint"), Column("v", "string")]
_GONE: Final = Column("gone", "boolean")
_BY_TOMBSTONE: Final = {"watermark-key": "w", "tombstone-key": "gone"}
_KEYED: Final[Mapping[str, tuple[list[Column], list[str], Mapping[str, str]]]] = {
    "plain": (_COLUMNS, [], {}),
    "tombstone": ([*_COLUMNS, _GONE], [], _BY_TOMBSTONE),
    "hidden row kind": (_COLUMNS, [], {"watermark-key": "w"}),
    "partitioned": ([*_COLUMNS, _GONE], ["part"], _BY_TOMBSTONE),
    "partial-update": (_COLUMNS, [], {"merge-engine": "partial-update", "fields.w.sequence-group": "v"}),
}
KINDS: Final = tuple(_KEYED)


def _row(k: int, w: int, v: str, **more: Any) -> dict[str, Any]:
    return {"part": "a" if k < 3 else "b", "k": k, "w": w, "v": v, **more}


_FIRST: Final = [_row(1, 1, "x"), _row(2, 1, "y"), _row(3, 1, "z")]
_NEWER: Final = _row(1, 2, "newer")
_LATER: Final = _row(3, 3, "later", more=7)


def _states(session: Session, fmt: str, kind: str) -> Iterator[tuple[Table, Rows, Rows]]:
    """Yield a table in one state after another, with its stored row versions and its live rows."""
    columns, partition_by, properties = _KEYED[kind]
    key = [] if kind == "plain" else ["part", "k"]
    name = f"{fmt}.default.{re.sub(r'[^a-z]', '_', kind)}"
    table = session.create_table(name, columns, primary_key=key, partition_by=partition_by, properties=properties)
    write = table.upsert if key else table.append

    def commit(*rows: dict[str, Any]) -> None:
        known = table.definition.to_arrow()
        write(pa.Table.from_pylist(list(rows), pa.schema([known.field(name) for name in rows[0]])))

    commit(*_FIRST)
    commit(_NEWER)
    versions, live = [*_FIRST, _NEWER], [*_FIRST, _NEWER]
    if key:
        live = [_NEWER, *_FIRST[1:]]
    if _GONE in columns:
        dead = _row(2, 2, "gone", gone=True)
        commit(dead)
        versions, live = [*versions, dead], [_NEWER, _FIRST[2]]
    elif kind == "hidden row kind":
        table.delete([{"part": "a", "k": 2}])
        versions, live = [*versions, _FIRST[1]], [_NEWER, _FIRST[2]]
    yield table, versions, live
    table.compact(full=True)
    yield table, live, live
    table.add_column(Column("more", "int"))
    commit(_LATER)
    versions = [*live, _LATER]
    live = [r for r in versions if r != _FIRST[2]] if key else versions
    yield table, versions, live
    table.rename_column("v", "value")
    table.drop_column("more")
    table.add_column(Column("more", "string"))
    named = _renamed(_row(4, 1, "named", more="text"))
    commit(named)
    versions, live = [*map(_renamed, versions), named], [*map(_renamed, live), named]
    yield table, versions, live
    table.widen_column("k", "bigint")
    wide = _renamed(_row(2**40, 1, "wide"))
    commit(wide)
    yield table, [*versions, wide], [*live, wide]


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row after v was renamed, and a column of numbers was replaced by a column of text of the same name."""
    more = row.get("more")
    return {k: v for k, v in row.items() if k not in ("v", "more")} | {
        "value": row["v"],
        "more": more if isinstance(more, str) else None,
    }


# -- what is seen -----------------------------------------------------------------------------------------


def _comparable(rows: Rows, names: list[str]) -> list[str]:
    return sorted(repr([row.get(name) for name in names]) for row in rows)


def _seen(
    read: Callable[[Session, Table], pa.Table], session: Session, table: Table, versions: Rows, live: Rows
) -> str:
    columns = table.definition.visible
    names = [c.name for c in columns]
    try:
        rows = read(session, table).to_pylist()
    except Exception:
        return "refused"
    for called, how in ((names, ""), ([c.stored_name for c in columns], ", old names")):
        found = _comparable(rows, called)
        if found == _comparable(live, names):
            return f"live{how}"
        if found == _comparable(versions, names):
            return f"versions{how}"
    return "wrong"


def cells(session: Session, fmt: str, kind: str) -> dict[str, str]:
    """Return reader -> what it reads of a kind of table, state by state."""
    found: dict[str, list[str]] = {name: [] for name in READERS[fmt]}
    for table, versions, live in _states(session, fmt, kind):
        for name, read in READERS[fmt].items():
            found[name].append(_seen(read, session, table, versions, live))
    return {name: "; ".join(seen) for name, seen in found.items()}


def folder_cells(session: Session, kind: str) -> dict[str, str]:
    """Return reader -> what it reads of the folder of a Parquet table after a full compaction and a vacuum."""
    states = _states(session, "parquet", kind)
    next(states)
    table, versions, live = next(states)
    table.vacuum("0 seconds")

    def reading(read: Callable[[Session, str], pa.Table]) -> Callable[[Session, Table], pa.Table]:
        return lambda session, table: read(session, table.location)

    return {name: _seen(reading(read), session, table, versions, live) for name, read in FOLDER_READERS.items()}


# -- the page ---------------------------------------------------------------------------------------------

_TABLE: Final = re.compile(r"^\| tables \| reader \|.*?(?=^$)", re.MULTILINE | re.DOTALL)


def on_page(fmt: str, kind: str) -> dict[str, str]:
    """Return the same cells from the page."""
    found = _TABLE.search(PAGE.read_text())
    assert found, f"{PAGE} has no table of readers"
    head, _, *lines = [[c.strip() for c in line.strip("|").split("|")] for line in found[0].splitlines()]
    return {line[1]: line[head.index(kind)] for line in lines if line[0].lower() == fmt}


def _written() -> str:
    lines = ["| tables | reader | " + " | ".join(KINDS) + " |", "|---" * (2 + len(KINDS)) + "|"]
    with tempfile.TemporaryDirectory() as folder, trinity.connect(folder) as session:
        for fmt, readers in READERS.items():
            by_kind = [cells(session, fmt, kind) for kind in KINDS]
            lines += [f"| {fmt.title()} | {name} | {' | '.join(c[name] for c in by_kind)} |" for name in readers]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = _written()
    PAGE.write_text(_TABLE.sub(lambda _: text, PAGE.read_text()))
