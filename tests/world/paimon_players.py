"""Apache Paimon as a player of histories: in Spark, and by pypaimon. Both run in processes of their own.

A table has a primary key. A watermark is its ``sequence.field``; a tombstone is a row whose ``rowkind.field`` column
says that it deletes.
"""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.paimon.driver import PACKAGE
from tests.support.oracles import Oracle, spark_text
from tests.world.players import Upserts, as_tuples, schema_of
from tests.world.spark_players import taken_by_spark, with_code
from tests.world.workers import Worker, python_of
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import BY_SOURCE, Statement
from trinity_conformance.model.tables import Row

_KIND: Final = "kind"
_TEXT: Final = re.compile(r"'((?:[^']|'')*)'")
"""A text literal of SQL."""


def paimon(folder: Path) -> Worker:
    """Return the process with Spark 3.5 and Paimon."""
    return Worker(python_of("PAIMON_PYTHON", ".venv-paimon"), "tests.world.paimon_worker", folder)


def pypaimon(folder: Path) -> Worker:
    """Return the process with pypaimon."""
    return Worker(python_of("PYPAIMON_PYTHON", ".venv-pypaimon"), "tests.world.pypaimon_worker", folder)


class _Paimon(Upserts):
    """A player that appends to a table of Paimon with a primary key."""

    dialect = "spark"
    prefix: ClassVar[str]

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.worker = worker
        self.names = (f"{self.prefix}d.t{number}" for number in itertools.count())
        self.files = (worker.folder / f"{self.dialect}{number}.parquet" for number in itertools.count())
        self.snapshots: list[int] = []

    def options(self, shape: Shape) -> dict[str, str]:
        """Return the options of the table."""
        found = {"bucket": "1"}
        found |= {"sequence.field": ",".join(shape.watermark)} if shape.watermark else {}
        return found | ({"rowkind.field": _KIND} if shape.tombstone else {})

    def made_file(self, batch: pa.Table) -> str:
        """Write the rows of a commit to a file, with their row kinds if the table has them."""
        if self.shape.tombstone:
            gone = pc.fill_null(batch.column(self.shape.tombstone), pa.scalar(False))
            batch = batch.append_column(_KIND, pc.if_else(gone, pa.scalar("-D"), pa.scalar("+I")))
        path = next(self.files)
        pq.write_table(batch, path)
        return str(path)

    @abstractmethod
    def table_at(self, snapshot: int | None) -> pa.Table:
        """Return the rows of a snapshot, or of the newest one."""

    def rows(self) -> list[tuple[Any, ...]]:
        return as_tuples(self.table_at(None), self.shape)

    def rows_at(self, version: int) -> list[Row]:
        found = self.table_at(self.snapshots[version - 1]).select(self.shape.names)
        return [dict(row) for row in found.to_pylist()]


class PaimonMerge(_Paimon):
    """Paimon in Spark, by an append to the table."""

    version = PACKAGE.rpartition(":")[2]
    prefix = "paimon."

    def make(self, shape: Shape) -> None:
        self.table, self.snapshots = next(self.names), []
        columns = [f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in shape.columns]
        columns += [f"{_KIND} STRING"] if shape.tombstone else []
        options = {"primary-key": ",".join(shape.key), **self.options(shape)}
        told = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
        self.worker.ask("run", text=f"CREATE TABLE {self.table} ({', '.join(columns)}) TBLPROPERTIES ({told})")

    def write(self, batch: pa.Table) -> None:
        self.worker.ask("append", table=self.table, path=self.made_file(batch))
        newest = f"SELECT max(snapshot_id) FROM `{self.table.replace('.', '`.`')}$snapshots`"
        self.snapshots.append(self.worker.ask("number", text=newest))

    def table_at(self, snapshot: int | None) -> pa.Table:
        at = "" if snapshot is None else f" VERSION AS OF {snapshot}"
        return _read(self.worker, next(self.files), f"SELECT * FROM {self.table}{at}")


class PaimonStatements(Oracle):
    """Paimon's own statements in Spark, on a table without a key."""

    dialect = "spark"

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.worker = worker
        self.files = (worker.folder / f"statements{number}.parquet" for number in itertools.count())
        self.table = "paimon.d.plain"

    def run(self, text: str) -> None:
        """Run a statement of Spark 4 in Spark 3.5, with quotes escaped by a backslash."""
        escaped = _TEXT.sub(lambda found: "'" + found[1].replace("''", "\\'") + "'", text)
        with_code(lambda text: self.worker.ask("run", text=text), escaped)

    def rows(self) -> list[tuple[Any, ...]]:
        return as_tuples(_read(self.worker, next(self.files), f"SELECT * FROM {self.table}"), self.shape)

    def text(self, statement: Statement) -> str:
        return spark_text(statement, self.table, self.shape)


def taken_by_paimon(statement: Statement) -> bool:
    """Return whether Paimon knows a statement; 0.9 cannot resolve the columns of WHEN NOT MATCHED BY SOURCE."""
    return taken_by_spark(statement) and all(case.when != BY_SOURCE for case in statement.cases)


def _read(worker: Worker, path: Path, query: str) -> pa.Table:
    worker.ask("rows", text=query, path=str(path))
    return pq.read_table(path)


class PyPaimon(_Paimon):
    """pypaimon, by its batch writer."""

    prefix = ""

    def make(self, shape: Shape) -> None:
        self.table, self.snapshots = next(self.names), []
        path = self.made_file(schema_of(shape).empty_table())
        self.worker.ask("create", table=self.table, path=path, key=shape.key, options=self.options(shape))

    def write(self, batch: pa.Table) -> None:
        self.snapshots.append(self.worker.ask("append", table=self.table, path=self.made_file(batch)))

    def table_at(self, snapshot: int | None) -> pa.Table:
        path = next(self.files)
        self.worker.ask("rows", table=self.table, path=str(path), snapshot=snapshot)
        return pq.read_table(path)
