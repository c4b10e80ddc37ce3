"""Hypothesis draws of conditions and values for generated statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from trinity_conformance.model.expressions import COMPARISONS, FALSE, TRUE, Expression, call, column, is_in, literal
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.values import Json

_POOLS: Final[Mapping[str, tuple[Json, ...]]] = {
    "int": (0, 1, 2, 3, 4),
    "bigint": (0, 1, 2, 3, 2**40),
    "string": ("x", "y", "it's", ""),
    "boolean": (False, True),
}
_KEYS: Final[Mapping[str, tuple[Json, ...]]] = {"k0": tuple(range(16)), "k1": (0, 1)}


def typed_pool(column_: Column) -> tuple[Json, ...]:
    """Return a few values of a column, few enough to collide."""
    return _KEYS.get(column_.name, _POOLS[column_.type])


@dataclass
class Predicates:
    """A generator of expressions over a table's columns.

    Attributes:
        draw: given by Hypothesis.
        shape: the table; its source has the same columns.
        sides: the sides whose columns may be used: ``t``, ``s``.
    """

    draw: st.DrawFn
    shape: Shape
    sides: tuple[str, ...]

    def literal(self, kind: Column) -> Expression:
        """Draw a constant for a column; now and then NULL."""
        pool = typed_pool(kind)
        return literal(kind.type, self.draw(st.sampled_from((*pool, *pool, None))))

    def scalar(self, kind: Column) -> Expression:
        """Draw a value of a column's type: a column, a constant, a sum, a COALESCE; rarely one out of range."""
        side = self.draw(st.sampled_from(self.sides))
        like = [c.name for c in self.shape.columns if c.type == kind.type and c.name != self.shape.tombstone]
        other = column(side, self.draw(st.sampled_from(like or [kind.name])))
        own = column(side, kind.name)
        choice = self.draw(st.integers(0, 24))
        if choice == 0 and kind.type == "int":
            return literal("bigint", 2**40)
        if choice < 5:
            return self.literal(kind)
        if choice < 10 and kind.type in ("int", "bigint"):
            return call("+", own, literal("int", self.draw(st.sampled_from((1, 2, -1)))))
        if choice < 14:
            return call("coalesce", other, self.literal(kind))
        return other if choice < 19 else own

    def maybe(self) -> Expression | None:
        """Draw a condition, or none."""
        return self.boolean(2) if self.draw(st.integers(0, 4)) < 3 else None

    def boolean(self, depth: int) -> Expression:
        """Draw a condition, often UNKNOWN for some rows."""
        choice = self.draw(st.integers(0, 16 if depth else 12))
        if choice >= 16:
            return call("not", self.boolean(depth - 1))
        if choice >= 13:
            return call("and" if choice == 13 else "or", self.boolean(depth - 1), self.boolean(depth - 1))
        kind = self.draw(st.sampled_from(self.shape.columns))
        left = column(self.draw(st.sampled_from(self.sides)), kind.name)
        if choice == 0:
            return self.draw(st.sampled_from((TRUE, FALSE, literal("boolean", None))))
        if choice <= 2:
            return self.draw(st.sampled_from((call("is null", left), call("not", call("is null", left)))))
        if choice <= 4:
            return self.member(left, kind)
        right = self.scalar(kind) if choice <= 8 else self.constant(kind)
        return call(self.draw(st.sampled_from((*COMPARISONS, "same"))), left, right)

    def constant(self, kind: Column) -> Expression:
        """Draw a constant that is not NULL."""
        return literal(kind.type, self.draw(st.sampled_from(typed_pool(kind))))

    def member(self, left: Expression, kind: Column) -> Expression:
        """Draw IN or NOT IN over a list or a subquery, with or without NULL among the values."""
        values = self.draw(st.lists(st.sampled_from((*typed_pool(kind), None)), min_size=1, max_size=3, unique=True))
        found = is_in(left, kind.type, values, self.draw(st.booleans()))
        return call("not", found) if self.draw(st.booleans()) else found

    def on(self) -> Expression:
        """Draw the ON of a join: mostly the key, often more or less than that, or of one side alone."""
        keys = self.keys()
        choice = self.draw(st.integers(0, 16))
        if choice < 7:
            return keys
        if choice < 10:
            return call("and", keys, Predicates(self.draw, self.shape, ("s",)).boolean(1))
        if choice < 11:
            return call("and", keys, Predicates(self.draw, self.shape, ("t",)).boolean(1))
        if choice == 16:
            return Predicates(self.draw, self.shape, (self.draw(st.sampled_from(self.sides)),)).boolean(1)
        return self.odd_on(choice, "k0")

    def keys(self) -> Expression:
        """Return the equality of all key columns."""
        first, *others = [call("=", column("t", n), column("s", n)) for n in self.shape.key or ("k0",)]
        return call("and", first, *others) if others else first

    def odd_on(self, choice: int, name: str) -> Expression:
        """Return an ON of other columns, NULL-safe equality, sums, ranges, constants or alternatives."""
        mine, theirs = column("t", name), column("s", name)
        if choice == 11:
            return call("=", column("t", "a"), column("s", self.draw(st.sampled_from(("a", "n", name)))))
        if choice == 12:
            return call("same", column("t", "a"), column("s", "a"))
        if choice == 13:
            return call("=", mine, call("+", theirs, literal("int", 1)))
        if choice == 14:
            low, high = call("<=", theirs, mine), call("<=", mine, call("+", theirs, literal("int", 1)))
            return call("and", low, high)
        return self.draw(
            st.sampled_from((TRUE, FALSE, call("or", call("=", mine, theirs), call("<", mine, column("s", "a")))))
        )
