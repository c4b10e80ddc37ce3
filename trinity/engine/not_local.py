"""The value by which this process leaves work to Spark."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NotLocal"]


@dataclass(frozen=True)
class NotLocal:
    """Why this process cannot do something without Spark.

    Attributes:
        reason: a clause for people.
    """

    reason: str
