"""Events of change applied to a table: its rows as they are (SCD type 1), or as they were and are (SCD type 2).

The words are those of Spark's declarative pipelines and Databricks' AUTO CDC.
"""

from __future__ import annotations

from trinity.applying.apply import apply_changes, create_changes_target

__all__ = ["apply_changes", "create_changes_target"]
