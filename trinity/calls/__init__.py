"""The seam between callers and Trinity: public functions check their arguments, and raise only TrinityErrors."""

from trinity.calls.causes import as_trinity, translated
from trinity.calls.decorator import CallError, public, translated_by
from trinity.calls.stopped import STOPPED, is_stopped
from trinity.calls.work import current_work, work

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
