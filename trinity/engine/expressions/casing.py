"""UPPER and LOWER by the rules of Unicode, as ICU has them in Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_UPPER: Final = {
    0x19B: 0xA7DC, 0x264: 0xA7CB, 0x1C8A: 0x1C89, 0xA7CD: 0xA7CC, 0xA7DB: 0xA7DA,
    **{letter: letter - 0x20 for letter in range(0x10D70, 0x10D86)},
}  # fmt: skip
"""Letters of Unicode 15 and 16 in upper case, which an older Python does not know."""
_LOWER: Final = {upper: lower for lower, upper in _UPPER.items()}


def upper(texts: pa.Array) -> pa.Array:
    """Return texts in upper case."""
    return _changed(texts, pc.ascii_upper, lambda text: text.upper().translate(_UPPER))


def lower(texts: pa.Array) -> pa.Array:
    """Return texts in lower case."""
    return _changed(texts, pc.ascii_lower, lambda text: text.lower().translate(_LOWER))


def _changed(texts: pa.Array, of_ascii: Callable[[Any], Any], of_text: Callable[[str], str]) -> pa.Array:
    """Change ASCII texts at once, and of others each one that is not like an earlier one."""
    found = of_ascii(texts)
    others = pc.invert(pc.string_is_ascii(texts))
    if not pc.any(others).as_py():
        return found
    distinct = texts.filter(others).dictionary_encode()
    changed = pa.array([of_text(text) for text in distinct.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(found, pc.fill_null(others, False), changed.take(distinct.indices))
