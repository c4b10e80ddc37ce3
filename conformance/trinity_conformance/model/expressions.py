"""Scalar expressions over a target row ``t`` and a source row ``s``: evaluated in three-valued logic, spelled as SQL.

The text is legal in Spark, Trino, DuckDB and PostgreSQL alike; only the name of the string type differs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from trinity_conformance.model.values import Json, Value, decode

Rows: TypeAlias = Mapping[str, "Mapping[str, Value] | None"]
"""``t`` and ``s`` -> a row; a side without a row reads NULL in every column."""

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
COMPARISONS: Final = tuple(_COMPARE)
"""Comparisons that are UNKNOWN when an operand is NULL."""

_STRINGS: Final = {"trino": "VARCHAR", "postgres": "TEXT"}
_INFIX: Final[Mapping[str, str]] = {
    **{op: op for op in COMPARISONS},
    "+": "+",
    "and": "AND",
    "or": "OR",
    "same": "IS NOT DISTINCT FROM",
}


@dataclass(frozen=True)
class Expression:
    """A node of an expression.

    Attributes:
        op: ``column`` (side, name), ``literal`` (type text, encoded value), ``in`` (expression, type text, values,
            whether the values come from a subquery), or an operator over expressions: a comparison, ``same``
            (IS NOT DISTINCT FROM), ``+``, ``and``, ``or``, ``not``, ``is null``, ``coalesce``.
        parts: its operands.
    """

    op: str
    parts: tuple[Any, ...]

    def value(self, rows: Rows) -> Value:
        """Return the value; None for NULL and UNKNOWN."""
        if self.op == "column":
            row = rows.get(self.parts[0])
            return None if row is None else row[self.parts[1]]
        if self.op == "literal":
            return decode(*self.parts)
        if self.op == "in":
            inner, kind, values, _ = self.parts
            return _in(inner.value(rows), [decode(kind, v) for v in values])
        return _apply(self.op, [part.value(rows) for part in self.parts])

    def holds(self, rows: Rows) -> bool:
        """Return whether the value is true; UNKNOWN is no match (M1)."""
        return self.value(rows) is True

    def sql(self, dialect: str = "spark", bare: bool = False) -> str:
        """Return SQL text, in parentheses where needed.

        Args:
            dialect: ``spark``, ``trino``, ``duckdb`` or ``postgres``.
            bare: without ``t.`` before columns of the target, for statements that give it no alias.
        """
        if self.op == "column":
            return self.parts[1] if bare else ".".join(self.parts)
        if self.op == "literal":
            return literal_sql(self.parts[0], self.parts[1], dialect)
        if self.op == "in":
            return f"({self.parts[0].sql(dialect, bare)} IN ({self._members(dialect)}))"
        texts = [part.sql(dialect, bare) for part in self.parts]
        if self.op == "not":
            return f"(NOT {texts[0]})"
        if self.op == "is null":
            return f"({texts[0]} IS NULL)"
        if self.op == "coalesce":
            return f"COALESCE({', '.join(texts)})"
        return "(" + f" {_INFIX[self.op]} ".join(texts) + ")"

    def _members(self, dialect: str) -> str:
        _, kind, values, query = self.parts
        texts = [literal_sql(kind, v, dialect) for v in values]
        if not query:
            return ", ".join(texts)
        return f"SELECT q.m FROM (VALUES {', '.join(f'({t})' for t in texts)}) AS q(m)"

    def renamed(self, names: Mapping[str, str]) -> Expression:
        """Return the expression with columns renamed; names that are not given stay."""
        if self.op == "column":
            side, name = self.parts
            return Expression("column", (side, names.get(name, name)))
        parts = (p.renamed(names) if isinstance(p, Expression) else p for p in self.parts)
        return Expression(self.op, tuple(parts))

    def columns(self) -> Iterator[tuple[str, str]]:
        """Yield (side, name) of every column in the expression."""
        if self.op == "column":
            yield self.parts[0], self.parts[1]
        for part in self.parts:
            if isinstance(part, Expression):
                yield from part.columns()

    def to_json(self) -> list[Any]:
        """Return nested lists: the operator, then its operands."""
        return [self.op, *(p.to_json() if isinstance(p, Expression) else p for p in self.parts)]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Expression:
        """Return the expression that :meth:`to_json` wrote."""
        op, *parts = data
        if op in ("column", "literal"):
            return cls(op, tuple(parts))
        if op == "in":
            return cls(op, (cls.from_json(parts[0]), parts[1], tuple(parts[2]), parts[3]))
        return cls(op, tuple(map(cls.from_json, parts)))


def column(side: str, name: str) -> Expression:
    """Return a column of ``t`` or ``s``."""
    return Expression("column", (side, name))


def literal(type_text: str, value: Json) -> Expression:
    """Return a constant, encoded as in :mod:`~trinity_conformance.model.values`."""
    return Expression("literal", (type_text, value))


def call(op: str, *parts: Expression) -> Expression:
    """Return an operator over expressions."""
    return Expression(op, parts)


def is_in(inner: Expression, type_text: str, values: Sequence[Json], query: bool = False) -> Expression:
    """Return ``inner IN (values)``, or ``inner IN (SELECT ...)`` over them; NULL among them makes a miss UNKNOWN."""
    return Expression("in", (inner, type_text, tuple(values), query))


TRUE: Final = literal("boolean", True)
FALSE: Final = literal("boolean", False)


def all_of(*parts: Expression | None) -> Expression | None:
    """Return the AND of the parts that are not None; None if there are none."""
    found = [p for p in parts if p is not None]
    return None if not found else found[0] if len(found) == 1 else call("and", *found)


def type_sql(type_text: str, dialect: str) -> str:
    """Return the type's name in a dialect."""
    return _STRINGS.get(dialect, "STRING") if type_text == "string" else type_text.upper()


def literal_sql(type_text: str, value: Json, dialect: str) -> str:
    """Return the SQL text of an encoded boolean, integer or string."""
    if value is None:
        return f"CAST(NULL AS {type_sql(type_text, dialect)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if not isinstance(value, (int, float)) or value >= 0 else f"({value})"


def _apply(op: str, values: list[Value]) -> Value:
    if op == "and":
        return False if False in values else None if None in values else True
    if op == "or":
        return True if True in values else None if None in values else False
    if op == "is null":
        return values[0] is None
    if op == "coalesce":
        return next((v for v in values if v is not None), None)
    if op == "same":
        return values[0] == values[1]
    if None in values:
        return None
    if op == "not":
        return not values[0]
    return values[0] + values[1] if op == "+" else _COMPARE[op](*values)


def _in(value: Value, values: list[Value]) -> bool | None:
    if not values:
        return False
    if value is None:
        return None
    return True if value in values else None if None in values else False
