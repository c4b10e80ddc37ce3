"""Functions of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.casts import as_text
from trinity.engine.expressions.families import BOOLEAN, STRING, TEXTS, VOID
from trinity.engine.expressions.node import Compiled, Refused, as_array
from trinity.spi import DataType

__all__ = [
    "concatenated",
    "ends_with",
    "left",
    "length",
    "like",
    "part_of",
    "replaced",
    "starts_with",
    "substring",
    "trimmed",
]

_INT = DataType("int")
_Timezone = Callable[[], str]


def _text(value: Compiled) -> Compiled:
    if value.type.name not in (*TEXTS, VOID.name):
        raise Refused(f"only Spark makes a text of {value.type} here")
    return Compiled(STRING, lambda rows: value.run(rows).cast(pa.string()), value.fields, may_fail=value.may_fail)


def _mapped(value: Compiled, kernel: Callable[[Any], Any], kind: DataType = STRING) -> Compiled:
    text = _text(value)
    return Compiled(kind, lambda rows: kernel(text.run(rows)), text.fields, may_fail=text.may_fail)


def _literal(value: Compiled, what: str) -> Any:
    """Return the value of a literal. Raises Refused for another expression, and for NULL."""
    if not value.constant or value.type == VOID or value.is_null:
        raise Refused(f"only Spark evaluates {what} that is no literal")
    return value.value


def _whole(value: Compiled, what: str) -> int:
    found = _literal(value, what)
    if not isinstance(found, int) or isinstance(found, bool):
        raise Refused(f"only Spark evaluates {what} that is no whole number")
    return found


def concatenated(values: Sequence[Compiled], timezone: _Timezone) -> Compiled:
    """Return texts one after the other; NULL where one is NULL."""
    if any(v.type.name in ("binary", "array") for v in values):
        raise Refused("only Spark joins values of type BINARY or ARRAY")
    texts = [as_text(v, timezone) for v in values]
    fields = frozenset().union(*(t.fields for t in texts))

    def run(rows: pa.RecordBatch) -> pa.Array:
        return pc.binary_join_element_wise(*(as_array(t.run(rows), len(rows)) for t in texts), "")

    return Compiled(STRING, run, fields, may_fail=any(t.may_fail for t in texts))


def length(value: Compiled) -> Compiled:
    """Return the number of characters, of BINARY of bytes."""
    if value.type.name == "binary":
        return Compiled(_INT, lambda rows: pc.binary_length(value.run(rows)), value.fields, may_fail=value.may_fail)
    return _mapped(value, pc.utf8_length, _INT)


def like(value: Compiled, pattern: Compiled) -> Compiled:
    """Return LIKE with a literal, in which ``%`` and ``_`` stand for characters."""
    text = _literal(pattern, "LIKE with a pattern")
    return _mapped(value, lambda found: pc.match_like(found, text), BOOLEAN)


def starts_with(value: Compiled, other: Compiled) -> Compiled:
    """Return whether a text starts with a literal."""
    text = _literal(other, "STARTSWITH with a text")
    return _mapped(value, lambda found: pc.starts_with(found, text), BOOLEAN)


def ends_with(value: Compiled, other: Compiled) -> Compiled:
    """Return whether a text ends with a literal."""
    text = _literal(other, "ENDSWITH with a text")
    return _mapped(value, lambda found: pc.ends_with(found, text), BOOLEAN)


def part_of(value: Compiled, other: Compiled) -> Compiled:
    """Return whether a literal is in a text."""
    text = _literal(other, "CONTAINS with a text")
    return _mapped(value, lambda found: pc.match_substring(found, text), BOOLEAN)


def trimmed(value: Compiled, side: str) -> Compiled:
    """Return a text without the blanks at its ends, or at one: no other white space goes."""
    kernel = {"": pc.utf8_trim, "BOTH": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}[side]
    return _mapped(value, lambda found: kernel(found, characters=" "))


def replaced(value: Compiled, old: Compiled, new: Compiled) -> Compiled:
    """Return a text with all places of a literal replaced."""
    before, after = _literal(old, "REPLACE of a text"), _literal(new, "REPLACE by a text")
    if not before:
        return _text(value)
    return _mapped(value, lambda found: pc.replace_substring(found, before, after))


def substring(value: Compiled, start: Compiled, count: Compiled | None) -> Compiled:
    """Return characters from a place on, counted from 1; 0 is the first one, too."""
    first = _whole(start, "SUBSTRING from a place")
    if first < 0:
        raise Refused("only Spark evaluates SUBSTRING from the end")
    first = max(first - 1, 0)
    last = None if count is None else first + max(_whole(count, "SUBSTRING of a length"), 0)
    if last == first:
        return _mapped(value, lambda found: pc.if_else(pc.is_valid(found), "", found))
    return _mapped(value, lambda found: pc.utf8_slice_codeunits(found, first, last))


def left(value: Compiled, count: Compiled) -> Compiled:
    """Return the first characters."""
    last = _whole(count, "LEFT of a length")
    if last <= 0:
        return _mapped(value, lambda found: pc.if_else(pc.is_valid(found), "", found))
    return _mapped(value, lambda found: pc.utf8_slice_codeunits(found, 0, last))
