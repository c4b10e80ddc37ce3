"""Quoting of names and texts for Spark SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name quoted for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """Return a text as a string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
