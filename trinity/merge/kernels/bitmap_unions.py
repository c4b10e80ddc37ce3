"""Unions of serialized Roaring bitmaps, and the names of Trinity's functions for them in Spark, which has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

BITMAP_UNIONS: Final[Mapping[str, str]] = {"rbm32": "_trinity_rbm32_union", "rbm64": "_trinity_rbm64_union"}
"""Name of an aggregate function -> name of its union in Spark."""


def united_bitmaps(name: str, lists: pa.Array) -> pa.Array:
    """Return the union of each list of serialized bitmaps, in the format of a function; empty for NULL."""
    bitmap = bitmap_class(name)
    united = []
    for serialized in lists.to_pylist():
        whole = bitmap()
        for one in serialized or ():
            whole |= bitmap.deserialize(one)
        united.append(whole.serialize())
    return pa.array(united, pa.binary())


def bitmap_class(name: str) -> Any:
    """Return the library's class of the bitmaps of a function. Raises ImportError without the library."""
    import pyroaring

    return {"rbm32": pyroaring.BitMap, "rbm64": pyroaring.BitMap64}[name]
