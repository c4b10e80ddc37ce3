"""Subqueries whose rows the scope has: IN, EXISTS, and the value of the only row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.expressions.coercion import together
from trinity.engine.expressions.node import (
    BOOLEAN,
    VOID,
    Compiled,
    Datum,
    Refused,
    SubqueryRows,
)
from trinity.errors import TrinityError
from trinity.merge.kernels.keys import Keys
from trinity.spi import DataType, parse_given_type, type_text

_OF_ROWS: Final = frozenset({""})
"""Fields of an expression that reads a subquery. Without fields it would count as a literal, which Spark may pad."""
_UNKNOWN: Final = pa.scalar(None, pa.bool_())


@dataclass(frozen=True)
class Rows:
    """The rows of a subquery.

    Attributes:
        keys: pairs of an expression over the outer row, and a column. An outer row sees rows in which all are equal.
    """

    query_rows: SubqueryRows
    keys: Sequence[tuple[Compiled, str]]
    timezone: Callable[[], str]

    def only_column(self) -> tuple[DataType, str]:
        """Return the type and the name of the only column that is no key. Raises Refused for none or several."""
        keys = {name for _, name in self.keys}
        fields = [field for field in self.query_rows.schema if field.name not in keys]
        if len(fields) != 1:
            raise Refused(f"a subquery that is a value has {len(fields)} columns")
        return parse_given_type(type_text(fields[0].type)), fields[0].name

    def values(self, column: str) -> pa.Array:
        """Return the values of a column."""
        return self.query_rows.read().column(column).combine_chunks()


def exists(rows: Rows) -> Compiled:
    """Return EXISTS. Raises Refused for types that only Spark compares."""
    if rows.keys:
        return _VisibleRows.of(rows).compiled(BOOLEAN, lambda _, found, __: as_arrow(found != _NONE))
    return Compiled(BOOLEAN, lambda _: pa.scalar(rows.query_rows.read().num_rows > 0), _OF_ROWS)


def only_value(rows: Rows) -> Compiled:
    """Return the value of the only row, NULL without a row. Its evaluation raises SUBQUERY_MULTIPLE_ROWS for several.

    Raises:
        Refused: for types that only Spark compares.
    """
    kind, name = rows.only_column()
    if rows.keys:
        return _only_value_seen(kind, name, rows)

    def run(_: pa.RecordBatch) -> pa.Scalar:
        column = rows.values(name)
        if len(column) > 1:
            raise _several_rows_error(f"{len(column)} rows")
        return column[0] if len(column) else pa.scalar(None, column.type)

    return Compiled(kind, run, _OF_ROWS)


def _only_value_seen(kind: DataType, name: str, rows: Rows) -> Compiled:
    def run(seen: _Numbered, found: np.ndarray, _: pa.RecordBatch) -> pa.Array:
        if (seen.counts[found] > 1).any():
            raise _several_rows_error("several rows")
        return rows.values(name).take(pa.array(seen.first_rows[found], mask=found == _NONE))

    return _VisibleRows.of(rows).compiled(kind, run, may_fail=True)


def _several_rows_error(rows: str) -> TrinityError:
    return TrinityError("SUBQUERY_MULTIPLE_ROWS", f"A subquery that is a value has {rows}, not one.")


def among_rows(value: Compiled, rows: Rows) -> Compiled:
    """Return IN of a subquery. Raises Refused for types that only Spark compares."""
    kind, name = rows.only_column()
    value, cast = _comparable(value, kind, rows.timezone)
    if rows.keys:
        return _among_seen(value, lambda: cast(rows.values(name)), _VisibleRows.of(rows))

    @cache
    def listed() -> tuple[int, pa.Array]:
        values = cast(rows.values(name))
        return len(values), values.drop_null()

    def run(batch: pa.RecordBatch) -> Datum:
        count, known = listed()
        if not count:
            return pa.scalar(False)
        found = value.run(batch)
        absent = pa.scalar(None if len(known) < count else False, pa.bool_())
        among = pc.if_else(pc.is_in(found, value_set=known), True, absent)
        return pc.if_else(pc.is_null(found), _UNKNOWN, among)

    return Compiled(BOOLEAN, run, value.fields | _OF_ROWS, may_fail=value.may_fail)


def _among_seen(value: Compiled, listed: Callable[[], pa.Array], seen: _VisibleRows) -> Compiled:
    @cache
    def pairs() -> tuple[Keys, np.ndarray]:
        values, numbered = listed(), seen.numbered()
        known = pa.table({"seen": numbered.numbers, "value": values})
        keys, _ = Keys.of(
            known.filter(pc.and_(values.is_valid(), as_arrow(numbered.numbers != _NONE))), known.schema.names
        )
        has_null = np.zeros(len(numbered.keys) + 1, bool)
        has_null[numbered.numbers[as_numpy(values.is_null())]] = True
        has_null[_NONE] = False
        return keys, has_null

    def run(_: _Numbered, found: np.ndarray, batch: pa.RecordBatch) -> pa.Array:
        given, (keys, has_null) = value.evaluate(batch), pairs()
        among = keys.numbers(pa.table({"seen": found, "value": given})) != _NONE
        unknown = (found != _NONE) & ~among & (has_null[found] | as_numpy(given.is_null()))
        return pa.array(among & (found != _NONE), mask=unknown)

    return seen.compiled(BOOLEAN, run, value)


@dataclass(frozen=True)
class _Numbered:
    """The distinct keys of a subquery's rows, and the number of each row's key: :data:`_NONE` for a key with a NULL."""

    keys: Keys
    numbers: np.ndarray

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of rows of each key; the last entry, 0, is for unknown keys."""
        return np.append(np.bincount(self.numbers[self.numbers != _NONE], minlength=len(self.keys)), 0)

    @cached_property
    def first_rows(self) -> np.ndarray:
        """The index of a row of each key; the last entry is for unknown keys."""
        found = np.zeros(len(self.keys) + 1, np.int64)
        found[self.numbers] = np.arange(len(self.numbers))
        return found


@dataclass(frozen=True)
class _VisibleRows:
    """The rows of a subquery that an outer row sees: those whose keys equal the expressions over the outer row."""

    outer: Sequence[Compiled]
    numbered: Callable[[], _Numbered]

    @classmethod
    def of(cls, rows: Rows) -> _VisibleRows:
        """Return the rows by their keys, which are read when first needed. Raises Refused for types of Spark alone."""
        kinds = [parse_given_type(type_text(rows.query_rows.schema.field(name).type)) for _, name in rows.keys]
        pairs = [_comparable(value, kind, rows.timezone) for (value, _), kind in zip(rows.keys, kinds, strict=True)]

        @cache
        def numbered() -> _Numbered:
            inner = [cast(rows.values(name)) for (_, cast), (_, name) in zip(pairs, rows.keys, strict=True)]
            names = [str(number) for number in range(len(inner))]
            return _Numbered(*Keys.of(pa.table(inner, names=names), names))

        return cls([value for value, _ in pairs], numbered)

    def compiled(
        self,
        kind: DataType,
        run: Callable[[_Numbered, np.ndarray, pa.RecordBatch], pa.Array],
        *operands: Compiled,
        may_fail: bool = False,
    ) -> Compiled:
        """Return an expression over the outer sides of the keys and further operands.

        ``run`` takes the subquery's rows, for each outer row the number of its key (:data:`_NONE` if it sees no row),
        and the batch.
        """

        def of_rows(batch: pa.RecordBatch) -> pa.Array:
            numbered = self.numbered()
            values = pa.table([value.evaluate(batch) for value in self.outer], names=list(numbered.keys.key))
            return run(numbered, numbered.keys.numbers(values), batch)

        found = Compiled.over(kind, of_rows, *self.outer, *operands, may_fail=may_fail)
        return replace(found, fields=found.fields | _OF_ROWS)


_NONE: Final = -1


def _comparable(
    value: Compiled, kind: DataType, timezone: Callable[[], str]
) -> tuple[Compiled, Callable[[pa.Array], pa.Array]]:
    """Return an expression in the type in which it is compared with a column, and the function that casts the column.

    ``kind`` is the column's type.

    Raises:
        Refused: for types that only Spark compares.
    """
    given = value.type
    alike = (given.is_number and kind.is_number) or (given.is_text and kind.is_text)
    alike = alike or (given.is_datetime and kind.is_datetime) or given in (kind, VOID)
    if kind.nested or any(one.is_floating or one.name == "char" for one in (given, kind)) or not alike:
        raise Refused(f"only Spark looks for {value.type} among rows of {kind}")
    value, listed = together([value, Compiled(kind, lambda page: page.column(0), _OF_ROWS)], timezone)
    return value, lambda column: listed.evaluate(pa.record_batch({"": column}))
