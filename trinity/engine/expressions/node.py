"""A compiled expression, and the columns that it may name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.depth import deep_recursion
from trinity.engine.executes import NotLocal
from trinity.errors import TrinityError, nearest
from trinity.spi import INTEGERS, Column, DataType, parse_type

if TYPE_CHECKING:
    from sqlglot import exp

P = ParamSpec("P")
T = TypeVar("T")

BOOLEAN: Final = DataType("boolean")
DOUBLE: Final = DataType("double")
STRING: Final = DataType("string")
VOID: Final = DataType("void")
"""The type of a NULL without type."""


def fits(value: int, kind: DataType) -> bool:
    """Return True when a whole number fits into a type of integers."""
    limit = 1 << (8 << INTEGERS.index(kind.name)) - 1
    return -limit <= value < limit


Datum: TypeAlias = "pa.Array | pa.Scalar"
"""An array with a value for each row, or one value for all rows."""
ONE_ROW: Final = pa.RecordBatch.from_pydict({"": pa.nulls(1)})
"""A batch of one row, on which constants are evaluated."""


class Refused(Exception):
    """The exception for what only Spark evaluates; its text is the reason. :class:`NotLocal` is the same as a value."""

    @classmethod
    def of(cls, tree: exp.Expr) -> Refused:
        """Return the refusal of an expression that only Spark evaluates."""
        return cls(f"only Spark evaluates '{tree.sql(dialect='spark')}'")


def refusals_as_values(function: Callable[P, T | NotLocal]) -> Callable[P, T | NotLocal]:
    """Wrap a function so that it returns a :class:`NotLocal` where it raised :class:`Refused`."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T | NotLocal:
        try:
            return function(*args, **kwargs)
        except Refused as refused:
            return NotLocal(str(refused))

    return called


def or_refuse(found: T | NotLocal) -> T:
    """Return a result as it is, and raise :class:`Refused` for a :class:`NotLocal`."""
    if isinstance(found, NotLocal):
        raise Refused(found.reason)
    return found


@dataclass(frozen=True)
class Compiled:
    """An expression that this process evaluates.

    Attributes:
        type: the type of its values in Spark; ``void`` for a NULL without type.
        run: takes a batch, and returns a value for each row; one value for all if the expression names no column.
        fields: the columns of the batch that it reads.
        column: True for a bare column. If its type is CHAR, Spark pads what it is compared with (K2).
        may_fail: True when its evaluation may raise.
        literal: True for a number written without CAST. As DECIMAL it has, in Spark, the digits that are written.
    """

    type: DataType
    run: Callable[[pa.RecordBatch], Datum]
    fields: frozenset[str] = frozenset()
    column: bool = False
    may_fail: bool = False
    literal: bool = False

    @classmethod
    def over(
        cls, kind: DataType, run: Callable[[pa.RecordBatch], Datum], *operands: Compiled, may_fail: bool = False
    ) -> Compiled:
        """Return an expression that reads the columns of its operands, and may raise where one of them may."""
        fields = frozenset[str]().union(*(o.fields for o in operands))
        return cls(kind, run, fields, may_fail=may_fail or any(o.may_fail for o in operands))

    def mapped(self, kernel: Callable[[Any], Datum], kind: DataType = BOOLEAN) -> Compiled:
        """Return the expression whose values a kernel computes from this one's; ``kind`` is their type."""
        return Compiled.over(kind, lambda rows: kernel(self.run(rows)), self)

    @property
    def constant(self) -> bool:
        """True when the expression has the same value for all rows."""
        return not self.fields

    def only_value(self) -> pa.Scalar:
        """Return the value of a constant. Raises Refused where its evaluation fails: Spark is to report the error."""
        return self._only_value

    @cached_property
    def _only_value(self) -> pa.Scalar:
        try:
            return self.evaluate(ONE_ROW)[0]
        except TrinityError as error:
            raise Refused(f"only Spark says what is wrong with a constant: {error.message}") from error

    @property
    def value(self) -> Any:
        """The value of a constant. Raises as :meth:`only_value`."""
        return self.only_value().as_py()

    @property
    def is_null(self) -> bool:
        """True for a constant NULL that has a type. Raises as :meth:`only_value`."""
        return self.type != VOID and not self.only_value().is_valid

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return pa.null() if self.type == VOID else self.type.to_arrow()

    def evaluate(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the value of each row. The rows have the columns of ``fields`` in their logical types.

        Raises:
            TrinityError: the error that Spark raises for a value, with its code.
        """
        try:
            with deep_recursion():
                return as_array(self.run(rows), len(rows))
        except pa.ArrowException as error:
            raise TrinityError(
                "GENERIC_INTERNAL_ERROR",
                f"An expression is not evaluated in this process: {error}. A session with engine='spark' evaluates it.",
            ) from error


def as_array(found: Datum, rows: int) -> pa.Array:
    """Return an array with a value for each row: a scalar is repeated."""
    return found if isinstance(found, pa.Array) else pa.repeat(found, rows)


@dataclass(frozen=True)
class SubqueryRows:
    """The rows of a query. They are read only when an expression over them is evaluated."""

    schema: pa.Schema
    read: Callable[[], pa.Table]

    @classmethod
    def all_of(cls, queries: Mapping[str, pa.Table]) -> dict[str, SubqueryRows]:
        """Wrap tables that are read already, by the names of their queries."""
        return {name: cls(rows.schema, partial(_identity, rows)) for name, rows in queries.items()}


def _identity(rows: pa.Table) -> pa.Table:
    return rows


@dataclass(frozen=True)
class ScopeColumn:
    """A column that an expression may name.

    Attributes:
        field: the column of the batch that has its values.
        qualifier: the table's alias; empty without one.
        above: the schema, or catalog and schema, that FROM names before a table without an alias.
        merged: True for a column that USING merged with another one: only a name with the table's alias finds it.
    """

    name: str
    field: str
    type: DataType
    qualifier: str = ""
    above: tuple[str, ...] = ()
    merged: bool = False


_OF_SPARK: Final = frozenset({
    "_metadata", "current_catalog", "current_database", "current_schema", "current_user", "current_time", "localtime",
    "session_user", "user",
})  # fmt: skip
"""Names that Spark resolves although no column has them, such as functions without parentheses."""


@dataclass(frozen=True)
class Scope:
    """The names that an expression may use, in upper or lower case.

    Attributes:
        queries: the rows of the queries that a subquery may select from, by name.
        is_stored_expression: True for an expression that is stored, and so is refused if it has the present time.
    """

    columns: Sequence[ScopeColumn]
    queries: Mapping[str, SubqueryRows] = field(default_factory=dict)
    is_stored_expression: bool = False

    @classmethod
    def of(cls, columns: Iterable[Column], qualifier: str = "", *, is_stored_expression: bool = False) -> Scope:
        """Return the scope of a table's columns. The batch has their values under the same names."""
        return cls(
            [ScopeColumn(c.name, c.name, parse_type(c.type), qualifier) for c in columns],
            is_stored_expression=is_stored_expression,
        )

    def has(self, qualifier: str, name: str) -> bool:
        """Return True when a column has the name, in any table if the qualifier is empty."""
        wanted = name.lower(), qualifier.lower()
        return any((c.name.lower(), qualifier and c.qualifier.lower()) == wanted for c in self.columns)

    def from_table(self, parts: Sequence[str]) -> Sequence[str]:
        """Return the parts of a column's name without schema and catalog: of ``sales.orders.id`` ``orders.id``.

        Raises:
            Refused: where tables of several schemas have this name.
        """
        lower = [part.lower() for part in parts]
        for above, table in {(c.above, c.qualifier.lower()) for c in self.columns}:
            for length in range(len(above), 0, -1):
                if lower[: length + 1] == [*(part.lower() for part in above[-length:]), table] and parts[length + 1 :]:
                    if len({c.above for c in self.columns if c.qualifier.lower() == table}) > 1:
                        raise Refused(f"tables of several schemas have the name '{table}'")
                    return parts[length:]
        return parts

    def find(self, qualifier: str, name: str) -> ScopeColumn:
        """Return the column of a name.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, INVALID_ARGUMENTS for an ambiguous name.
            Refused: for a name that may be something else than a column.
        """
        found = [c for c in self.columns if c.name.lower() == name.lower()]
        if qualifier:
            if qualifier.lower() not in {c.qualifier.lower() for c in self.columns}:
                raise Refused(f"'{qualifier}.{name}' is no column of its own")
            found = [c for c in found if c.qualifier.lower() == qualifier.lower()]
        else:
            found = [c for c in found if not c.merged]
        if len(found) == 1:
            return found[0]
        if found:
            raise TrinityError("INVALID_ARGUMENTS", f"Column '{name}' is ambiguous; write the table before it.")
        if name.lower() in _OF_SPARK:
            raise Refused(f"'{name}' is a value that Spark knows")
        known = [c.name for c in self.columns]
        raise TrinityError("COLUMN_NOT_FOUND", f"There is no column '{name}'.{nearest(name, known)}")


def on_some_rows(value: Compiled, rows: pa.RecordBatch, some: pa.Array) -> pa.Array:
    """Evaluate an expression on the masked rows only; NULL for the others."""
    if not pc.any(some).as_py():
        return pa.nulls(len(rows), value.arrow_type)
    found = as_array(value.run(rows.filter(some)), pc.sum(some).as_py() or 0)
    return spread(found, some)


def spread(values: pa.Array, some: pa.Array) -> pa.Array:
    """Scatter the values to the masked rows; NULL for the others."""
    if pa.types.is_nested(values.type):
        chosen = as_numpy(some)
        return values.take(as_arrow(np.cumsum(chosen) - 1, mask=~chosen))
    return pc.replace_with_mask(pa.nulls(len(some), values.type), some, values)


def in_turn(first: Compiled, second: Compiled, rows: pa.RecordBatch) -> tuple[Datum, Datum]:
    """Evaluate two operands; the second one, if it may raise, only for rows where the first one is not NULL."""
    one = first.run(rows)
    if not second.may_fail:
        return one, second.run(rows)
    one = as_array(one, len(rows))
    return one, on_some_rows(second, rows, pc.is_valid(one))


def null_of_operand(kind: DataType, values: Sequence[Compiled]) -> Compiled | None:
    """Return a NULL if one of the operands, given in the order of their evaluation, is a constant NULL; else None.

    Raises:
        Refused: where an operand before the NULL may fail: only some of Spark's plans evaluate that operand.
    """
    nulls = [v.constant and (v.type == VOID or v.is_null) for v in values]
    if not any(nulls):
        return None
    if any(v.may_fail for v in values[: nulls.index(True)]):
        raise Refused("only Spark says whether a value beside NULL is evaluated")
    return Compiled(kind, lambda _: pa.scalar(None, kind.to_arrow()))
