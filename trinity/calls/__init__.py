"""The seam between callers and Trinity: what users call checks what it is given, and raises TrinityErrors alone."""

from trinity.calls.causes import as_trinity, translated
from trinity.calls.decorator import CallError, public, translated_by

__all__ = ["CallError", "as_trinity", "public", "translated", "translated_by"]
