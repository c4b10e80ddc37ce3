"""The steps of a product with the arithmetic of Spark's types.

Integers are exact to 38 digits, decimals are rounded half up, floating-point numbers are DOUBLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from trinity.merge.kernels.rows import Folded
from trinity.spi import DataType, arrow_type

_WIDEST: Final = 38
_EXACT: Final = Context(prec=200)


class Steps(Protocol):
    """The interface of the arithmetic of one type. A result that is out of range is None."""

    def numbers(self, values: pa.Array) -> list[Any]:
        """Return values in the form in which the steps compute."""
        ...

    def multiplied(self, product: Any, factor: Any) -> Any:
        """Return the product with a further factor."""
        ...

    def divided(self, product: Any, factor: Any) -> Any:
        """Return the product divided by a factor."""
        ...

    def folded(self, products: Sequence[Any], over: np.ndarray, kind: pa.DataType) -> Folded:
        """Return the column's values.

        Args:
            products: the product of each key; None for a key without one.
            over: True for keys whose product has left the range on the way.
            kind: the column's type.
        """
        ...


def steps_of(kind: DataType) -> Steps:
    """Return the arithmetic of a column's type."""
    if kind.is_floating:
        return _Floating()
    return _Fixed(*kind.arguments) if kind.name == "decimal" else _Whole(integer_limits(kind))


def integer_limits(kind: DataType) -> np.iinfo[Any]:
    """Return the range of an integer type; formats may store its values in a wider type."""
    return np.iinfo(arrow_type(str(kind)).to_pandas_dtype())


class _Floating:
    def numbers(self, values: pa.Array) -> list[Any]:
        return list(values.cast(pa.float64()).to_pylist())

    def multiplied(self, product: float, factor: float) -> float:
        return product * factor

    def divided(self, product: float, factor: float) -> float | None:
        return product / factor if factor else None

    def folded(self, products: Sequence[Any], over: np.ndarray, kind: pa.DataType) -> Folded:
        return Folded(pa.array(products, pa.float64()).cast(kind, safe=False))


class _Whole:
    """The arithmetic of integers, in DECIMAL(38,0)."""

    quotient_digits: Final = 32
    """Spark's quotient of DECIMAL(38,0) and DECIMAL(20,0) is a DECIMAL(38,6)."""

    def __init__(self, limits: np.iinfo[Any]) -> None:
        self.limits = limits

    def numbers(self, values: pa.Array) -> list[Any]:
        return list(values.to_pylist())

    def multiplied(self, product: int, factor: int) -> int | None:
        return _within(product * factor, _WIDEST)

    def divided(self, product: int, factor: int) -> int | None:
        if not factor:
            return None
        size = abs(product) // abs(factor)
        return _within(size if (product < 0) == (factor < 0) else -size, self.quotient_digits)

    def folded(self, products: Sequence[Any], over: np.ndarray, kind: pa.DataType) -> Folded:
        limits = self.limits
        outside = [p is not None and not limits.min <= p <= limits.max for p in products]
        values = pa.array([None if out else p for p, out in zip(products, outside, strict=True)], kind)
        return Folded(values, over | np.array(outside, bool), lambda key: _text(products[key], str))


class _Fixed:
    """The arithmetic of decimals, held as integers at the column's scale.

    Numbers are kept only as wide as a product with a value stays exact.
    """

    def __init__(self, precision: int, scale: int) -> None:
        self.precision, self.scale = precision, scale
        self.kept = _WIDEST - 1 - precision
        self.quotient_scale = max(precision + 1, 6)

    def numbers(self, values: pa.Array) -> list[Any]:
        return [int(value.scaleb(self.scale, _EXACT)) for value in values.to_pylist()]

    def multiplied(self, product: int, factor: int) -> int | None:
        return _within(_half_up(product * factor, 10**self.scale), self.kept)

    def divided(self, product: int, factor: int) -> int | None:
        if not factor:
            return None
        # Spark rounds three times: to 38 places, to the scale of the quotient's type, to the column's scale
        exact = _half_up(product * 10**_WIDEST * (1 if factor > 0 else -1), abs(factor))
        quotient = _within(_half_up(exact, 10 ** (_WIDEST - self.quotient_scale)), _WIDEST)
        if quotient is None:
            return None
        return _within(_half_up(quotient, 10 ** (self.quotient_scale - self.scale)), self.kept)

    def folded(self, products: Sequence[Any], over: np.ndarray, kind: pa.DataType) -> Folded:
        outside = [p is not None and abs(p) >= 10**self.precision for p in products]
        whole = [None if p is None or out else self._number(p) for p, out in zip(products, outside, strict=True)]
        shown = lambda key: _text(products[key], lambda p: format(self._number(p), "f"))  # noqa: E731
        return Folded(pa.array(whole, kind), over | np.array(outside, bool), shown)

    def _number(self, product: int) -> Decimal:
        return Decimal(product).scaleb(-self.scale, _EXACT)


def _within(value: int, digits: int) -> int | None:
    return value if abs(value) < 10**digits else None


def _half_up(value: int, by: int) -> int:
    """Return ``value / by``, rounded to an integer; halves are rounded away from zero."""
    size = (2 * abs(value) + by) // (2 * by)
    return size if value >= 0 else -size


def _text(product: Any, of: Any) -> str:
    return "of many digits" if product is None else of(product)
