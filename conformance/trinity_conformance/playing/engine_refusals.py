"""Refusals of merge engines: options (V1, A5, P1), rows (D2, D4, E2, L8) and statements (M9, M11).

Each case must fail with its code, name what is wrong, and leave the table as before, or not made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from trinity_conformance.playing.engine_options import BAD_OPTIONS, COLUMNS, BadOption
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.refused import why_not_refused
from trinity_conformance.playing.subject import LeftToSpark, TrinitySubject
from trinity_conformance.playing.traces import Executor

_CHECK: Final = "engine-options"
_PARTS: Final = "array<struct<id:int,x:int>>"


@dataclass(frozen=True)
class _Table:
    """A table for bad rows and statements.

    Attributes:
        columns: name -> type; a trailing ``!`` means NOT NULL. The key is ``k``.
        options: its properties.
        rows: the rows in it.
    """

    columns: Mapping[str, str]
    options: Mapping[str, str]
    rows: tuple[Mapping[str, Any], ...]

    def arrow(self, *rows: Mapping[str, Any]) -> pa.Table:
        """Return rows with the columns that the first of them names."""
        types = {n: arrow_type(self.columns[n].rstrip("!")) for n in rows[0]}
        return pa.table({n: pa.array([row[n] for row in rows], t) for n, t in types.items()})


_TABLES: Final[Mapping[str, _Table]] = {
    "partial": _Table(
        {"k": "int!", "g_1": "bigint", "price": "int", "top": "int", "g_2": "bigint", "stock": "int", "factor": "int",
         "number": "int!", "kind": "string"},
        {"merge-engine": "partial-update", "rowkind.field": "kind", "fields.g_1.sequence-group": "price,top",
         "fields.g_2.sequence-group": "stock,factor", "fields.top.aggregate-function": "max",
         "fields.factor.aggregate-function": "product"},
        ({"k": 1, "g_1": 5, "price": 1, "top": 1, "g_2": None, "stock": None, "factor": None, "number": 1,
          "kind": "+I"},),
    ),
    "ungrouped": _Table(
        {"k": "int!", "rank": "int", "kind": "string"},
        {"merge-engine": "partial-update", "rowkind.field": "kind"},
        ({"k": 1, "rank": 1, "kind": "+I"},),
    ),
    "totals": _Table(
        {"k": "int!", "total": "int", "top": "int", "kind": "string"},
        {"merge-engine": "aggregation", "rowkind.field": "kind", "fields.total.aggregate-function": "sum",
         "fields.top.aggregate-function": "max"},
        ({"k": 1, "total": 1, "top": 1, "kind": "+I"},),
    ),
    "sets": _Table(
        {"k": "int!", "hll": "binary", "theta": "binary", "r32": "binary", "r64": "binary", "parts": _PARTS},
        {"merge-engine": "aggregation", "fields.hll.aggregate-function": "hll_sketch",
         "fields.theta.aggregate-function": "theta_sketch", "fields.r32.aggregate-function": "rbm32",
         "fields.r64.aggregate-function": "rbm64", "fields.parts.aggregate-function": "nested_update",
         "fields.parts.nested-key": "id", "fields.parts.nested-key-null-strategy": "error"},
        ({"k": 1, "hll": None, "theta": None, "r32": None, "r64": None, "parts": [{"id": 1, "x": 1}]},),
    ),
    "first": _Table(
        {"k": "int!", "rank": "int", "kind": "string"},
        {"merge-engine": "first-row", "rowkind.field": "kind"},
        ({"k": 1, "rank": 1, "kind": "+I"},),
    ),
}  # fmt: skip
"""The tables, by name."""


@dataclass(frozen=True)
class EngineRefusal:
    """One bad row, statement or option.

    Attributes:
        name: what is wrong.
        codes: error codes; the error must have one of them.
        names: words that the message must contain.
        action: does the bad thing.
        table: the table that it changes; empty for options with which no table may be made.
    """

    name: str
    codes: frozenset[str]
    names: tuple[str, ...]
    action: Callable[[_Bench], Any]
    table: str = ""


@dataclass(frozen=True)
class _Bench:
    session: Any

    def create(self, option: BadOption) -> None:
        """Try to make a table."""
        self.make("refused", {**COLUMNS, **option.columns}, option.options)

    def make(self, name: str, columns: Mapping[str, str], options: Mapping[str, str]) -> Any:
        """Make a table; ``!`` after the type of a column means NOT NULL."""
        listed = [Column(n, t.rstrip("!"), nullable=not t.endswith("!")) for n, t in columns.items()]
        return self.session.create_table(f"c.default.{name}", listed, primary_key=["k"], properties=options)

    def upsert(self, table: str, **values: Any) -> None:
        """Upsert the table's first row under key 2, with some other values."""
        row = {**_TABLES[table].rows[0], "k": 2, **values}
        self.session.table(f"c.default.{table}").upsert(_TABLES[table].arrow(row))

    def omit(self, table: str, name: str) -> None:
        """Upsert a row without a column."""
        row = {n: v for n, v in _TABLES[table].rows[0].items() if n != name}
        self.session.table(f"c.default.{table}").upsert(_TABLES[table].arrow(row))

    def sql(self, text: str) -> None:
        """Run a statement."""
        self.session.sql(text)


def _row(name: str, codes: str, names: str, table: str, **values: Any) -> EngineRefusal:
    return EngineRefusal(
        name, frozenset(codes.split()), tuple(names.split()), lambda b: b.upsert(table, **values), table
    )


def _sql(name: str, codes: str, names: str, table: str, text: str) -> EngineRefusal:
    statement = text.replace("?", f"c.default.{table}")
    return EngineRefusal(name, frozenset(codes.split()), tuple(names.split()), lambda b: b.sql(statement), table)


def _option(option: BadOption) -> EngineRefusal:
    return EngineRefusal(option.name, frozenset(option.codes.split()), option.names, lambda b: b.create(option))


_ROWS: Final[tuple[EngineRefusal, ...]] = (
    _row("-D without option or group", "INVALID_ARGUMENTS", "kind ignore-delete", "ungrouped", kind="-D"),
    _row("-U without option or group", "INVALID_ARGUMENTS", "kind ignore-delete", "ungrouped", kind="-U"),
    _row("no row kind", "CONSTRAINT_VIOLATION INVALID_ARGUMENTS", "kind -X", "ungrouped", kind="-X"),
    _row("-D for max in a group", "INVALID_ARGUMENTS", "max top ignore-retract", "partial", kind="-D"),
    _row("-U for max in a group", "INVALID_ARGUMENTS", "max top ignore-retract", "partial", kind="-U"),
    _row("-D of 0 for product", "INVALID_ARGUMENTS", "product factor", "partial", kind="-D", g_1=None, g_2=1, factor=0),
    _row("-D for max in aggregation", "INVALID_ARGUMENTS", "max top ignore-retract", "totals", kind="-D"),
    _row("NULL in a NOT NULL column", "CONSTRAINT_VIOLATION", "number", "partial", number=None),
    EngineRefusal("missing NOT NULL column", frozenset(("CONSTRAINT_VIOLATION", "COLUMN_NOT_FOUND")), ("number",),
                  lambda b: b.omit("partial", "number"), "partial"),
    _row("no HLL sketch", "INVALID_ARGUMENTS", "hll", "sets", hll=b"nonsense"),
    _row("no theta sketch", "INVALID_ARGUMENTS", "theta", "sets", theta=b"nonsense"),
    _row("no 32-bit bitmap", "INVALID_ARGUMENTS", "r32", "sets", r32=b"nonsense"),
    _row("no 64-bit bitmap", "INVALID_ARGUMENTS", "r64", "sets", r64=b"nonsense"),
    _row("empty bytes for a bitmap", "INVALID_ARGUMENTS", "r32", "sets", r32=b""),
    _row("NULL in a nested key", "CONSTRAINT_VIOLATION", "parts id", "sets", parts=[{"id": None, "x": 1}]),
    _row("-D for first-row", "INVALID_ARGUMENTS", "first-row ignore-delete", "first", kind="-D"),
    _row("-U for first-row", "INVALID_ARGUMENTS", "first-row ignore-delete", "first", kind="-U"),
)  # fmt: skip

_STATEMENTS: Final[tuple[EngineRefusal, ...]] = (
    _sql("UPDATE of a column with a function", "NOT_SUPPORTED", "top", "partial", "UPDATE ? SET top = 2"),
    _sql("UPDATE of a sum", "NOT_SUPPORTED", "total", "totals", "UPDATE ? SET total = 2"),
    _sql("UPDATE of a group never written", "INVALID_ARGUMENTS", "stock g_2", "partial", "UPDATE ? SET stock = 2"),
    _sql("UPDATE with a NULL sequence", "INVALID_ARGUMENTS", "g_2", "partial", "UPDATE ? SET stock = 2, g_2 = NULL"),
    _sql("UPDATE that would lose", "INVALID_ARGUMENTS", "g_1", "partial", "UPDATE ? SET price = 2, g_1 = 4"),
    _sql("UPDATE of first-row", "NOT_SUPPORTED", "first-row", "first", "UPDATE ? SET rank = 2"),
    _sql("DELETE of first-row", "NOT_SUPPORTED", "first-row", "first", "DELETE FROM ? WHERE k = 1"),
    _sql("MERGE of first-row, MATCHED", "NOT_SUPPORTED", "first-row", "first",
         "MERGE INTO ? AS t USING (SELECT 1 AS k) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET rank = 2"),
    EngineRefusal("writer's delete of first-row", frozenset(("NOT_SUPPORTED",)), ("first-row",),
                  lambda b: b.session.table("c.default.first").delete("k = 1"), "first"),
)  # fmt: skip

ENGINE_REFUSALS: Final[tuple[EngineRefusal, ...]] = (*map(_option, BAD_OPTIONS), *_ROWS, *_STATEMENTS)
"""All cases."""


def refuse_engines(
    subject: TrinitySubject, tally: Tally, cases: Sequence[EngineRefusal] = ENGINE_REFUSALS
) -> list[NonConformance]:
    """Try bad options on each executor, and return the ones that were not refused as required."""
    bench = _Bench(subject.session)
    try:
        for name, table in _TABLES.items():
            bench.make(name, table.columns, table.options).upsert(table.arrow(*table.rows))
    except TrinityError as error:
        return [NonConformance(_CHECK, f"a legal table was refused: {error}")]
    before = {name: _rows(subject, name) for name in _TABLES}
    found = [
        failure
        for executor, case in product(subject.executors, cases)
        for failure in _tried(subject, executor, bench, case, tally)
    ]
    after = {name: _rows(subject, name) for name in _TABLES}
    if after != before:
        found.append(NonConformance(_CHECK, f"after refusals the tables read {after}, before {before}"))
    return found


def _tried(
    subject: TrinitySubject, executor: Executor, bench: _Bench, case: EngineRefusal, tally: Tally
) -> Iterator[NonConformance]:
    """Yield the faults in how a case was refused: a wrong error, or a changed table."""
    for wrong in _wrongs(subject, executor, bench, case, tally):
        failure = NonConformance(_CHECK, f"{case.name}: {wrong}")
        failure.case = Case(_CHECK, case.name, executor, steps=(case.name,))
        yield failure


def _wrongs(
    subject: TrinitySubject, executor: Executor, bench: _Bench, case: EngineRefusal, tally: Tally
) -> Iterator[str]:
    before = _state(bench, case)
    subject.executed_by(executor)
    try:
        wrong = why_not_refused(partial(subject.run, partial(case.action, bench)), case.codes, case.names)
    except LeftToSpark:
        return
    tally.coverage.saw("engine-refusal")
    tally.observations[_CHECK] += 1
    if wrong is not None:
        yield wrong
    after = _state(bench, case)
    if after != before:
        yield f"it left {after}, where {before} was"


def _state(bench: _Bench, case: EngineRefusal) -> Any:
    """Return the version of the table, or the names of all tables."""
    if case.table:
        return bench.session.table(f"c.default.{case.table}").splits().version
    return bench.session.connector("c").metadata.list_tables("default")


def _rows(subject: TrinitySubject, name: str) -> list[str] | None:
    """Return the rows of a table; None where Spark alone could read them."""
    try:
        read = subject.run(lambda: subject.session.table(f"c.default.{name}").to_arrow())
    except LeftToSpark:
        return None
    return sorted(map(str, read.to_pylist()))
