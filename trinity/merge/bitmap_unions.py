"""The names of Trinity's own functions in Spark that unite bitmaps; Spark has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["BITMAP_UNIONS"]

BITMAP_UNIONS: Final[Mapping[str, str]] = {"rbm32": "_trinity_rbm32_union", "rbm64": "_trinity_rbm64_union"}
"""Name of an aggregate function -> name of its union in Spark."""
