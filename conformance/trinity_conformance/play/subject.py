"""Subjects on which a history is played. The one for adapters uses Trinity's public API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

import trinity
from trinity.calls.spark import spark_errors
from trinity.errors import TrinityError
from trinity.spi import arrow_type
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.programs import Counts
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.tables import Changed, Row
from trinity_conformance.model.values import Json, decode
from trinity_conformance.play.names import Names
from trinity_conformance.play.traces import Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LogRow", "Outcome", "Subject", "TrinitySubject", "Unsupported", "Writer"]


class Unsupported(Exception):
    """The adapter raised NOT_SUPPORTED when a table of some shape was made; or the player cannot take a step."""


@dataclass(frozen=True)
class Outcome:
    """The result of a write: the table's version after it, and whether it was skipped as a retry (L4)."""

    version: Any
    skipped: bool = False


@dataclass(frozen=True)
class LogRow:
    """One row of ``log()``: the row version, the number of its commit, and its place in arrival order."""

    row: Row
    commit: Any
    place: tuple[Any, ...]


class Writer(Protocol):
    """The writes of an engine to a table under test."""

    def upsert(self, step: Upsert) -> Outcome:
        """Append one commit."""

    def change(self, statement: Statement) -> Counts:
        """Run a MERGE, UPDATE or DELETE; return its reported counts (M5). Raises TrinityError."""

    def compact(self, full: bool) -> None:
        """Compact the table."""

    def resolve(self) -> None:
        """Compact by deleting rows by position. Raises :class:`Unsupported`."""

    def vacuum(self) -> None:
        """Vacuum, and keep no old version."""

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        """Change columns (see :class:`~trinity_conformance.play.traces.Alter`). Raises :class:`Unsupported`."""


class Subject(Writer, Protocol):
    """A table under test. There is one at a time: :meth:`create` begins with a new one."""

    durable: bool

    def create(self, shape: Shape) -> None:
        """Make an empty table. Raises :class:`Unsupported`."""

    def delete(self, keys: Sequence[tuple[Json, ...]] | None, condition: Condition | None) -> Outcome:
        """Run a writer's delete."""

    def reopen(self) -> None:
        """Close the session and open a new one."""

    def read(
        self,
        version: Any = None,
        timestamp: datetime | None = None,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        """Return the merged read."""

    def log(self) -> list[LogRow]:
        """Return all row versions, in arrival order."""

    def changes(self, after: Any) -> list[Changed]:
        """Return the change feed since a version, in no order. Raises :class:`Unsupported`."""

    def history(self) -> list[tuple[Any, datetime]]:
        """Return version and time of the readable commits, by version."""

    def another(self, how: int) -> Writer:
        """Return another engine, which writes the same table (see :class:`~trinity_conformance.play.traces.Other`)."""


class TrinitySubject:
    """An adapter, found by its entry point's name, and used only through the public API.

    Args:
        connector: name of the entry point.
        spark: the Spark session that all histories share.
        folder: an empty folder, the catalog's warehouse.
        options: further settings of the catalog; a ``warehouse`` among them replaces the folder, and must be as empty.
    """

    def __init__(
        self, connector: str, spark: SparkSession, folder: Path, options: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self._connector = connector
        self._spark = spark
        self._folder = folder
        self._options = options
        self._numbers = count()
        self._name = ""
        self._shape = Shape((), ())
        self._names = Names(self._shape)
        self._session = self._connect()
        self.durable = self._survives()

    def _connect(self) -> trinity.Session:
        settings = {"connector": self._connector, "warehouse": str(self._folder), **self._options}
        return trinity.connect(spark=self._spark, catalogs={"c": settings}, catalog="c")

    def _survives(self) -> bool:
        """Return whether a table still exists after reopening, by a probe."""
        probe = Shape((Column("k", "int", nullable=False),), ("k",))
        self.create(probe)
        name = self._name
        self._session.close()
        self._session = self._connect()
        try:
            self._session.table(name)
        except TrinityError as error:
            if error.code != "TABLE_NOT_FOUND":
                raise
            return False
        return True

    @property
    def session(self) -> trinity.Session:
        """The open session, for checks that need more than a history."""
        return self._session

    @property
    def _table(self) -> Any:
        return self._session.table(self._name)

    def close(self) -> None:
        """Close the session; Spark keeps running."""
        self._session.close()

    def create(self, shape: Shape) -> None:
        self.adopt(shape)
        try:
            self._session.sql(shape.ddl(self._name))
        except TrinityError as error:
            if error.code == "NOT_SUPPORTED":
                raise Unsupported(error.message) from error
            raise

    def adopt(self, shape: Shape) -> None:
        """Begin with a table of a new name, which is about to be made."""
        self._shape, self._names = shape, Names(shape)
        self._name = f"c.default.t{next(self._numbers)}"

    def upsert(self, step: Upsert) -> Outcome:
        columns = [c for c in self._shape.columns if step.names is None or c.name in step.names]
        chunks = [self._arrow(columns, split) for split in step.splits]
        data: Any = self._frame(columns, chunks) if step.path == "spark" else pa.concat_tables(chunks)
        data = self._names.given(data)
        write = self._table.upsert if self._shape.key else self._table.append
        result = write(data, txn=step.txn)
        return Outcome(result.version, result.skipped)

    @staticmethod
    def _arrow(columns: Sequence[Column], rows: Sequence[tuple[Json, ...]]) -> pa.Table:
        schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in columns])
        arrays = [pa.array([decode(c.type, r[i]) for r in rows], schema.field(i).type) for i, c in enumerate(columns)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _frame(self, columns: Sequence[Column], chunks: Sequence[pa.Table]) -> DataFrame:
        """Return a DataFrame with one partition per chunk, in order."""
        fields = [f"{c.name} {'string' if 'char' in c.type else c.type}" for c in columns]
        frames = [self._spark.createDataFrame(chunk, schema=", ".join(fields)).coalesce(1) for chunk in chunks]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.union(frame)
        return whole

    def delete(self, keys: Sequence[tuple[Json, ...]] | None, condition: Condition | None) -> Outcome:
        if condition is not None:
            return Outcome(self._table.delete(self._names.sql(condition)).version)
        columns = [c for c in self._shape.columns if c.name in self._shape.key]
        return Outcome(self._table.delete(self._names.given(self._arrow(columns, list(keys or ())))).version)

    def refuses_changes(self) -> str | None:
        """Return the error of an adapter without row changes, or None."""
        self.create(Shape((Column("k", "int"),), ()))
        table = self._table
        try:
            table.connector.metadata.begin_merge(table.handle, {})
        except TrinityError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            return error.message
        return None

    def change(self, statement: Statement) -> Counts:
        text = self._names.statement(statement).sql(self._name, self._names.shape)
        result = self._session.sql(text, dialect=statement.dialect)
        [row] = result.toArrow().to_pylist()
        counts = Counts(row["num_updated_rows"], row["num_deleted_rows"], row["num_inserted_rows"])
        if row["num_affected_rows"] != counts.affected:
            raise ValueError(f"num_affected_rows is not the sum of the others: {row}")
        return counts

    def compact(self, full: bool) -> None:
        self._table.compact(full=full)

    def resolve(self) -> None:
        try:
            self._table.compact("resolve")
        except TrinityError as error:
            if error.code == "NOT_SUPPORTED":
                raise Unsupported(error.message) from error
            raise

    def vacuum(self) -> None:
        self._table.vacuum(retain="0 seconds")

    def reopen(self) -> None:
        if self.durable:
            self._session.close()
            self._session = self._connect()

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        before = self._table.splits().version
        try:
            for text in self._names.alter(kind, columns):
                self._session.sql(f"ALTER TABLE {self._name} {text}")
        except TrinityError as error:
            if error.code == "NOT_SUPPORTED":
                raise Unsupported(error.message) from error
            raise
        self._names.happened(before)

    def read(
        self,
        version: Any = None,
        timestamp: datetime | None = None,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        on_key = condition is not None and condition.column in self._shape.key
        where = self._names.sql(condition) if condition is not None else None
        then = version
        if timestamp is not None:
            then = max(v for v, at in self.history() if at <= timestamp)
        frame = self._table.to_df(version=version, timestamp=timestamp, where=where if on_key else None)
        if where is not None and not on_key:
            frame = frame.where(where)
        newest = then is None or then == self._table.splits().version  # others rename columns without a new version
        wanted, then = columns or self._shape.names, None if newest else then
        frame = frame.select(*self._names.shown(wanted, then))
        with spark_errors():
            found = frame.toArrow()
        if where is None:
            _check_alike(
                found, self._table.to_arrow(self._names.at(wanted, then), version=version, timestamp=timestamp)
            )
        rows: list[Row] = found.to_pylist()
        return rows

    def log(self) -> list[LogRow]:
        rows = self._table.log().toArrow().to_pylist()
        found = [
            LogRow(
                {n: r[self._names.now[n]] for n in self._shape.names},
                r["_commit_version"],
                (r["_commit_version"], r["_file"], r["_pos"]),
            )
            for r in rows
        ]
        return sorted(found, key=lambda r: r.place)

    def changes(self, after: Any) -> list[Changed]:
        frame = self._table.changes(after)
        frame = frame.select("_change_type", "_commit_version", *self._names.shown(self._shape.names, None))
        with spark_errors():
            rows = frame.toArrow().to_pylist()
        return [Changed(r.pop("_change_type"), r.pop("_commit_version"), r) for r in rows]

    def another(self, how: int) -> Writer:
        raise Unsupported("a step of another engine, of which an adapter's player has none")

    def history(self) -> list[tuple[Any, datetime]]:
        rows = self._table.history().select("version", "timestamp").toArrow().to_pylist()
        return sorted((r["version"], r["timestamp"]) for r in rows)


def _check_alike(found: pa.Table, arrow: pa.Table) -> None:
    """Check that a read without Spark found the same rows, under any names. Raises ValueError."""
    arrow = arrow.rename_columns(found.column_names).cast(found.schema)
    spark, process = (Counter(map(repr, table.to_pylist())) for table in (found, arrow))
    if spark != process:
        raise ValueError(f"to_arrow has {process - spark} more and {spark - process} less than to_df")
