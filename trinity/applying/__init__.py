"""Change events applied to a table: its rows as they are (SCD type 1), or with their history (SCD type 2).

The arguments have the names of Spark's declarative pipelines and Databricks' AUTO CDC.
"""

from __future__ import annotations

from trinity.applying.apply import apply_changes, create_changes_target

__all__ = ["apply_changes", "create_changes_target"]
