"""The seam between callers and Trinity: public functions check their arguments, and raise only TrinityErrors."""

from trinity.calls.causes import as_trinity, translated
from trinity.calls.decorator import CallError, current_work, public, translated_by, work
from trinity.calls.spark import STOPPED, is_stopped

__all__ = [
    "STOPPED",
    "CallError",
    "as_trinity",
    "current_work",
    "is_stopped",
    "public",
    "translated",
    "translated_by",
    "work",
]
