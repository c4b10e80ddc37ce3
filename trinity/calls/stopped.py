"""Recognises sessions and DataFrames of a stopped Spark before they fail."""

from __future__ import annotations

from typing import Any, Final

from trinity.errors import TrinityError

__all__ = ["STOPPED", "is_stopped", "stopped_error", "stopped_meanwhile"]

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
    return _stopped() if any(phrase in text for phrase in _TEXTS) else None


def stopped_meanwhile(error: AttributeError) -> TrinityError | None:
    """Return CONFIGURATION_INVALID where pyspark met a context that another thread stopped; None for other errors."""
    raised = error.__traceback__
    while raised is not None and raised.tb_next is not None:
        raised = raised.tb_next
    of = raised.tb_frame.f_locals.get("self") if raised is not None else None
    context = vars(of).get("_context", of) if hasattr(of, "__dict__") else None
    stopped = type(context).__name__ == "SparkContext" and getattr(context, "_jsc", context) is None
    return _stopped() if stopped else None


def _stopped() -> TrinityError:
    return TrinityError("CONFIGURATION_INVALID", "Spark was stopped while it was in use. Run it again: session.spark.")
