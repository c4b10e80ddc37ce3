"""Names and texts in Spark SQL."""

from __future__ import annotations

__all__ = ["quoted", "text_literal"]


def quoted(name: str) -> str:
    """A column name in Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A string literal in Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
