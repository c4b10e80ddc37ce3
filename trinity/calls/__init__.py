"""The seam between callers and Trinity: public functions check their arguments, and raise only TrinityErrors."""

from trinity.calls.causes import as_trinity, translated
from trinity.calls.decorator import CallError, current_work, public, translated_by, work
from trinity.calls.spark import STOPPED, from_spark, is_stopped, quiet, spark_errors

__all__ = [
    "STOPPED",
    "CallError",
    "as_trinity",
    "current_work",
    "from_spark",
    "is_stopped",
    "public",
    "quiet",
    "spark_errors",
    "translated",
    "translated_by",
    "work",
]
