"""Simple predicates that the model evaluates and SQL spells: ``column <op> literal``, ``column IS [NOT] NULL``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trinity_conformance.model.values import Json, Value, decode, order_form, sql_literal

if TYPE_CHECKING:
    from trinity_conformance.model.shapes import Shape

OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """One comparison.

    Attributes:
        column: the column's name.
        operator: a key of :data:`OPERATORS`, or ``IS NULL``, ``IS NOT NULL``.
        value: the literal, encoded; unused for the NULL tests.
    """

    column: str
    operator: str
    value: Json = None

    def holds(self, shape: Shape, row: Mapping[str, Value]) -> bool:
        """Return whether the condition is true; UNKNOWN counts as false, as in WHERE."""
        value = row[self.column]
        if self.operator in ("IS NULL", "IS NOT NULL"):
            return (value is None) == (self.operator == "IS NULL")
        kind = shape.type_of(self.column)
        literal = decode(kind, self.value)
        if value is None or literal is None:
            return False
        return OPERATORS[self.operator](order_form(kind, value), order_form(kind, literal))

    def sql(self, shape: Shape) -> str:
        """Return the condition as Spark SQL."""
        if self.operator in ("IS NULL", "IS NOT NULL"):
            return f"{self.column} {self.operator}"
        return f"{self.column} {self.operator} {sql_literal(shape.type_of(self.column), self.value)}"
