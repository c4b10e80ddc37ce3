"""Parameters as literals of Spark's SQL, each escaped by its type; there is no other way to bind them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from trinity.errors import TrinityError
from trinity.journal.binding import number

__all__ = ["literal", "with_literals"]


def with_literals(sql: str, parameters: Sequence[Any]) -> str:
    """The statement with a literal in the place of each ``?``.

    Raises:
        TrinityError: INVALID_ARGUMENTS for the wrong number of values, TYPE_MISMATCH for one without a literal.
    """
    numbered = number(sql, "spark")
    if len(parameters) != numbered.count:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"The statement has {numbered.count} parameters, and {len(parameters)} values are given.",
        )
    return numbered.filled([literal(value) for value in parameters])


def literal(value: Any) -> str:
    """One value as a literal. Raises TYPE_MISMATCH."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, (str, UUID)):
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, dt.datetime):  # a clock becomes an instant of the session's zone where one is wanted
        kind = "TIMESTAMP_LTZ" if value.tzinfo is not None else "TIMESTAMP_NTZ"
        return f"{kind} '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, dt.time) and value.tzinfo is None:
        return f"TIME '{value.isoformat()}'"
    raise TrinityError("TYPE_MISMATCH", f"A parameter of type {type(value).__name__} has no counterpart in SQL.")


def _integer(value: int) -> str:
    text = str(value) if -(2**63) < value < 2**63 else f"CAST('{value}' AS DECIMAL(38, 0))"
    return f"({text})" if value < 0 else text


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise TrinityError("TYPE_MISMATCH", f"Decimal {value} has no counterpart in SQL.")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"
