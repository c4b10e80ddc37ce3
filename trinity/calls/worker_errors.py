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
_ERROR: Final = re.compile(r"(?:(?P<module>[\w.]+)\.)?(?P<kind>\w+)(?:: (?P<message>.*))?", re.DOTALL)
_CODE: Final = re.compile(r"\[(?P<code>\w+)\] (?P<message>.*)")
_REMEDY: Final = (
    "Workers run the Python that the variable PYSPARK_PYTHON names: before Spark is started, set it to one that has "
    "the same packages as the driver's."
)


_CRASHED: Final = {
    "Python worker exited unexpectedly": (
        "A Python worker of Spark's has ended without an error: the system has taken it, as for lack of memory, or "
        "code that is not Python has crashed in a function of yours. spark.python.worker.faulthandler.enabled=true, "
        "and spark.sql.execution.pyspark.udf.faulthandler.enabled=true, have Spark's log say where."
    ),
    "Python worker failed to connect back": (
        "A Python process of Spark's did not report to Spark within its time: the machine is too busy to start it, or "
        "its Python does not start; Spark's log has what it said. Run the statement again, or let fewer tasks run at "
        f"once. {_REMEDY}"
    ),
}
"""What Spark says of a worker that has gone -> what that means, and the remedy."""


def worker_crashed(text: str) -> TrinityError | None:
    """Return CONFIGURATION_INVALID for a message that a worker crashed or did not start; None for any other one."""
    meaning = next((meaning for phrase, meaning in _CRASHED.items() if phrase in text), None)
    return None if meaning is None else TrinityError("CONFIGURATION_INVALID", meaning)


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
    message = " ".join((raised["message"] or "").split())
    own = _CODE.fullmatch(message) if (raised["module"] or "").startswith("trinity.") else None
    if own is not None and own["code"] in CODES:
        return TrinityError(own["code"], own["message"])  # type: ignore[arg-type]
    shown = f"Python in a process of Spark's has raised {raised['kind']}: {message}".rstrip(": ")
    if raised["kind"] in ("ImportError", "ModuleNotFoundError"):
        return TrinityError("CONFIGURATION_INVALID", f"{shown}. {_REMEDY}")
    return TrinityError(code_of(message), shown)
