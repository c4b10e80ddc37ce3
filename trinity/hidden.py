"""Columns that tables have and users never see."""

from __future__ import annotations

from typing import Final

__all__ = ["HIDDEN_PREFIX"]

HIDDEN_PREFIX: Final = "_trinity_"
"""Columns of this prefix are stored but never shown."""
