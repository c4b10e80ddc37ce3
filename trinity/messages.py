"""Texts in messages of errors: no secret, no value at length, no traceback (N4)."""

from __future__ import annotations

import re
from typing import Any, Final

from trinity.secrets import redacted

__all__ = ["SHOWN", "presentable", "shown_value", "without_traceback"]

SHOWN: Final = 200
"""Characters of a value, a name or a statement that a message shows."""

_WORD: Final = 1000
"""Characters of one word of a message: a path may be as long."""
_HEAD: Final = 1500
_TAIL: Final = 400
"""Characters of a message that are shown before and after what is left out."""

_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t]+.*\n|\n(?=[ \t]))*")
_PLAIN_RUN: Final = re.compile(rf"[^\s/]{{{SHOWN + 1},}}")
_PATH_RUN: Final = re.compile(rf"\S{{{_WORD + 1},}}")
_QUOTED_RUN: Final = re.compile(rf"(?<!\w)'(?![^\s']*/[^\s']*')[^']{{{SHOWN + 1},}}'(?!\w)")
"""Text in quotes that is no path."""


def shown_value(value: Any) -> str:
    """A value, a name or a statement in a message: its first 200 characters at most."""
    text = str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def presentable(message: str) -> str:
    """A message as it may be shown.

    Secrets are hidden; of a traceback only its last line stays; what is longer than any value should be is cut in its
    middle, and so is the whole. What is presentable already stays as it is.
    """
    text = without_traceback(redacted(message))
    text = _QUOTED_RUN.sub(_cut, text)
    text = _PLAIN_RUN.sub(_cut, text)
    text = _PATH_RUN.sub(_cut, text)
    if len(text) > _HEAD + _TAIL + 3:
        text = f"{text[:_HEAD]} … {text[-_TAIL:]}"
    return text


def without_traceback(text: str) -> str:
    """A text without the frames of a Python traceback; what was raised stays."""
    return _TRACEBACK.sub("", text) if "Traceback (most recent call last)" in text else text


def _cut(found: re.Match[str]) -> str:
    run = found[0]
    return f"{run[: SHOWN - 21]}…{run[-20:]}"
