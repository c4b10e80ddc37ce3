"""The forms of Debezium's placeholder for a value that did not change and is not known, by the type of its column.

Source: Debezium's class UnchangedToastedPlaceholder. An array of numbers has a number for each byte of the placeholder,
an array of UUIDs one UUID made of it, a value of type hstore the placeholder as its only key, with itself as value.
"""

from __future__ import annotations

import hashlib
import json
import uuid

from trinity.spi import DataType
from trinity.syntax.quoting import text_literal


def is_placeholder(value: str, kind: DataType, placeholder: str) -> str | None:
    """Return Spark SQL that is true for the placeholder; None for a type that cannot hold it."""
    text = text_literal(placeholder)
    if kind.is_text:
        hstore = json.dumps({placeholder: placeholder}, ensure_ascii=False, separators=(",", ":"))
        return f"{value} IN ({text}, {text_literal(hstore)})"
    if kind.name == "binary":
        return f"{value} = CAST({text} AS BINARY)"
    if kind.name == "map" and all(child.is_text for child in kind.children):
        return f"map_keys({value}) = array({text}) AND map_values({value}) = array({text})"
    if kind.name != "array":
        return None
    (item,) = kind.children
    if item.is_text:
        name = uuid.UUID(bytes=hashlib.md5(placeholder.encode(), usedforsecurity=False).digest(), version=3)
        numbers = ", ".join(f"'{byte}'" for byte in placeholder.encode())
        return f"{value} IN (array({text}), array('{name}'), array({numbers}))"
    if item.name == "binary":
        return f"{value} = array(CAST({text} AS BINARY))"
    if item.is_number:
        return f"{value} = try_cast(array({', '.join(map(str, placeholder.encode()))}) AS {kind})"
    return None
