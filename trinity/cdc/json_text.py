"""JSON texts whose numbers Spark's reader leaves alone, in Spark SQL.

Spark's from_json reads a number through a DOUBLE, and tells neither a number from a text of one nor an object from a
text of one. So numbers become strings before it reads them. A mark says which strings were numbers; strings that could
be taken for marked ones, or for arrays and objects, get the mark as well:

``{"a": 1.50, "b": "1.50", "c": "#1", "d": [1]}`` becomes ``{"a": "#1.50", "b": "1.50", "c": "##1", "d": ["#1"]}``.

Below, a *field* is Spark SQL of what from_json reads of such a text into a STRING.
"""

from __future__ import annotations

from typing import Final

from trinity.syntax.quoting import text_literal

__all__ = ["beginning", "is_array", "is_number", "is_object", "is_text", "marked", "shown", "text_of", "valid"]

# Possessive quantifiers throughout: Java's matcher neither goes back nor recurses, however long a text is.
_REST: Final = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
"""Pattern of a string behind its opening quote, up to the closing one."""
_NUMBER: Final = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+"
_DOUBTFUL: Final = r"(?:[#{\[]|\\u00(?:23|5[bB]|7[bB]))"
"""Pattern of how a string begins that gets the mark."""
_MARKING: Final = (
    rf'\G((?:[^"0-9-]++|"(?!{_DOUBTFUL}){_REST}")*+)(?:({_NUMBER})(?=[\s,}}\]])|"({_DOUBTFUL}{_REST})")',
    r'$1"#$2$3"',
)
_UNMARKING: Final = rf'\G((?:[^"]++|"(?!#){_REST}")*+)(?:"#(-?+[0-9][^"]*+)"|(")#([^0-9-]{_REST}"))', "$1$2$3$4"


def marked(text: str) -> str:
    """Spark SQL: a JSON text with its numbers as marked strings. What is no JSON stays so."""
    return _replaced(text, *_MARKING)


def valid(text: str) -> str:
    """Spark SQL: true for a marked text that is one JSON value, in which no object has a key twice.

    It must be read as a field of an object as well: no text ends an array here and an object there, to go on behind it.
    """
    whole = f"try_parse_json(concat('[', {text}, ',0]'))"
    return f"coalesce(try_variant_get({whole}, '$[1]', 'int') = 0, false)"


def is_number(field: str) -> str:
    """Spark SQL: true for a number."""
    return f"{field} RLIKE '^#[0-9-]'"


def is_text(field: str) -> str:
    """Spark SQL: true for a string, ``true`` and ``false``."""
    return f"NOT ({is_number(field)} OR {is_array(field)} OR {is_object(field)})"


def is_array(field: str) -> str:
    """Spark SQL: true for an array."""
    return f"startswith({field}, '[')"


def is_object(field: str) -> str:
    """Spark SQL: true for an object."""
    return f"startswith({field}, '{{')"


def text_of(field: str) -> str:
    """Spark SQL: the characters of a string, or of a number as the message has them."""
    return f"IF(startswith({field}, '#'), substring({field}, 2), {field})"


def shown(field: str) -> str:
    """Spark SQL: as :func:`text_of`; of an array or object its JSON, whose numbers have all their digits."""
    whole = _replaced(field, *_UNMARKING)
    return (
        f"CASE left({field}, 1) WHEN '#' THEN substring({field}, 2) WHEN '[' THEN {whole} WHEN '{{' THEN {whole} "
        f"ELSE {field} END"
    )


def beginning(field: str) -> str:
    """Spark SQL: as much of a field as an error shows, without the marks."""
    return _replaced(f"left({field}, 60)", '^#|"#([0-9-][^"]*)"', "$1")


def _replaced(text: str, pattern: str, replacement: str) -> str:
    return f"regexp_replace({text}, {text_literal(pattern)}, {text_literal(replacement)})"
