"""Translates Python's errors in Spark's worker processes to TrinityErrors.

Spark passes on only their text: a traceback, with Spark's own sentences before it and Java's stack behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from trinity.errors import CODES, ErrorCode, TrinityError
from trinity.messages import without_traceback

__all__ = ["raised_in_python", "worker_crashed"]

_BEGINS: Final = "Traceback (most recent call last):\n"
_ENDS: Final = re.compile(r"\n(?:\tat | SQLSTATE: |=== Streaming Query|\nJVM stacktrace|Driver stacktrace)")
"""The beginning of Spark's text after the text of an error."""
_ERROR: Final = re.compile(r"(?:(?P<module>[\w.]+)\.)?(?P<kind>\w+)(?:: (?P<said>.*))?", re.DOTALL)
_CODE: Final = re.compile(r"\[(?P<code>\w+)\] (?P<message>.*)")
_REMEDY: Final = (
    "Workers run the Python that the variable PYSPARK_PYTHON names: before Spark is started, set it to one that has "
    "the same packages as the driver's."
)


_CRASHED: Final = ("Python worker exited unexpectedly", "Python worker failed to connect back")


def worker_crashed(text: str) -> TrinityError | None:
    """Return CONFIGURATION_INVALID for a message that a worker crashed; None for any other message."""
    if not any(said in text for said in _CRASHED):
        return None
    return TrinityError(
        "CONFIGURATION_INVALID",
        "A Python worker of Spark's has ended without an error: the system has taken it, as for lack of memory, or "
        "code that is not Python has crashed in a function of yours. spark.python.worker.faulthandler.enabled=true, "
        "and spark.sql.execution.pyspark.udf.faulthandler.enabled=true, have Spark's log say where.",
    )


def raised_in_python(text: str, code_of: Callable[[str], ErrorCode]) -> TrinityError | None:
    """Return the error of a Python traceback in Spark's message; None for a text without a traceback.

    A TrinityError keeps its code and message. A missing module is CONFIGURATION_INVALID.

    Args:
        text: Spark's message.
        code_of: returns the code of any other error, by its message.
    """
    _, begins, frames = text.rpartition(_BEGINS)
    raised = _ERROR.fullmatch(_ENDS.split(without_traceback(begins + frames), maxsplit=1)[0].strip())
    if not begins or raised is None:
        return None
    said = " ".join((raised["said"] or "").split())
    own = _CODE.fullmatch(said) if (raised["module"] or "").startswith("trinity.") else None
    if own is not None and own["code"] in CODES:
        return TrinityError(own["code"], own["message"])  # type: ignore[arg-type]
    shown = f"Python in a process of Spark's has raised {raised['kind']}: {said}".rstrip(": ")
    if raised["kind"] in ("ImportError", "ModuleNotFoundError"):
        return TrinityError("CONFIGURATION_INVALID", f"{shown}. {_REMEDY}")
    return TrinityError(code_of(said), shown)
