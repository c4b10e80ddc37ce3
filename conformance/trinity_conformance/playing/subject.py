"""Subjects on which a history is played. The one for adapters uses Trinity's public API."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

import trinity
from trinity.calls import spark_errors
from trinity.errors import TrinityError
from trinity.spi import Capability, Format, arrow_type
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.programs import Counts
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.tables import Changed, Row
from trinity_conformance.model.values import Json, decode
from trinity_conformance.playing.differences import NonConformance, with_rounded_totals
from trinity_conformance.playing.elsewhere import read_elsewhere
from trinity_conformance.playing.faults import Injection, inject
from trinity_conformance.playing.names import Names
from trinity_conformance.playing.needs import of_alteration, of_shape
from trinity_conformance.playing.statistics import wrong_statistics
from trinity_conformance.playing.traces import Executor, Fault, Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_UNION = "spark.sql.unionOutputPartitioning"
_NEEDS_SPARK = " needs Spark: "
_REMEDY = ". It runs with engine='local'"


class Unsupported(Exception):
    """The adapter refused an undeclared feature with NOT_SUPPORTED, or the player cannot play a step."""


class LeftToSpark(Exception):
    """The step needs Spark, for this reason, and there is none. Nothing has been changed."""


@dataclass(frozen=True)
class Outcome:
    """The result of a write.

    Attributes:
        version: the table's version after it.
        skipped: whether it was skipped as a retry (L4).
        files: how many files it added.
    """

    version: Any
    skipped: bool = False
    files: int = 0


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
        """Change columns (see :class:`~trinity_conformance.playing.traces.Alter`). Raises :class:`Unsupported`."""


class Subject(Writer, Protocol):
    """A table under test. There is one at a time: :meth:`create` begins with a new one.

    Attributes:
        durable: whether tables survive a reopening.
        left: why this process left work to Spark, and how often.
    """

    durable: bool
    left: Counter[str]

    def executed_by(self, executor: Executor) -> None:
        """Let an executor execute the next steps. Spark executes the rest, or :class:`LeftToSpark` is raised."""

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

    def read_elsewhere(self) -> list[Row] | None:
        """Return the merged read as a process sees it that has just begun; None where none could."""

    def wrong_statistics(self) -> str | None:
        """Return the first error in the statistics of the newest version's files; None where they hold for each row."""

    def log(self) -> list[LogRow]:
        """Return all row versions, in arrival order."""

    def changes(self, after: Any) -> list[Changed]:
        """Return the change feed since a version, in no order. Raises :class:`Unsupported`."""

    def history(self) -> list[tuple[Any, datetime]]:
        """Return version and time of the readable commits, by version."""

    def inject(self, fault: Fault) -> AbstractContextManager[Injection]:
        """Inject a fault during the block, and yield an object that says whether it occurred."""

    def another(self, how: int) -> Writer:
        """Return another engine, which writes the same table (:class:`~trinity_conformance.playing.traces.Other`)."""


class TrinitySubject:
    """An adapter, found by its entry point's name, and used only through the public API.

    Args:
        connector: name of the entry point, or its class.
        spark: the Spark session that all histories share; None for this process alone.
        folder: an empty folder, the catalog's warehouse.
        options: further settings of the catalog; a ``warehouse`` among them replaces the folder, and must be as empty.

    Attributes:
        capabilities: the capabilities that the adapter declares, or some of them.
    """

    def __init__(
        self,
        connector: str | type[Format],
        spark: SparkSession | None,
        folder: Path,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.left = Counter[str]()
        self._executor: Executor = "spark"
        self._connector = connector
        self._spark = spark
        self._folder = folder
        self._options = options
        self._numbers = count()
        self._name = ""
        self._shape = Shape((), ())
        self._names = Names(self._shape)
        self._session = self._connect()
        self.capabilities = self._session.capabilities("c")
        self.durable = self._survives()

    def _connect(self) -> trinity.Session:
        engine: Any = "local" if self._spark is None else "auto"
        return trinity.connect(spark=self._spark, catalogs={"c": self.settings}, catalog="c", engine=engine)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the adapter's catalog."""
        return {"connector": self._connector, "warehouse": str(self._folder), **self._options}

    def executed_by(self, executor: Executor) -> None:
        self._executor = executor

    def run(self, action: Callable[[], T]) -> T:
        """Return the result of an action by the present executor, or by Spark if the executor leaves it to Spark."""
        if self._spark is not None and self._executor == "spark":
            return action()
        session, engine = self._session, self._session.engine
        session.engine = "local"
        try:
            return action()
        except TrinityError as error:
            if _NEEDS_SPARK not in error.message or _REMEDY not in error.message:
                raise
            reason = error.message.partition(_NEEDS_SPARK)[2].rpartition(_REMEDY)[0]
            self.left[reason] += 1
            if self._spark is None:
                raise LeftToSpark(reason) from error
        finally:
            session.engine = engine
        return action()

    def _sql(self, text: str, dialect: str = "spark") -> pa.Table:
        """Return the rows of a statement."""
        return self.run(lambda: self._session.sql(text, dialect=dialect).to_arrow())

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
    def executors(self) -> tuple[Executor, ...]:
        """The executors of this run."""
        return ("local",) if self._spark is None else ("spark", "local")

    @property
    def others_see(self) -> bool:
        """Whether another process sees its tables."""
        return self.durable and _importable(self._connector)

    @property
    def spark(self) -> SparkSession | None:
        """The Spark session that histories share, if there is one."""
        return self._spark

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
        """Make a table. An adapter that mistakes its own commit for another writer's fails soon, not in minutes."""
        self.adopt(shape)
        with self._may_lack(of_shape(shape)):
            self._sql(shape.without_races().ddl(self._name))

    @contextmanager
    def _may_lack(self, needs: frozenset[Capability]) -> Iterator[None]:
        """Raise :class:`Unsupported` for NOT_SUPPORTED, if the adapter does not declare all that is needed."""
        try:
            yield
        except TrinityError as error:
            if error.code != "NOT_SUPPORTED" or needs <= self.capabilities:
                raise
            raise Unsupported(error.message) from error

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let this process execute everything in the block, without Spark: faults concern one process."""
        spark, self._spark = self._spark, None
        try:
            yield
        finally:
            self._spark = spark
            self.reopen()

    def adopt(self, shape: Shape) -> None:
        """Begin with a table of a new name, which is about to be made."""
        self._shape, self._names = shape, Names(shape)
        self._name = f"c.default.t{next(self._numbers)}"

    def drop_tables(self) -> None:
        """Drop all tables; the next history makes its own."""
        for name in self._session.list_tables("c", "default"):
            self._session.drop_table(f"c.default.{name}")

    def upsert(self, step: Upsert) -> Outcome:
        columns = [c for c in self._shape.columns if step.names is None or c.name in step.names]
        chunks = [self._arrow(columns, split) for split in step.splits]
        data: Any = pa.concat_tables(chunks)
        if step.path == "spark" and self._spark is not None:
            data = self._frame(self._spark, columns, chunks)
        data = self._names.renamed(data)
        write = self._table.upsert if self._shape.key else self._table.append
        with _united_as_they_are(self._spark):
            result = self.run(lambda: write(data, txn=step.txn))
        return Outcome(result.version, result.skipped, result.files)

    @staticmethod
    def _arrow(columns: Sequence[Column], rows: Sequence[tuple[Json, ...]]) -> pa.Table:
        schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in columns])
        arrays = [pa.array([decode(c.type, r[i]) for r in rows], schema.field(i).type) for i, c in enumerate(columns)]
        return pa.Table.from_arrays(arrays, schema=schema)

    @staticmethod
    def _frame(spark: SparkSession, columns: Sequence[Column], chunks: Sequence[pa.Table]) -> DataFrame:
        """Return a DataFrame with one partition per chunk, in order."""
        fields = [f"{c.name} {'string' if 'char' in c.type else c.type}" for c in columns]
        frames = [spark.createDataFrame(chunk, schema=", ".join(fields)).coalesce(1) for chunk in chunks]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.union(frame)
        return whole

    def delete(self, keys: Sequence[tuple[Json, ...]] | None, condition: Condition | None) -> Outcome:
        columns = [c for c in self._shape.columns if c.name in self._shape.key]
        which: Any = self._names.renamed(self._arrow(columns, list(keys or ())))
        if condition is not None:
            which = self._names.sql(condition)
        return Outcome(self.run(lambda: self._table.delete(which)).version)

    def change(self, statement: Statement) -> Counts:
        text = self._names.statement(statement).sql(self._name, self._names.shape)
        [row] = self._sql(text, statement.dialect).to_pylist()
        counts = Counts(row["num_updated_rows"], row["num_deleted_rows"], row["num_inserted_rows"])
        if row["num_affected_rows"] != counts.affected:
            raise ValueError(f"num_affected_rows is not the sum of the others: {row}")
        return counts

    def compact(self, full: bool) -> None:
        self.run(lambda: self._table.compact(full=full))

    def resolve(self) -> None:
        with self._may_lack(frozenset((Capability.RESOLVE,))):
            self.run(lambda: self._table.compact("resolve"))

    def vacuum(self) -> None:
        self.run(lambda: self._table.vacuum(retain="0 seconds"))

    def reopen(self) -> None:
        if self.durable:
            self._session.close()
            self._session = self._connect()

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        before = self._table.splits().version
        with self._may_lack(of_alteration(kind)):
            for text in self._names.alter(kind, columns):
                self._sql(f"ALTER TABLE {self._name} {text}")
        self._names.happened(before)

    def read(
        self,
        version: Any = None,
        timestamp: datetime | None = None,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        then = version
        if timestamp is not None:
            then = max(v for v, at in self.history() if at <= timestamp)
        newest = then is None or then == self._table.splits().version  # some formats rename without a new version
        request = _ReadRequest(
            version, timestamp, condition, tuple(columns or self._shape.names), None if newest else then
        )
        ways = [self._by_arrow] if self._spark is None else [self._by_frame, self._by_arrow]
        found = [way(request) for way in (ways if self._executor == "spark" else reversed(ways))]
        _check_alike(self._shape, *found)
        rows: list[Row] = found[0].to_pylist()
        return rows

    def _by_frame(self, request: _ReadRequest) -> pa.Table:
        """Return what Spark reads."""
        where = None if request.condition is None else self._names.sql(request.condition)
        on_key = request.condition is not None and request.condition.column in self._shape.key
        frame = self._table.to_df(version=request.version, timestamp=request.timestamp, where=where if on_key else None)
        if where is not None and not on_key:
            frame = frame.where(where)
        with spark_errors():
            return frame.select(*self._names.select_list(request.columns, request.then)).toArrow()

    def _by_arrow(self, request: _ReadRequest) -> pa.Table:
        """Return what this process reads, or leaves to Spark."""
        where = None if request.condition is None else self._names.sql(request.condition)
        found = self.run(
            lambda: self._table.to_arrow(
                self._names.names_at(request.columns, request.then),
                where,
                version=request.version,
                timestamp=request.timestamp,
            )
        )
        return found.rename_columns(list(request.columns))

    def read_elsewhere(self) -> list[Row] | None:
        if not self.others_see:
            return None
        found = read_elsewhere(self.settings, self._name, self._names.names_at(self._shape.names))
        rows: list[Row] = found.rename_columns(list(self._shape.names)).to_pylist()
        return rows

    def wrong_statistics(self) -> str | None:
        return wrong_statistics(self._table.splits())

    def log(self) -> list[LogRow]:
        rows = self.run(lambda: self._table.log().to_arrow()).to_pylist()
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
        if Capability.TIME_TRAVEL not in self.capabilities:
            raise Unsupported("changes between versions, which the adapter does not declare")
        facts = ["_change_type", "_commit_version"]
        found = self.run(lambda: self._table.changes(after).to_arrow())
        found = found.select([*facts, *self._names.names_at(self._shape.names)])
        rows = found.rename_columns([*facts, *self._shape.names]).to_pylist()
        return [Changed(r.pop("_change_type"), r.pop("_commit_version"), r) for r in rows]

    def inject(self, fault: Fault) -> AbstractContextManager[Injection]:
        return inject(self._session.connector("c"), fault)

    def another(self, how: int) -> Writer:
        raise Unsupported("a step of another engine, of which an adapter's player has none")

    def history(self) -> list[tuple[Any, datetime]]:
        rows = self.run(lambda: self._table.history().to_arrow()).to_pylist()
        return sorted((r["version"], r["timestamp"]) for r in rows)


@dataclass(frozen=True)
class _ReadRequest:
    """A read: the rows of a version that satisfy a condition, and some of their columns.

    Attributes:
        version, timestamp: the version, as the reader specifies it; both None for the newest one.
        condition: the condition, or None.
        columns: the columns, under the model's names.
        then: the version whose names the columns have; None for the newest one.
    """

    version: Any
    timestamp: datetime | None
    condition: Condition | None
    columns: tuple[str, ...]
    then: Any


@contextmanager
def _united_as_they_are(spark: SparkSession | None) -> Iterator[None]:
    """Let a union keep the partitions of its parts: Spark 4.1 merges them into one, and a commit then has one file."""
    if spark is None:
        yield
        return
    before = str(spark.conf.get(_UNION, "true"))
    spark.conf.set(_UNION, "false")
    try:
        yield
    finally:
        spark.conf.set(_UNION, before)


def _importable(connector: str | type[Format]) -> bool:
    """Return whether another process can import an adapter."""
    if isinstance(connector, str):
        return True
    module = sys.modules.get(connector.__module__)
    return connector.__module__ != "__main__" and getattr(module, connector.__qualname__, None) is connector


def _check_alike(shape: Shape, one: pa.Table, other: pa.Table | None = None) -> None:
    """Check that both executors read the same rows, value by value; floating-point totals to nine digits (L1)."""
    if other is None:
        return
    first, second = (
        Counter(repr(with_rounded_totals(shape, row)) for row in table.to_pylist())
        for table in (one, other.cast(one.schema))
    )
    if first != second:
        text = f"one executor reads {first - second}, the other one {second - first}"
        raise NonConformance("executors", text)
