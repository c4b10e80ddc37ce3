"""Texts of error messages: no secret, no long value, no traceback (N4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite, isnan
from typing import Any, Final

from trinity.secrets import redacted

SHOWN: Final = 200
"""Maximum characters of a value, a name or a statement in a message."""

_WORD: Final = 1000
"""Maximum characters of one word in a message: a path may be that long."""
_HEAD: Final = 1500
_TAIL: Final = 400
"""Characters of a long message that are shown at its end; :data:`_HEAD` at its beginning."""

_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t]+.*\n|\n(?=[ \t]))*")
_PLAIN_RUN: Final = re.compile(rf"[^\s/]{{{SHOWN + 1},}}")
_PATH_RUN: Final = re.compile(rf"\S{{{_WORD + 1},}}")
_QUOTED_RUN: Final = re.compile(rf"(?<!\w)'(?![^\s']*/[^\s']*')[^']{{{SHOWN + 1},}}'(?!\w)")
"""A long text in quotes that is not a path."""


def shown_value(value: Any) -> str:
    """Return a value, a name or a statement for a message: at most 200 characters."""
    text = str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def value_text(value: Any) -> str:
    """Return a value for a message, as SQL writes it: texts and times in quotes, numbers as digits, NULL for None."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, bytes | bytearray | memoryview):
        return f"X'{shown_value(bytes(value).hex().upper())}'"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{value_text(k)}: {value_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
        return "(" + ", ".join(map(value_text, value)) + ")"
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return shown_value(value) if isinstance(value, int | float | Decimal) else f"'{shown_value(value)}'"


def shown_row(names: Iterable[str], values: Iterable[Any]) -> str:
    """Return the given columns of a row for a message: ``a = 1, b = 'x'``."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in zip(names, values, strict=True))


def presentable(message: str) -> str:
    """Return a message in a form that users may see.

    Secrets are hidden, a traceback is reduced to its last line, and the middle of long words, quoted texts and messages
    is cut out. A message that is presentable already stays as it is.
    """
    text = without_traceback(redacted(_encodable(message)))
    text = _QUOTED_RUN.sub(_cut, text)
    text = _PLAIN_RUN.sub(_cut, text)
    text = _PATH_RUN.sub(_cut, text)
    if len(text) > _HEAD + _TAIL + 3:
        text = f"{text[:_HEAD]} … {text[-_TAIL:]}"
    return text


def without_traceback(text: str) -> str:
    """Return a text without the frames of a Python traceback; the raised error stays."""
    return _TRACEBACK.sub("", text) if "Traceback (most recent call last)" in text else text


def _encodable(text: str) -> str:
    """Return a text with half surrogate pairs as escapes: otherwise whoever prints the message fails."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _cut(found: re.Match[str]) -> str:
    run = found[0]
    return f"{run[: SHOWN - 21]}…{run[-20:]}"
