"""Recognises sessions and DataFrames of a stopped Spark before they fail."""

from __future__ import annotations

from typing import Any, Final

from trinity.errors import TrinityError

__all__ = ["STOPPED", "is_stopped", "stopped_error"]

STOPPED: Final = "belongs to a Spark that was stopped; make it anew, by session.spark"
"""The end of a message about such a DataFrame or session."""
_TEXTS: Final = ("stopped SparkContext", "SparkContext was shut down", 'SparkPlan.session()" is null')


def is_stopped(of: Any) -> bool:
    """Return whether a session, or a DataFrame, belongs to a Spark that this process stopped."""
    session = getattr(of, "sparkSession", of)
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return bool(getattr(session, "is_stopped", False))
    context = getattr(session, "sparkContext", None)  # None for frames of pandas on Spark
    return context is not None and context._jsc is None


def stopped_error(text: str) -> TrinityError | None:
    """Return CONFIGURATION_INVALID for a message that Spark was stopped; None for any other message."""
    if not any(phrase in text for phrase in _TEXTS):
        return None
    return TrinityError("CONFIGURATION_INVALID", "Spark was stopped while it was in use. Run it again: session.spark.")
