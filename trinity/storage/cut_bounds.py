"""Bounds of texts, cut to a length: a format's metadata have no room for long ones."""

from __future__ import annotations

from typing import Final

_LAST: Final = "\U0010ffff"
_AFTER: Final = {"\ud7ff": "\ue000"}
"""Character -> the one after it, where the numbers between them are none of characters."""


def upper_bound(text: str, length: int) -> str | None:
    """Return a text of at most so many characters that is not smaller than the given one, or None if there is none."""
    if len(text) <= length:
        return text
    kept = text[:length].rstrip(_LAST)
    return kept[:-1] + _AFTER.get(kept[-1], chr(ord(kept[-1]) + 1)) if kept else None
