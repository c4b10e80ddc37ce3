"""Other systems as players of histories: each upserts by the MERGE, or the upsert, of its documentation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import psycopg
import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from tests.support.oracles import DuckDb, Oracle
from trinity.errors import TrinityError
from trinity.spi import arrow_type
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.tables import Row
from trinity_conformance.model.values import decode
from trinity_conformance.playing.subject import Outcome, Unsupported
from trinity_conformance.playing.traces import Upsert

_NEWER: Final = "(s.w >= t.w OR t.w IS NULL)"


def _batch(shape: Shape, step: Upsert) -> pa.Table:
    columns = [
        pa.array([decode(c.type, row[place]) for row in step.rows], arrow_type(c.type))
        for place, c in enumerate(shape.columns)
    ]
    return pa.Table.from_arrays(columns, schema=schema_of(shape))


def schema_of(shape: Shape) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema([pa.field(c.name, arrow_type(c.type), nullable=c.nullable) for c in shape.columns])


def merge_text(shape: Shape, target: str) -> str:
    """Return a MERGE of the rows of ``s``, with the condition of a watermark, which deletes by a tombstone."""
    newer = f" AND {_NEWER}" if shape.watermark else ""
    names = [name for name in shape.names if name not in shape.key]
    gone = f"WHEN MATCHED{newer} AND s.gone THEN DELETE " if shape.tombstone else ""
    live = " AND NOT s.gone" if shape.tombstone else ""
    return (
        f"MERGE INTO {target} AS t USING s ON {' AND '.join(f't.{k} = s.{k}' for k in shape.key)} {gone}"
        f"WHEN MATCHED{newer} THEN UPDATE SET {', '.join(f'{n} = s.{n}' for n in names)} "
        f"WHEN NOT MATCHED{live} THEN INSERT ({', '.join(shape.names)}) "
        f"VALUES ({', '.join(f's.{n}' for n in shape.names)})"
    )


class Upserts(Oracle):
    """A keyed table whose versions are counted by commits.

    No system skips a transaction that it has already; the player reports that it did, so that the rows decide.
    """

    txns: dict[str, int]

    def run(self, text: str) -> int | None:
        raise NotImplementedError

    def create(self, shape: Shape) -> None:
        self.shape, self.commits, self.txns = shape, 0, {}
        if self.dialect != "postgres" and any(shape.type_of(k).startswith("char") for k in shape.key):
            raise Unsupported("CHAR(n), which pads")
        try:
            self.make(shape)
        except Exception as error:
            raise Unsupported(f"{type(error).__name__}: {str(error)[:200]}") from error

    def make(self, shape: Shape) -> None:
        """Make an empty table."""
        raise NotImplementedError

    def write(self, batch: pa.Table) -> None:
        """Upsert rows."""
        raise NotImplementedError

    def upsert(self, step: Upsert) -> Outcome:
        self.write(_batch(self.shape, step))
        self.commits += 1
        again = step.txn is not None and step.txn[1] <= self.txns.get(step.txn[0], 0)
        self.txns |= dict([step.txn]) if step.txn and not again else {}
        return Outcome(self.commits, skipped=again)

    def history(self) -> list[tuple[Any, datetime]]:
        return [(number, datetime(2024, 1, 1, second=number)) for number in range(1, self.commits + 1)]

    def read(
        self,
        version: Any = None,
        timestamp: datetime | None = None,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        if version is not None:
            return self.rows_at(version)
        return super().read()

    def rows_at(self, version: int) -> list[Row]:
        """Return the rows after a commit."""
        raise Unsupported("reads of earlier versions")


def as_tuples(table: pa.Table, shape: Shape) -> list[tuple[Any, ...]]:
    """Return the rows of a table as tuples, in the order of the shape's columns."""
    return [tuple(row[name] for name in shape.names) for row in table.to_pylist()]


class DuckDbMerge(Upserts):
    """DuckDB's MERGE INTO, in memory."""

    dialect = "duckdb"
    _TYPES: Final = {"binary": "BLOB", "string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP"}

    def __init__(self) -> None:
        super().__init__()
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")

    def make(self, shape: Shape) -> None:
        columns = ", ".join(f"{c.name} {self._TYPES.get(c.type, c.type)}" for c in shape.columns)
        self.connection.execute(f"CREATE OR REPLACE TABLE t ({columns}, PRIMARY KEY ({', '.join(shape.key)}))")

    def write(self, batch: pa.Table) -> None:
        self.connection.register("s", batch)
        self.connection.execute(merge_text(self.shape, "t"))

    def rows(self) -> list[tuple[Any, ...]]:
        return as_tuples(self.connection.sql("SELECT * FROM t").to_arrow_table(), self.shape)


class DuckDbStatements(DuckDb):
    """DuckDB's statements on a plain table. Its refusal of a row that is changed twice has Trinity's code."""

    def run(self, text: str) -> int:
        try:
            return super().run(text)
        except duckdb.InvalidInputException as error:
            if "more than once" not in str(error):
                raise
            raise TrinityError("MERGE_TARGET_ROW_MULTIPLE_MATCHES", str(error)) from error


class PostgresMerge(Upserts):
    """PostgreSQL's MERGE, on temporary tables of one connection."""

    dialect = "postgres"
    _TYPES: Final = {
        "tinyint": "smallint",
        "float": "real",
        "double": "double precision",
        "string": "text",
        "binary": "bytea",
        "timestamp": "timestamptz",
        "timestamp_ntz": "timestamp",
    }

    def __init__(self, server: dict[str, str]) -> None:
        super().__init__()
        options: dict[str, Any] = {**server, "autocommit": True, "prepare_threshold": None}  # tables change
        self.connection = psycopg.connect(**options)

    def make(self, shape: Shape) -> None:
        columns = ", ".join(f"{c.name} {self._TYPES.get(c.type, c.type)}" for c in shape.columns)
        for name, key in (("t", f", PRIMARY KEY ({', '.join(shape.key)})"), ("s", "")):
            self.connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
            self.connection.execute(f"CREATE TEMPORARY TABLE {name} ({columns}{key})".encode())

    def write(self, batch: pa.Table) -> None:
        self.connection.execute("TRUNCATE s")
        marks = ", ".join(["%s"] * len(self.shape.columns))
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO s VALUES ({marks})".encode(), as_tuples(batch, self.shape))
        self.connection.execute(merge_text(self.shape, "t").encode())

    def rows(self) -> list[tuple[Any, ...]]:
        return self.connection.execute("SELECT * FROM t").fetchall()


class DeltaRs(Upserts):
    """delta-rs: ``DeltaTable.merge``."""

    dialect = "deltalake"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folders = (folder / f"delta{number}" for number in itertools.count())

    def make(self, shape: Shape) -> None:
        self.folder = next(self.folders)
        DeltaTable.create(self.folder, pa.schema([f.with_nullable(True) for f in schema_of(shape)]))

    def write(self, batch: pa.Table) -> None:
        shape = self.shape
        on = " AND ".join(f"t.{k} = s.{k}" for k in shape.key)
        newer = _NEWER if shape.watermark else None
        merger = DeltaTable(self.folder).merge(batch, on, source_alias="s", target_alias="t")
        if shape.tombstone:
            merger = merger.when_matched_delete(f"{newer} AND s.gone")
        merger = merger.when_matched_update_all(newer)
        merger.when_not_matched_insert_all("NOT s.gone" if shape.tombstone else None).execute()

    def rows(self) -> list[tuple[Any, ...]]:
        return as_tuples(DeltaTable(self.folder).to_pyarrow_table(), self.shape)

    def rows_at(self, version: int) -> list[Row]:
        return [dict(row) for row in DeltaTable(self.folder, version=version).to_pyarrow_table().to_pylist()]


class PyIceberg(Upserts):
    """PyIceberg: ``Table.upsert``, which has no conditions."""

    dialect = "pyiceberg"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.catalog = SqlCatalog("world", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        self.catalog.create_namespace("ns")
        self.names = (f"ns.t{number}" for number in itertools.count())

    def make(self, shape: Shape) -> None:
        if shape.watermark:
            raise Unsupported("conditions of an upsert")
        self.made = self.catalog.create_table(next(self.names), schema_of(shape))
        self.snapshots: list[int] = []

    def write(self, batch: pa.Table) -> None:
        self.made.upsert(batch, join_cols=list(self.shape.key))
        newest = self.made.current_snapshot()
        self.snapshots.append(newest.snapshot_id if newest else 0)

    def rows(self) -> list[tuple[Any, ...]]:
        return as_tuples(self.made.scan().to_arrow(), self.shape)

    def rows_at(self, version: int) -> list[Row]:
        found = self.made.scan(snapshot_id=self.snapshots[version - 1]).to_arrow()
        return [dict(row) for row in found.to_pylist()]
