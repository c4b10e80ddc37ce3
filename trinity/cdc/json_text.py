"""JSON texts whose numbers Spark's reader leaves as they are, in Spark SQL.

Spark's from_json reads a number through a DOUBLE. It does not distinguish a number, a boolean or an object from a
string with the same text. So numbers become marked strings before it reads them. Strings that look like marked ones, or
like booleans, arrays and objects, get the mark as well:

``{"a": 1.50, "b": "1.50", "c": "#1", "d": "true"}`` becomes ``{"a": "#1.50", "b": "1.50", "c": "##1", "d": "#true"}``.

Below, a *field* is Spark SQL of what from_json reads of such a text into a STRING.
"""

from __future__ import annotations

from typing import Final

from trinity.syntax.quoting import text_literal

# Possessive quantifiers throughout: Java's matcher then neither backtracks nor recurses, however long a text is.
_REST: Final = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
"""Pattern of a string after its opening quote, up to the closing one."""
_NUMBER: Final = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+"
_DOUBTFUL: Final = r'(?:[#{\[]|\\u00(?:23|5[bB]|7[bB])|(?:true|false)(?="(?!\s*+:)))'
"""Pattern of the beginning of a string that gets the mark: as a name, ``true`` needs none."""
_MARKING: Final = (
    rf'\G((?:[^"0-9-]++|"(?!{_DOUBTFUL}){_REST}")*+)(?:({_NUMBER})(?=[\s,}}\]])|"({_DOUBTFUL}{_REST})")',
    r'$1"#$2$3"',
)
_UNMARKING: Final = rf'\G((?:[^"]++|"(?!#){_REST}")*+)(?:"#(-?+[0-9][^"]*+)"|(")#([^0-9-]{_REST}"))', "$1$2$3$4"


def marked(text: str) -> str:
    """Return Spark SQL of a JSON text with its numbers as marked strings. Invalid JSON stays invalid."""
    return _replaced(text, *_MARKING)


def valid(text: str) -> str:
    """Return Spark SQL that is true for a marked text that is one JSON value, in which no object has a key twice.

    The check puts the text into an array, and from_json reads it in an object. No text can close both, and go on.
    """
    whole = f"try_parse_json(concat('[', {text}, ',0]'))"
    return f"coalesce(try_variant_get({whole}, '$[1]', 'int') = 0, false)"


def is_number(field: str) -> str:
    """Return Spark SQL that is true for a number."""
    return f"{field} RLIKE '^#[0-9-]'"


def is_text(field: str) -> str:
    """Return Spark SQL that is true for a string."""
    return f"NOT ({is_number(field)} OR {field} IN ('true', 'false') OR {is_array(field)} OR {is_object(field)})"


def is_array(field: str) -> str:
    """Return Spark SQL that is true for an array."""
    return f"startswith({field}, '[')"


def is_object(field: str) -> str:
    """Return Spark SQL that is true for an object."""
    return f"startswith({field}, '{{')"


def text_of(field: str) -> str:
    """Return Spark SQL of the characters of a string, or of a number as it is written in the message."""
    return f"IF(startswith({field}, '#'), substring({field}, 2), {field})"


def shown(field: str) -> str:
    """Return Spark SQL as :func:`text_of` does; of an array or object its JSON, with all digits of its numbers."""
    whole = _replaced(field, *_UNMARKING)
    return (
        f"CASE left({field}, 1) WHEN '#' THEN substring({field}, 2) WHEN '[' THEN {whole} WHEN '{{' THEN {whole} "
        f"ELSE {field} END"
    )


def beginning(field: str) -> str:
    """Return Spark SQL of the beginning of a field, as an error shows it, without the marks."""
    return _replaced(f"left({field}, 60)", '^#|"#([0-9-][^"]*)"', "$1")


def _replaced(text: str, pattern: str, replacement: str) -> str:
    return f"regexp_replace({text}, {text_literal(pattern)}, {text_literal(replacement)})"
