"""The value by which this process leaves work to Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

from trinity.errors import TrinityError

__all__ = ["NotLocal"]


@dataclass(frozen=True)
class NotLocal:
    """Why this process cannot do something without Spark.

    Attributes:
        reason: a clause for people.
        error: what it comes to where there is no Spark; None for NOT_SUPPORTED.
    """

    reason: str
    error: TrinityError | None = field(default=None, compare=False)
