"""Names of columns that are not for users to give: hidden ones, and those by which feeds say what changed."""

from __future__ import annotations

from typing import Final

__all__ = ["DELTA_FEED", "HIDDEN_PREFIX", "ICEBERG_FEED"]

HIDDEN_PREFIX: Final = "_trinity_"
"""Columns of this prefix are stored but never shown."""
DELTA_FEED: Final = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns by which Delta's change data feed, and Trinity's changes, say what changed, in which commit, when."""
ICEBERG_FEED: Final = ("_change_type", "_change_ordinal", "_commit_snapshot_id")
"""Columns by which Iceberg's changelog views say what changed, in which order, in which snapshot."""
