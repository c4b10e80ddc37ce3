"""Subqueries whose rows are there already: IN, EXISTS, and the value of the only row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.expressions.coercion import together
from trinity.engine.expressions.families import BOOLEAN, FLOATS, TEXTS, WHOLE
from trinity.engine.expressions.node import Compiled, Datum, Refused
from trinity.errors import TrinityError
from trinity.merge.arrow.keys import Keys
from trinity.spi import DataType, parse_given_type, type_text

__all__ = ["Rows", "among_rows", "exists", "only_value"]

_OF_ROWS: Final = frozenset({""})
"""Stands for the columns of a subquery: its value is no literal, for which Spark would pad a CHAR column."""
_UNKNOWN: Final = pa.scalar(None, pa.bool_())


@dataclass(frozen=True)
class Rows:
    """The rows of a subquery.

    Attributes:
        values: what it selects.
        keys: (an expression over the row around it, a value for each row): that row sees those where all are equal.
        timezone: returns the zone of timestamps without zone.
    """

    values: pa.Table
    keys: Sequence[tuple[Compiled, pa.ChunkedArray]]
    timezone: Callable[[], str]

    def only_column(self) -> tuple[DataType, pa.Array]:
        """Return the type and the values of the only column. Raises Refused."""
        if self.values.num_columns != 1:
            raise Refused(f"a subquery that is a value has {self.values.num_columns} columns")
        return parse_given_type(type_text(self.values.schema.field(0).type)), self.values.column(0).combine_chunks()


def exists(rows: Rows) -> Compiled:
    """Return EXISTS. Raises Refused for types that only Spark compares."""
    if rows.keys:
        seen = _Seen.of(rows)
        return seen.compiled(BOOLEAN, lambda found, _: as_arrow(found != _NONE))
    return Compiled(BOOLEAN, lambda _: pa.scalar(rows.values.num_rows > 0), _OF_ROWS)


def only_value(rows: Rows) -> Compiled:
    """Return the value of the only row, NULL without a row.

    Raises:
        TrinityError: SUBQUERY_MULTIPLE_ROWS.
        Refused: for types that only Spark compares.
    """
    kind, column = rows.only_column()
    if rows.keys:
        return _only_value_seen(kind, column, _Seen.of(rows))
    if len(column) > 1:
        raise _several(f"{len(column)} rows")
    value = column[0] if len(column) else pa.scalar(None, column.type)
    return Compiled(kind, lambda _: value, _OF_ROWS)


def _only_value_seen(kind: DataType, column: pa.Array, seen: _Seen) -> Compiled:
    counts, first = seen.counts(), seen.first_rows()

    def run(found: np.ndarray, _: pa.RecordBatch) -> pa.Array:
        if (counts[found] > 1).any():
            raise _several("several rows")
        return column.take(pa.array(first[found], mask=found == _NONE))

    return seen.compiled(kind, run, may_fail=bool((counts > 1).any()))


def _several(rows: str) -> TrinityError:
    return TrinityError("SUBQUERY_MULTIPLE_ROWS", f"A subquery that is a value has {rows}, not one.")


def among_rows(value: Compiled, rows: Rows) -> Compiled:
    """Return IN of a subquery. Raises Refused for types that only Spark compares."""
    kind, column = rows.only_column()
    value, values = _comparable(value, kind, column, rows.timezone)
    if rows.keys:
        return _among_seen(value, values, _Seen.of(rows))
    known = values.drop_null()
    absent = pa.scalar(None if values.null_count else False, pa.bool_())

    def run(batch: pa.RecordBatch) -> Datum:
        if not len(values):
            return pa.scalar(False)
        found = value.run(batch)
        among = pc.if_else(pc.is_in(found, value_set=known), True, absent)
        return pc.if_else(pc.is_null(found), _UNKNOWN, among)

    return Compiled(BOOLEAN, run, value.fields | _OF_ROWS, may_fail=value.may_fail)


def _among_seen(value: Compiled, values: pa.Array, seen: _Seen) -> Compiled:
    known = pa.table({"seen": seen.numbers, "value": values})
    pairs, _ = Keys.of(known.filter(pc.and_(values.is_valid(), as_arrow(seen.numbers != _NONE))), ["seen", "value"])
    has_null = np.zeros(len(seen.keys) + 1, bool)
    has_null[seen.numbers[as_numpy(values.is_null())]] = True
    has_null[_NONE] = False

    def run(found: np.ndarray, batch: pa.RecordBatch) -> pa.Array:
        given = value.evaluate(batch)
        among = pairs.numbers(pa.table({"seen": found, "value": given})) != _NONE
        unknown = (found != _NONE) & ~among & (has_null[found] | as_numpy(given.is_null()))
        return pa.array(among & (found != _NONE), mask=unknown)

    return seen.compiled(BOOLEAN, run, value.fields, may_fail=value.may_fail)


@dataclass(frozen=True)
class _Seen:
    """The rows of a subquery by their keys.

    Attributes:
        outer: the expressions over the row around it.
        keys: the distinct keys.
        numbers: the number of each row's key; :data:`_NONE` of one with a NULL in it, which nothing equals.
    """

    outer: Sequence[Compiled]
    keys: Keys
    numbers: np.ndarray

    @classmethod
    def of(cls, rows: Rows) -> _Seen:
        """Return those of some rows. Raises Refused for types that only Spark compares."""
        outer, inner = list[Compiled](), list[pa.Array]()
        for value, column in rows.keys:
            kind = parse_given_type(type_text(column.type))
            value, values = _comparable(value, kind, column.combine_chunks(), rows.timezone)
            outer.append(value)
            inner.append(values)
        names = [str(number) for number in range(len(outer))]
        return cls(outer, *Keys.of(pa.table(inner, names=names), names))

    def counts(self) -> np.ndarray:
        """Return how many rows each key has; the last number is that of no key."""
        return np.append(np.bincount(self.numbers[self.numbers != _NONE], minlength=len(self.keys)), 0)

    def first_rows(self) -> np.ndarray:
        """Return the place of a row of each key; the last one is that of no key."""
        found = np.zeros(len(self.keys) + 1, np.int64)
        found[self.numbers] = np.arange(len(self.numbers))
        return found

    def compiled(
        self,
        kind: DataType,
        run: Callable[[np.ndarray, pa.RecordBatch], pa.Array],
        fields: frozenset[str] = frozenset(),
        *,
        may_fail: bool = False,
    ) -> Compiled:
        """Return an expression that takes the number of the key of each row, :data:`_NONE` for one that sees no row."""

        def of_rows(batch: pa.RecordBatch) -> pa.Array:
            values = pa.table([value.evaluate(batch) for value in self.outer], names=list(self.keys.key))
            return run(self.keys.numbers(values), batch)

        fields = fields.union(_OF_ROWS, *(value.fields for value in self.outer))
        return Compiled(kind, of_rows, fields, may_fail=may_fail or any(value.may_fail for value in self.outer))


_NONE: Final = -1


def _comparable(
    value: Compiled, kind: DataType, column: pa.Array, timezone: Callable[[], str]
) -> tuple[Compiled, pa.Array]:
    """Return an expression and values of rows in one type. Raises Refused for types that only Spark compares."""
    both = {value.type.name, kind.name}
    if kind.nested or both & {*FLOATS, "char"} or not (value.type == kind or both <= {*WHOLE} or both <= {*TEXTS}):
        raise Refused(f"only Spark looks for {value.type} among rows of {kind}")
    page = pa.record_batch({"": column})
    value, listed = together([value, Compiled(kind, lambda page: page.column(0), _OF_ROWS)], timezone)
    return value, listed.evaluate(page)
