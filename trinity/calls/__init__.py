"""The seam between callers and Trinity: what users call checks what it is given, and raises TrinityErrors alone."""

from trinity.calls.causes import as_trinity, translated
from trinity.calls.decorator import CallError, public, translated_by
from trinity.calls.stopped import STOPPED, is_stopped

__all__ = ["STOPPED", "CallError", "as_trinity", "is_stopped", "public", "translated", "translated_by"]
