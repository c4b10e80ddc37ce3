"""Equalities of ON, compared in Arrow as Spark compares them (M1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from trinity.engine.changing.plan import Equality
from trinity.engine.expressions import Compiled, Scope, compile_expression
from trinity.engine.not_local import NotLocal
from trinity.engine.values.arrow_assignment import fitted_texts
from trinity.spi import Column, TableDefinition, parse_type

__all__ = ["LocalEquality", "compared"]

_WHOLE: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_TEXTS: Final = frozenset({"string", "char", "varchar"})


@dataclass(frozen=True)
class LocalEquality(Equality):
    """The value that ON says a target column equals.

    Attributes:
        column: the target column.
        value: the expression, over the source's rows.
    """

    column: Column
    value: Compiled

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the values that the column may have; whole numbers of any width are BIGINT."""
        found, kind = self.value.evaluate(rows), parse_type(self.column.type)
        if kind.name == "char":
            return fitted_texts(found, kind)
        return found.cast(pa.int64()) if kind.name in _WHOLE else found


def compared(
    definition: TableDefinition, equalities: Mapping[str, str], scope: Scope, timezone: Callable[[], str]
) -> dict[str, LocalEquality]:
    """Return the equalities by which rows are found, by column: those of values that Arrow compares as Spark does.

    Args:
        definition: the target.
        equalities: target column -> expression over the source.
        scope: the columns of the source.
        timezone: returns the zone of timestamps without zone.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, INVALID_ARGUMENTS for an ambiguous name.
    """
    found = dict[str, LocalEquality]()
    for name, text in equalities.items():
        column = definition.column(name)
        value = compile_expression(text, scope, timezone)
        if isinstance(value, NotLocal):
            continue
        own, given = parse_type(column.type), value.type
        both = {own.name, given.name}
        if own == given or both <= _WHOLE or both <= _TEXTS:
            # blanks beyond the length of a VARCHAR are compared, and not stored
            found[name] = LocalEquality(text, own.name != "varchar", own == given or both <= _TEXTS, column, value)
    return found
