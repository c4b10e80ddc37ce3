"""Unions of serialized Roaring bitmaps. Spark has none, so Trinity registers functions, whose names are here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

BITMAP_UNIONS: Final[Mapping[str, str]] = {"rbm32": "_trinity_rbm32_union", "rbm64": "_trinity_rbm64_union"}
"""Name of an aggregate function -> name of its union in Spark."""


def united_bitmaps(name: str, lists: pa.Array) -> pa.Array:
    """Return the union of each list of serialized bitmaps, by the name of their aggregate function.

    The union of NULL is an empty bitmap.
    """
    bitmap = bitmap_class(name)
    united = []
    for serialized in lists.to_pylist():
        whole = bitmap()
        for one in serialized or ():
            whole |= bitmap.deserialize(one)
        united.append(whole.serialize())
    return pa.array(united, pa.binary())


def bitmap_class(name: str) -> Any:
    """Return the library's class for the bitmaps of an aggregate function. Raises ImportError without the library."""
    import pyroaring

    return {"rbm32": pyroaring.BitMap, "rbm64": pyroaring.BitMap64}[name]
