"""The mark of each status. It precedes the word, and never replaces it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MARKS: Final[Mapping[str, str]] = {
    "passed": "✓",
    "failed": "✗",
    "known gap": "!",
    "blocked": "■",
    "inconclusive": "?",
    "not supported": "-",
    "not played": "-",
    "left out": "·",
}
