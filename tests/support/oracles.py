"""Plain tables in other engines, played like adapters: DuckDB, PostgreSQL, and Delta's and Iceberg's own."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import duckdb
import psycopg
from pyspark.sql import SparkSession

from tests.support.foreign import hadoop_catalog
from trinity.errors import ErrorCode, TrinityError
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.expressions import literal_sql, type_sql
from trinity_conformance.model.programs import Counts, DmlModel, Effect
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import BY_SOURCE, MATCHED, NOT_MATCHED, Case, Statement
from trinity_conformance.model.tables import Changed, Row
from trinity_conformance.model.values import Json
from trinity_conformance.playing.faults import Injection
from trinity_conformance.playing.subject import LogRow, Outcome, Unsupported, Writer
from trinity_conformance.playing.traces import Executor, Fault, Upsert


class Oracle(ABC):
    """A table of another engine. Programs of statements do not compact, travel in time or change columns."""

    durable = False
    dialect: ClassVar[str]

    def __init__(self) -> None:
        self.left = Counter[str]()
        self.shape = Shape((), ())
        self.commits = 0
        self.table = "t"

    def executed_by(self, executor: Executor) -> None:
        """Do nothing: another engine executes the statements."""

    def read_elsewhere(self) -> None:
        return None

    def wrong_statistics(self) -> None:
        return None

    def inject(self, fault: Fault) -> AbstractContextManager[Injection]:
        """Inject nothing: the engine's storage is its own."""
        return nullcontext(Injection(fault))

    @abstractmethod
    def run(self, text: str) -> int | None:
        """Run a statement, and return the number of rows that it changed; None where the engine does not report it."""

    @abstractmethod
    def rows(self) -> list[tuple[Any, ...]]:
        """Return all rows of the table."""

    def create(self, shape: Shape) -> None:
        self.shape = replace(shape, partition_by=(), properties={})
        self.commits = 0
        self.run(f"DROP TABLE IF EXISTS {self.table}")
        self.run(self.ddl(shape))

    def ddl(self, shape: Shape) -> str:
        columns = [
            f"{c.name} {type_sql(c.type, self.dialect)}{'' if c.nullable else ' NOT NULL'}" for c in shape.columns
        ]
        return f"CREATE TABLE {self.table} ({', '.join(columns)})"

    def upsert(self, step: Upsert) -> Outcome:
        rows = (
            ", ".join(literal_sql(c.type, v, self.dialect) for c, v in zip(self.shape.columns, row, strict=True))
            for row in step.rows
        )
        self.run(f"INSERT INTO {self.table} VALUES {', '.join(f'({row})' for row in rows)}")
        self.commits += 1
        return Outcome(self.commits)

    def change(self, statement: Statement) -> Counts:
        """Run a statement, and return its counts. Engines report only the total; counts by kind are the model's."""
        counts = self.model().effect(statement).counts
        changed = self.run(self.text(reachable(statement)))
        if changed is None:
            changed = counts.affected
        self.commits += changed > 0
        return counts if changed == counts.affected else Counts(changed)

    def text(self, statement: Statement) -> str:
        """Return the statement in the engine's dialect."""
        return statement.sql(self.table, self.shape, self.dialect)

    def model(self) -> DmlModel:
        """Return a model of the table's present rows."""
        model = DmlModel(self.shape)
        model.upsert(tuple(row.values()) for row in self.read())
        return model

    def read(
        self,
        version: Any = None,
        timestamp: datetime | None = None,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        return [dict(zip(self.shape.names, row, strict=True)) for row in self.rows()]

    def history(self) -> list[tuple[Any, datetime]]:
        return [(number, datetime(2024, 1, 1)) for number in range(self.commits)]

    def changes(self, after: Any) -> list[Changed]:
        raise Unsupported("a change feed, which no other engine has")

    def reopen(self) -> None:
        """Do nothing: the table stays open."""

    def another(self, how: int) -> Writer:
        raise NotImplementedError

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        raise NotImplementedError

    def delete(self, keys: Sequence[tuple[Json, ...]] | None, condition: Condition | None) -> Outcome:
        raise NotImplementedError

    def compact(self, full: bool) -> None:
        raise NotImplementedError

    def resolve(self) -> None:
        raise NotImplementedError

    def vacuum(self) -> None:
        raise NotImplementedError

    def log(self) -> list[LogRow]:
        raise NotImplementedError


def reachable(statement: Statement) -> Statement:
    """Return the statement without WHENs that follow an unconditional one of their kind, which engines refuse."""
    kept: list[Case] = []
    for case in statement.cases:
        if not any(k.when == case.when and k.condition is None for k in kept):
            kept.append(case)
    return replace(statement, cases=tuple(kept))


def accepted(statement: Statement, effect: Effect) -> bool:
    """Return whether a statement also succeeds in an engine that casts constants even if no row needs them."""
    return not effect.refused and not too_wide(statement)


def too_wide(statement: Statement) -> bool:
    """Return whether a number may not fit its column."""
    return str(2**40) in json.dumps([[n, e.to_json()] for c in statement.cases for n, e in c.values or () if n != "b"])


def said_by_formats(statement: Statement, effect: Effect) -> bool:
    """Return whether the formats' own Spark writers accept a statement, and with the same effect."""
    if not accepted(statement, effect) or effect.faults or (statement.kind != "MERGE" and statement.source):
        return False
    if "several-matches" in effect.saw:  # refused, even if at most one of them is selected
        return False
    subqueries = "SELECT q.m" in statement.sql("t", Shape((), ()), "spark")
    return not subqueries and all(case.action != "DO NOTHING" for case in statement.cases)


class DuckDb(Oracle):
    """A DuckDB database in memory."""

    dialect = "duckdb"

    def __init__(self) -> None:
        super().__init__()
        self.connection = duckdb.connect()

    def run(self, text: str) -> int:
        found = self.connection.execute(text).fetchall()
        return int(found[0][0]) if found else 0

    def rows(self) -> list[tuple[Any, ...]]:
        return self.connection.execute(f"SELECT * FROM {self.table}").fetchall()


_REFUSALS: Final[dict[type[psycopg.Error], ErrorCode]] = {
    psycopg.errors.CardinalityViolation: "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
    psycopg.errors.NotNullViolation: "CONSTRAINT_VIOLATION",
    psycopg.errors.NumericValueOutOfRange: "NUMERIC_VALUE_OUT_OF_RANGE",
}


class Postgres(Oracle):
    """A temporary table in PostgreSQL, on one connection. PostgreSQL's errors are raised with Trinity's codes.

    Args:
        server: psycopg's connection options.

    Attributes:
        refused: the codes of the errors so far.
    """

    dialect = "postgres"

    def __init__(self, server: dict[str, str]) -> None:
        super().__init__()
        self.connection = psycopg.connect(**server, autocommit=True)  # type: ignore[arg-type]
        self.table = "pg_temp.t"
        self.refused: set[ErrorCode] = set()

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @property
    def by_source(self) -> bool:
        """Whether the server supports WHEN NOT MATCHED BY SOURCE."""
        return self.connection.info.server_version >= 170000

    def run(self, text: str) -> int:
        try:
            return self.connection.execute(text.encode()).rowcount
        except tuple(_REFUSALS) as error:
            self.refused.add(_REFUSALS[type(error)])
            raise TrinityError(_REFUSALS[type(error)], str(error)) from error

    def rows(self) -> list[tuple[Any, ...]]:
        return self.connection.execute("SELECT * FROM pg_temp.t").fetchall()


_KINDS: Final = (MATCHED, NOT_MATCHED, BY_SOURCE)


def spark_text(statement: Statement, table: str, shape: Shape) -> str:
    """Return a statement in the dialect of the formats' own Spark writers."""
    # Spark requires this order of the kinds, and a row has only one kind
    cases = tuple(sorted(reachable(statement).cases, key=lambda case: _KINDS.index(case.when)))
    text = replace(statement, cases=cases).sql(table, shape, "spark")
    text = text.replace("INSERT VALUES", f"INSERT ({', '.join(shape.names)}) VALUES")
    if statement.source is None:
        return text
    source = statement.source.sql(table, "spark")  # the columns of VALUES must be named inside
    return text.replace(source, f"(SELECT * FROM {source}) AS s", 1)


class _Native(Oracle):
    """A table of a format's own Spark writer."""

    dialect = "spark"
    provider: ClassVar[str]

    def __init__(self, spark: SparkSession, table: str) -> None:
        super().__init__()
        self.spark = spark
        self.table = table

    def ddl(self, shape: Shape) -> str:
        partitions = f" PARTITIONED BY ({', '.join(shape.partition_by)})" if shape.partition_by else ""
        return f"{super().ddl(shape)} USING {self.provider}{partitions}"

    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(f"SELECT * FROM {self.table}").collect()]

    def text(self, statement: Statement) -> str:
        return spark_text(statement, self.table, self.shape)

    def run(self, text: str) -> None:
        self.spark.sql(text)


class NativeDelta(_Native):
    """A Delta table that Delta's own MERGE, UPDATE and DELETE change."""

    provider = "delta"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._tables = (f"delta.`{folder}/native{number}`" for number in itertools.count())
        super().__init__(spark, next(self._tables))

    def create(self, shape: Shape) -> None:
        self.table = next(self._tables)  # DROP TABLE keeps the folder
        super().create(shape)


class NativeIceberg(_Native):
    """An Iceberg table that Iceberg's own MERGE, UPDATE and DELETE change."""

    provider = "iceberg"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(hadoop_catalog(folder), "files.ns.native")
