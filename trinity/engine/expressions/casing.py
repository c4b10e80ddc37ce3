"""UPPER and LOWER by the rules of Unicode, as ICU has them in Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["lower", "upper"]


def upper(texts: pa.Array) -> pa.Array:
    """Return texts in upper case."""
    return _changed(texts, pc.ascii_upper, str.upper)


def lower(texts: pa.Array) -> pa.Array:
    """Return texts in lower case."""
    return _changed(texts, pc.ascii_lower, str.lower)


def _changed(texts: pa.Array, of_ascii: Callable[[Any], Any], of_text: Callable[[str], str]) -> pa.Array:
    """Change ASCII texts at once, and of others each one that is not like an earlier one."""
    found = of_ascii(texts)
    others = pc.invert(pc.string_is_ascii(texts))
    if not pc.any(others).as_py():
        return found
    asked = texts.filter(others).dictionary_encode()
    changed = pa.array([of_text(text) for text in asked.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(found, pc.fill_null(others, False), changed.take(asked.indices))
