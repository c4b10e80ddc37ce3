"""A Spark that was stopped: sessions and DataFrames of it are known before they fail."""

from __future__ import annotations

from typing import Any, Final

from trinity.errors import TrinityError

__all__ = ["STOPPED", "is_stopped", "stopped_error"]

STOPPED: Final = "belongs to a Spark that was stopped; make it anew, by session.spark"
"""What is wrong with a DataFrame, or a session, as the end of a sentence."""
_SAID: Final = ("stopped SparkContext", "SparkContext was shut down", 'SparkPlan.session()" is null')


def is_stopped(of: Any) -> bool:
    """Return True for a session, or a frame, of a Spark that was stopped by this process."""
    session = getattr(of, "sparkSession", of)
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return bool(getattr(session, "is_stopped", False))
    context = getattr(session, "sparkContext", None)  # which frames of pandas on Spark have not
    return context is not None and context._jsc is None


def stopped_error(text: str) -> TrinityError | None:
    """Return CONFIGURATION_INVALID for a message of Spark's that tells of its end; None for any other."""
    if not any(said in text for said in _SAID):
        return None
    return TrinityError("CONFIGURATION_INVALID", "Spark was stopped while it was in use. Run it again: session.spark.")
