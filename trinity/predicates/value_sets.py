"""Values of a column that meet a comparison with literals, and whether bounds leave room for one of them."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from trinity.predicates.comparisons import Comparison
from trinity.predicates.literals import literal_value

Bound = tuple[Any, Any]
"""(smallest, largest) value, None for no bound on that side."""


@dataclass(frozen=True)
class ValueSet:
    """Values of a column.

    Attributes:
        bounds: bounds of the values.
        strict: True when the bounds are none of the values.
        listed: all the values, ascending; None where they are not listed.
        excluded: values that are none of these.
    """

    bounds: Bound = (None, None)
    strict: bool = False
    listed: Sequence[Any] | None = None
    excluded: Collection[Any] = ()

    @classmethod
    def listing(cls, values: Collection[Any]) -> ValueSet:
        """Return the set of some values, one at least."""
        listed = sorted(values)
        return cls((listed[0], listed[-1]), listed=listed)

    @classmethod
    def of(cls, found: Comparison, kind: str, timezone: Callable[[], str] = lambda: "") -> ValueSet | None:
        """Return the values of a column of a type that meet a comparison; None where they are not certain.

        ``timezone`` is that of :func:`~trinity.predicates.literals.literal_value`.
        """
        values = [literal_value(value, kind, timezone) for value in found.values]
        if not values or None in values:
            return None
        if found.negated if found.operator in (exp.EQ, exp.In) else found.operator is exp.NEQ and not found.negated:
            return cls(excluded=values)
        if found.negated or found.operator is exp.NEQ:
            return None
        if found.operator in (exp.EQ, exp.NullSafeEQ, exp.In):
            return cls.listing(values)
        strict = found.operator in (exp.LT, exp.GT)
        if found.operator in (exp.LT, exp.LTE):
            return cls((None, values[0]), strict)
        return cls((values[0], values[1] if found.operator is exp.Between else None), strict)

    def meets(self, smallest: Any, largest: Any) -> bool:
        """Return True when one of the values may be within bounds. Of bounds of another type nothing is known."""
        try:
            if self.listed is not None:
                index = bisect_left(self.listed, smallest)
                return index < len(self.listed) and bool(self.listed[index] <= largest)
            if self.excluded:
                return bool(smallest != largest or smallest not in self.excluded)
            reaches, (low, high) = operator.lt if self.strict else operator.le, self.bounds
            return (low is None or reaches(low, largest)) and (high is None or reaches(smallest, high))
        except TypeError:
            return True
