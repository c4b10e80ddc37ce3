"""Bad input (L8): each case must be refused with its code, name what is wrong, and leave the table as before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

import pyarrow as pa

from trinity import Column
from trinity.errors import TrinityError
from trinity.spi import arrow_type
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.refused import why_not_refused
from trinity_conformance.playing.subject import LeftToSpark, TrinitySubject

_CHECK: Final = "bad-input"
_TYPES: Final = {"k": "int", "w": "bigint", "gone": "boolean", "d": "decimal(5,2)", "s": "varchar(3)", "n": "int"}
_GOOD: Final[Mapping[str, Any]] = {"k": 9, "w": 9, "gone": None, "d": None, "s": "x", "n": 9}


@dataclass(frozen=True)
class Bench:
    """A session, its Spark or None, and a table ``c.default.refusals`` with two rows, on which bad input is tried."""

    session: Any
    spark: Any
    table: Any

    def upsert(self, types: Mapping[str, str] | None = None, spark: bool = False, **values: Any) -> None:
        """Upsert one row that is good except for the given values and types; the type ``-`` omits a column."""
        kinds = {n: t for n, t in {**_TYPES, **(types or {})}.items() if t != "-"}
        row = {**_GOOD, **values}
        columns = [pa.array([row.get(n)], arrow_type(t)) for n, t in kinds.items()]
        data = pa.Table.from_arrays(columns, names=list(kinds))
        self.table.upsert(self.spark.createDataFrame(data) if spark else data)

    def read(self, **of: Any) -> pa.Table:
        """Read the table, or a version of it."""
        return self.table.to_arrow(**of) if self.session.engine == "local" else self.table.to_df(**of).toArrow()

    def create(self, properties: Mapping[str, str] | None = None, name: str = "made", **types: str) -> None:
        """Try to make a table with key ``k`` and further columns."""
        columns = [Column(n, t) for n, t in {"k": "int", "w": "bigint", "a": "array<int>", **types}.items()]
        self.session.create_table(f"c.default.{name}", columns, primary_key=["k"], properties=properties)

    def checked(self, n: int) -> None:
        """Upsert into a new table with a CHECK constraint: the adapter has to keep the constraint."""
        columns = [Column("k", "int"), Column("n", "int")]
        made = self.session.create_table("c.default.checked", columns, primary_key=["k"], checks={"few": "n < 100"})
        try:
            made.upsert(pa.table({"k": pa.array([1], pa.int32()), "n": pa.array([n], pa.int32())}))
        finally:
            self.session.drop_table("c.default.checked")

    def drop_schema_with_table(self) -> None:
        """Try to drop a schema that holds a table, which has to stay."""
        self.session.create_schema("c.held")
        self.session.create_table("c.held.t", [Column("k", "int")])
        try:
            self.session.drop_schema("c.held")
        except TrinityError:
            self.session.table("c.held.t").to_arrow()
            raise
        finally:
            self.session.drop_schema("c.held", if_exists=True, cascade=True)


@dataclass(frozen=True)
class Refusal:
    """One bad input.

    Attributes:
        name: what is wrong.
        codes: error codes; the error must have one of them.
        names: words that the message must contain.
        action: uses the bad input.
        of_spark: whether the bad input is a DataFrame.
    """

    name: str
    codes: frozenset[str]
    names: tuple[str, ...]
    action: Callable[[Bench], Any]
    of_spark: bool


def _case(name: str, codes: str, names: str, action: Callable[[Bench], Any]) -> Refusal:
    return Refusal(name, frozenset(codes.split()), tuple(names.split()), action, name.endswith(", Spark"))


REFUSALS: Final[tuple[Refusal, ...]] = (
    _case("NULL key, Arrow", "CONSTRAINT_VIOLATION", "k", lambda b: b.upsert(k=None)),
    _case("NULL key, Spark", "CONSTRAINT_VIOLATION", "k", lambda b: b.upsert(k=None, spark=True)),
    _case("missing key column", "CONSTRAINT_VIOLATION COLUMN_NOT_FOUND", "k", lambda b: b.upsert({"k": "-"})),
    _case("NULL in a NOT NULL column", "CONSTRAINT_VIOLATION", "n", lambda b: b.upsert(n=None)),
    _case("missing NOT NULL column", "CONSTRAINT_VIOLATION COLUMN_NOT_FOUND", "n", lambda b: b.upsert({"n": "-"})),
    _case("unknown column, Arrow", "COLUMN_NOT_FOUND", "extra", lambda b: b.upsert({"extra": "int"})),
    _case("unknown column, Spark", "COLUMN_NOT_FOUND", "extra", lambda b: b.upsert({"extra": "int"}, spark=True)),
    _case("repeated column", "DUPLICATE_COLUMN_NAME", "K", lambda b: b.upsert({"K": "int"}, K=1)),
    _case("text for a number, Arrow", "TYPE_MISMATCH", "n", lambda b: b.upsert({"n": "string"}, n="many")),
    _case("text for a number, Spark", "TYPE_MISMATCH", "n", lambda b: b.upsert({"n": "string"}, n="many", spark=True)),
    _case("number too large, Arrow", "NUMERIC_VALUE_OUT_OF_RANGE", "n", lambda b: b.upsert({"n": "bigint"}, n=2**40)),
    _case("number too large, Spark", "NUMERIC_VALUE_OUT_OF_RANGE", "n",
          lambda b: b.upsert({"n": "bigint"}, n=2**40, spark=True)),
    _case("text too long", "CONSTRAINT_VIOLATION INVALID_ARGUMENTS TYPE_MISMATCH NUMERIC_VALUE_OUT_OF_RANGE", "s",
          lambda b: b.upsert(s="abcd")),
    _case("row that a CHECK forbids", "CONSTRAINT_VIOLATION", "few n", lambda b: b.checked(100)),
    _case("append to a keyed table", "INVALID_ARGUMENTS", "upsert", lambda b: b.table.append(pa.table({"k": [1]}))),
    _case("delete by an unknown column", "COLUMN_NOT_FOUND", "nope", lambda b: b.table.delete("nope = 1")),
    _case("delete by no condition", "SYNTAX_ERROR", "", lambda b: b.table.delete("k = = 1")),
    _case("version that never was", "INVALID_ARGUMENTS", "", lambda b: b.read(version=10**6)),
    _case("version and timestamp", "INVALID_ARGUMENTS", "version timestamp",
          lambda b: b.read(version=1, timestamp="2024-01-01")),
    _case("time before the table", "INVALID_ARGUMENTS", "1970", lambda b: b.read(timestamp="1970-01-02")),
    _case("no duration", "INVALID_ARGUMENTS", "soon", lambda b: b.table.vacuum(retain="soon")),
    _case("table missing", "TABLE_NOT_FOUND", "refusal", lambda b: b.session.table("c.default.refusal")),
    _case("schema missing", "SCHEMA_NOT_FOUND", "nowhere", lambda b: b.session.table("c.nowhere.t")),
    _case("schema exists", "SCHEMA_ALREADY_EXISTS", "default", lambda b: b.session.create_schema("c.default")),
    _case("schema with a table", "SCHEMA_NOT_EMPTY", "held", lambda b: b.drop_schema_with_table()),
    _case("table exists", "TABLE_ALREADY_EXISTS", "refusals", lambda b: b.create(name="refusals")),
    _case("unknown option", "INVALID_TABLE_PROPERTY", "watermark-keys watermark-key",
          lambda b: b.create({"watermark-keys": "w"})),
    _case("option in two spellings", "INVALID_TABLE_PROPERTY", "watermark-key",
          lambda b: b.create({"watermark-key": "w", "watermark_key": "w"})),
    _case("watermark and sequence", "INVALID_TABLE_PROPERTY", "watermark-key sequence.field",
          lambda b: b.create({"watermark-key": "w", "sequence.field": "w"})),
    _case("watermark of no column", "COLUMN_NOT_FOUND", "nope", lambda b: b.create({"watermark-key": "nope"})),
    _case("watermark twice", "DUPLICATE_COLUMN_NAME", "w", lambda b: b.create({"watermark-key": "w,w"})),
    _case("nested watermark", "INVALID_TABLE_PROPERTY", "a", lambda b: b.create({"watermark-key": "a"})),
    _case("nested tombstone", "INVALID_TABLE_PROPERTY", "a", lambda b: b.create({"tombstone-key": "a"})),
    _case("composite tombstone", "INVALID_TABLE_PROPERTY", "tombstone-key",
          lambda b: b.create({"tombstone-key": "w,g"}, g="boolean")),
    _case("nested key", "INVALID_TABLE_PROPERTY NOT_SUPPORTED", "k", lambda b: b.create(k="array<int>")),
    _case("column twice", "DUPLICATE_COLUMN_NAME", "W", lambda b: b.create(W="int")),
    _case("unknown type", "TYPE_MISMATCH", "nonsense", lambda b: b.create(x="nonsense")),
)  # fmt: skip
"""All bad inputs."""


def refuse_all(subject: TrinitySubject, tally: Tally, cases: Sequence[Refusal] = REFUSALS) -> list[NonConformance]:
    """Try bad inputs on each executor, and return the ones that were not refused as required."""
    columns = [Column(n, t, nullable=n not in ("k", "n")) for n, t in _TYPES.items()]
    table = subject.session.create_table(
        "c.default.refusals", columns, primary_key=["k"], properties={"watermark-key": "w", "tombstone-key": "gone"}
    )
    bench = Bench(subject.session, subject.spark, table)
    bench.upsert(k=1)
    bench.upsert(k=2)
    before = _state(bench)
    found: list[NonConformance] = []
    for executor, case in product(subject.executors, cases):
        if case.of_spark and executor == "local":
            continue
        subject.executed_by(executor)
        try:
            wrong = why_not_refused(partial(subject.run, partial(case.action, bench)), case.codes, case.names)
        except LeftToSpark:
            continue
        if wrong is not None:
            failure = NonConformance(_CHECK, f"{case.name}: {wrong}")
            failure.case = Case(_CHECK, case.name, executor, steps=(case.name,))
            found.append(failure)
        tally.coverage.saw("refusal of a DataFrame" if case.of_spark else "refusal")
        tally.observations[_CHECK] += 1
    after = _state(bench)
    if after != before:
        found.append(NonConformance(_CHECK, f"after refusals the table reads {after}, before {before}"))
    return found


def _state(bench: Bench) -> tuple[Any, ...]:
    rows = bench.read().to_pylist()
    return (
        sorted(str(r) for r in rows),
        bench.table.history().count(),
        bench.session.connector("c").metadata.list_tables("default"),
    )
