"""The interface of an aggregate function (A3), with its two forms, Spark SQL and Arrow. Entry points add functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from trinity.errors import ErrorCode
from trinity.merge.kernels.rows import ColumnRows, Folded
from trinity.spi import DataType
from trinity.syntax.quoting import text_literal

GROUP: Final = "trinity.aggregate_functions"
"""Entry points of this group name :class:`AggregateFunction` classes."""


@dataclass(frozen=True)
class Field:
    """A column of one table as its function sees it; ``value`` to ``key`` are Spark SQL over the rows of a key.

    Attributes:
        name: the column.
        type: its type.
        value: its value in a row.
        order: a value by which the rows are in fold order; larger is later, and no two rows of a key share one (A2).
        when: true for the rows that carry the column (P1).
        retract: true for a retract, never NULL.
        explicit: true for a row that sets the column even to NULL: one that SQL UPDATE wrote.
        key: text of the row's key, for messages.
        retracts: False when no row of the table can be a retract of this column.
        small: True when the values are known to be so small that no sum over the rows leaves BIGINT.
        raises: whether a value out of range is an error; else the result is NULL (A4).
        options: the function's options.
    """

    name: str
    type: DataType
    value: str
    order: str
    when: str
    retract: str
    explicit: str
    key: str
    retracts: bool
    small: bool
    raises: bool
    options: Mapping[str, str]


@dataclass(frozen=True)
class FieldFunction:
    """The aggregate function of a column (A1-A5).

    Attributes:
        name: its name in :mod:`trinity.merge.functions`.
        ignore_retract: True when a retract leaves the column as it is.
        options: its other options, such as ``list-agg-delimiter``.
    """

    name: str
    ignore_retract: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


class AggregateFunction(ABC):
    """A function that folds the values of a column into one value (A1-A4).

    A fold in SQL has two steps: :meth:`aggregate` turns the rows of a key into a state, :meth:`result` turns the state
    into the value. :meth:`folded` does both in Arrow, for all keys at once; a table with a function without it needs
    Spark.

    Attributes:
        name: the value of the option ``aggregate-function``.
        retractable: True if a retract can take a value back; else retracts are refused when they are written (D4).
        stands: True if late rows can be merged into the folded value, so that compaction may drop the row versions
            (E3): the value does not depend on their order.
        commutes: True if neither the order of the rows nor NULLs matter; such columns need no arrival.
        translates: True if sqlglot, with the additions of :mod:`trinity.engine.reading.spark.view_dialects`, translates
            its SQL to other dialects.
        options: name of an option, as it follows ``fields.<column>.`` -> a line about it.
    """

    name: ClassVar[str]
    retractable: ClassVar[bool] = False
    stands: ClassVar[bool] = True
    commutes: ClassVar[bool] = False
    translates: ClassVar[bool] = False
    options: ClassVar[Mapping[str, str]] = {}

    def said_in(self, dialect: str, field: Field) -> bool:
        """Return whether a dialect can express the fold of a column without Trinity's own functions.

        Args:
            dialect: ``spark``, or a dialect to which Spark SQL is translated.
            field: the column.
        """
        return dialect == "spark" or self.translates

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        """Return why a column of this type cannot have the function with these options, or None."""
        return None

    def bad_value(self, values: pa.Array, options: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
        """Return why some of the values must not be written, as (code of the error, reason), or None (L8).

        Args:
            values: values of the column, none of them NULL; at least one.
            options: the function's options.
        """
        return None

    def bad_retract(self, values: pa.Array) -> str | None:
        """Return why some of the values cannot be taken back, or None. ``values`` are as in :meth:`bad_value`."""
        return None

    @abstractmethod
    def aggregate(self, field: Field) -> str:
        """Return a Spark SQL aggregate expression over the rows of a key."""

    def result(self, field: Field, state: str) -> str:
        """Return Spark SQL: the column's value, from the state of :meth:`aggregate`; NULL if no row had a value."""
        return state

    def fits(self, field: Field, state: str) -> str | None:
        """Return Spark SQL: false if the value is out of range, so that :meth:`result` would raise; None for never."""
        return None

    def folded(self, rows: ColumnRows) -> Folded:
        """Return the column's value for each key, in Arrow; equal, bit by bit, to the result of the SQL."""
        raise NotImplementedError

    def not_in_arrow(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        """Return why :meth:`folded` cannot fold a column of this type with these options; None when it can."""
        return "has no form in Arrow" if type(self).folded is AggregateFunction.folded else None


class ListFunction(AggregateFunction):
    """A function of the list of values in fold order.

    In SQL :meth:`fold` gets the list as ARRAY<STRUCT<o, r: BOOLEAN, v: T>>, sorted by the order ``o``; ``r`` is true
    for a retract, ``v`` is the value. NULLs are left out.
    """

    stands = False

    def aggregate(self, field: Field) -> str:
        return _collected(field, self.counts(field))

    def counts(self, field: Field) -> str:
        """Return Spark SQL: true for the rows that are folded."""
        when = f"{field.when} AND {field.value} IS NOT NULL"
        return when if self.retractable else f"{when} AND NOT {field.retract}"

    def counted(self, rows: ColumnRows) -> np.ndarray:
        """Return the indices of the rows that are folded, as :meth:`counts` in SQL, key by key, in fold order."""
        return rows.order.sorted(rows.with_value if self.retractable else rows.with_value & ~rows.retract)

    def result(self, field: Field, state: str) -> str:
        return f"CASE WHEN size({state}) > 0 THEN {self.fold(field, state)} END"

    @abstractmethod
    def fold(self, field: Field, rows: str) -> str:
        """Return Spark SQL: the result over a list with at least one row."""


def aggregated(call: str, when: str) -> str:
    """Return an aggregate call over the rows for which ``when`` is true."""
    return f"{call} FILTER (WHERE {when})" if when != "true" else call


def _collected(field: Field, when: str) -> str:
    """Return Spark SQL: ARRAY<STRUCT<o, r, v>> of a column's rows in fold order."""
    row = f"named_struct('o', {field.order}, 'r', {field.retract}, 'v', {field.value})"
    rows = aggregated(f"collect_list({row})", when)
    return f"array_sort({rows}, (x, y) -> CASE WHEN x.o < y.o THEN -1 WHEN x.o > y.o THEN 1 ELSE 0 END)"


def ranged(field: Field, value: str, beyond: str = "false", shown: str | None = None) -> str:
    """Return Spark SQL: the value in the column's type; if it does not fit, an error or NULL (A4).

    Args:
        field: the column.
        value: the value in a wider type; NULL if there is none.
        beyond: Spark SQL: true if the value left even the wider type.
        shown: the value as the message shows it; ``value`` by default.
    """
    kind = str(field.type)
    if not field.raises:
        return f"CASE WHEN NOT ({beyond}) THEN try_cast({value} AS {kind}) END"
    where = text_literal(f"NUMERIC_VALUE_OUT_OF_RANGE: column '{field.name}' of the row with key ")
    what = text_literal(f" does not fit into {kind}. Rows that bring it back into range repair it (A4).")
    number = f"coalesce(CAST({shown or value} AS STRING), 'of many digits')"
    message = f"concat({where}, '(', {field.key}, '): the aggregated value ', {number}, {what})"
    return (
        f"CASE WHEN {unfit(field, value, beyond)} THEN CAST(raise_error({message}) AS {kind}) "
        f"ELSE try_cast({value} AS {kind}) END"
    )


def unfit(field: Field, value: str, beyond: str = "false") -> str:
    """Return Spark SQL: true if the value does not fit into the column's type, so that :func:`ranged` raises."""
    return f"({beyond} OR ({value} IS NOT NULL AND try_cast({value} AS {field.type}) IS NULL))"
