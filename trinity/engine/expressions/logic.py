"""AND, OR, NOT and IS in SQL's three-valued logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.node import BOOLEAN, VOID, Compiled, Datum, Refused, as_array, on_some_rows


def as_boolean(value: Compiled) -> Compiled:
    """Return a BOOLEAN as it is, and an untyped NULL as a BOOLEAN. Raises Refused for a value of another type."""
    if value.type == VOID:
        return Compiled(BOOLEAN, lambda _: pa.scalar(None, pa.bool_()))
    if value.type != BOOLEAN:
        raise Refused(f"{value.type} is no condition")
    return value


def both(left: Compiled, right: Compiled) -> Compiled:
    """Return the AND of two conditions."""
    return _joined(pc.and_kleene, left, right, decides=False)


def either(left: Compiled, right: Compiled) -> Compiled:
    """Return the OR of two conditions."""
    return _joined(pc.or_kleene, left, right, decides=True)


def _joined(kernel: Callable[..., Any], left: Compiled, right: Compiled, *, decides: bool) -> Compiled:
    """Join two conditions. The right one, if it may raise, is evaluated only where the left one is not ``decides``."""
    left, right = as_boolean(left), as_boolean(right)

    def run(rows: pa.RecordBatch) -> Datum:
        first = left.run(rows)
        if not right.may_fail:
            return kernel(first, right.run(rows))
        first = as_array(first, len(rows))
        open_ = pc.fill_null(pc.not_equal(first, decides), True)
        return kernel(first, on_some_rows(right, rows, open_))

    return Compiled.over(BOOLEAN, run, left, right)


def negated(value: Compiled) -> Compiled:
    """Return the NOT of a condition."""
    return as_boolean(value).mapped(pc.invert)


def is_null(value: Compiled) -> Compiled:
    """Return the IS NULL of a value."""
    return value.mapped(pc.is_null)


def is_true(value: Compiled, *, wanted: bool) -> Compiled:
    """Return the IS TRUE of a condition, or its IS FALSE if ``wanted`` is False."""
    return as_boolean(value).mapped(lambda found: pc.fill_null(pc.equal(found, wanted), False))
