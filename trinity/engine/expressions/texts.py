"""SQL functions that take or return texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.casts import as_text
from trinity.engine.expressions.node import BOOLEAN, STRING, VOID, Compiled, Refused, as_array
from trinity.engine.expressions.patterns import Pattern
from trinity.engine.expressions.rows import of_rows
from trinity.spi import DataType

_INT: Final = DataType("int")
_Timezone = Callable[[], str]


def _text(value: Compiled) -> Compiled:
    if not (value.type.is_text or value.type == VOID):
        raise Refused(f"only Spark makes a text of {value.type} here")
    return value.mapped(lambda found: found.cast(pa.string()), STRING)


def _mapped(value: Compiled, kernel: Callable[[Any], Any], kind: DataType = STRING) -> Compiled:
    return _text(value).mapped(kernel, kind)


def _literal(value: Compiled, what: str) -> Any:
    """Return the value of a literal. Raises Refused for other expressions, and for NULL."""
    if not value.constant or value.type == VOID or value.is_null:
        raise Refused(f"only Spark evaluates {what} that is no literal")
    return value.value


def _literal_text(value: Compiled, what: str) -> str:
    """Return the value of a text literal. Raises Refused for other expressions, such as a number, and for NULL."""
    found = _literal(value, what)
    if not isinstance(found, str):
        raise Refused(f"only Spark makes a text of {value.type} here")
    return found


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

    def run(rows: pa.RecordBatch) -> pa.Array:
        return pc.binary_join_element_wise(*(as_array(t.run(rows), len(rows)) for t in texts), "")

    return Compiled.over(STRING, run, *texts)


def length(value: Compiled) -> Compiled:
    """Return LENGTH: the number of characters of a text, or of bytes of a BINARY."""
    if value.type.name == "binary":
        return value.mapped(pc.binary_length, _INT)
    return _mapped(value, pc.utf8_length, _INT)


def size_in_bytes(value: Compiled, unit: int = 1) -> Compiled:
    """Return the number of bytes of a text or a BINARY, times a unit: 8 gives the number of bits."""
    found = value if value.type.name == "binary" else _text(value)
    return of_rows(_INT, lambda rows: pc.multiply(pc.binary_length(rows), unit).cast(pa.int32()), found)


def upper(value: Compiled) -> Compiled:
    """Return a text in upper case."""
    return _changed(value, pc.ascii_upper, lambda text: text.upper().translate(_UPPER))


def lower(value: Compiled) -> Compiled:
    """Return a text in lower case."""
    return _changed(value, pc.ascii_lower, lambda text: text.lower().translate(_LOWER))


def like(value: Compiled, pattern: Compiled, escape: str | None = None, *, any_case: bool = False) -> Compiled:
    """Return LIKE with a literal pattern of ``%`` and ``_``; ILIKE if ``any_case``. By default a backslash escapes."""
    if any_case:
        value, pattern = lower(value), lower(pattern)
    text = _literal_text(pattern, "LIKE with a pattern")
    if text and max(text) > _LAST_OF_JAVA:
        raise Refused("only Spark evaluates LIKE with a character that Java has in two parts")
    if escape is None and "\\" not in text:
        return _mapped(value, lambda found: pc.match_like(found, text), BOOLEAN)
    regex = _like_as_regex(text, "\\" if escape is None else escape)  # Arrow unescapes only some patterns
    return _mapped(value, lambda found: pc.match_substring_regex(found, regex), BOOLEAN)


_LAST_OF_JAVA: Final = "\uffff"
"""The last character of one UTF-16 unit. Beyond it Spark compares characters or units, depending on the pattern."""


def _like_as_regex(pattern: str, escape: str) -> str:
    if len(escape) != 1:
        raise Refused("only Spark evaluates LIKE with an ESCAPE of other than one character")
    found, characters = "", iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if character not in ("%", "_", escape):
                raise Refused(f"only Spark says what is wrong with '{escape}{character}' in LIKE")
            found += _LITERAL.format(ord(character))
        else:
            found += {"%": ".*", "_": "."}.get(character) or _LITERAL.format(ord(character))
    return f"(?s)^{found}$"


_LITERAL: Final = r"\x{{{:x}}}"
"""A character in a regular expression, written by its code point."""


def matches(value: Compiled, pattern: Compiled) -> Compiled:
    """Return RLIKE with a literal pattern."""
    regex = Pattern.of(_literal_text(pattern, "RLIKE with a pattern")).matching
    return _mapped(value, lambda found: pc.match_substring_regex(found, regex), BOOLEAN)


def extracted(value: Compiled, pattern: Compiled, group: Compiled) -> Compiled:
    """Return REGEXP_EXTRACT: what a group of a literal pattern matches first; an empty text where nothing does."""
    number = _whole(group, "REGEXP_EXTRACT of a group")
    regex = Pattern.of(_literal_text(pattern, "REGEXP_EXTRACT with a pattern")).extracting(number)

    def kernel(found: pa.Array) -> pa.Array:
        matches = pc.extract_regex(found, regex)
        return pc.if_else(pc.is_valid(matches), pc.struct_field(matches, [0]), "")

    return of_rows(STRING, kernel, _text(value))


def replaced_matches(value: Compiled, pattern: Compiled, replacement: Compiled) -> Compiled:
    """Return REGEXP_REPLACE: a text with all matches of a literal pattern replaced."""
    java = Pattern.of(_literal_text(pattern, "REGEXP_REPLACE with a pattern"))
    regex, by = java.replacing(_literal_text(replacement, "REGEXP_REPLACE by a text"))
    return _mapped(value, lambda found: pc.replace_substring_regex(found, regex, by))


def starts_with(value: Compiled, other: Compiled) -> Compiled:
    """Return whether a text starts with a literal."""
    text = _literal_text(other, "STARTSWITH with a text")
    return _mapped(value, lambda found: pc.starts_with(found, text), BOOLEAN)


def ends_with(value: Compiled, other: Compiled) -> Compiled:
    """Return whether a text ends with a literal."""
    text = _literal_text(other, "ENDSWITH with a text")
    return _mapped(value, lambda found: pc.ends_with(found, text), BOOLEAN)


def part_of(value: Compiled, other: Compiled) -> Compiled:
    """Return whether a literal is in a text."""
    text = _literal_text(other, "CONTAINS with a text")
    return _mapped(value, lambda found: pc.match_substring(found, text), BOOLEAN)


def trimmed(value: Compiled, side: str) -> Compiled:
    """Return a text without blanks at one side, or at both if ``side`` is empty or BOTH. Other white space stays."""
    kernel = {"": pc.utf8_trim, "BOTH": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}[side]
    return _mapped(value, lambda found: kernel(found, characters=" "))


def replaced(value: Compiled, old: Compiled, new: Compiled) -> Compiled:
    """Return a text with all occurrences of a literal replaced."""
    before, after = _literal_text(old, "REPLACE of a text"), _literal_text(new, "REPLACE by a text")
    if not before:
        return _text(value)
    return _mapped(value, lambda found: pc.replace_substring(found, before, after))


def substring(value: Compiled, start: Compiled, count: Compiled | None) -> Compiled:
    """Return SUBSTRING: a number of characters, or all, from a position on.

    Positions count from 1, negative ones from the end; 0 means the first character, too.
    """
    first = _whole(start, "SUBSTRING from a place")
    number = None if count is None else _whole(count, "SUBSTRING of a length")
    if number is not None and number <= 0:
        return _empty(value)
    first -= first > 0
    last = None if number is None or first < 0 <= first + number else first + number  # None for the end of the text
    return _mapped(value, lambda found: pc.utf8_slice_codeunits(found, first, last))


def _empty(value: Compiled) -> Compiled:
    return of_rows(STRING, lambda found: pa.repeat("", len(found)), _text(value))


def left(value: Compiled, count: Compiled) -> Compiled:
    """Return LEFT: a number of characters from the start of a text."""
    last = _whole(count, "LEFT of a length")
    return _empty(value) if last <= 0 else _mapped(value, lambda found: pc.utf8_slice_codeunits(found, 0, last))


def right(value: Compiled, count: Compiled) -> Compiled:
    """Return RIGHT: a number of characters from the end of a text."""
    number = _whole(count, "RIGHT of a length")
    return _empty(value) if number <= 0 else _mapped(value, lambda found: pc.utf8_slice_codeunits(found, -number))


def padded(value: Compiled, count: Compiled, padding: Compiled | None, *, before: bool) -> Compiled:
    """Return LPAD, or RPAD: a text padded or cut to a number of characters."""
    length = _whole(count, "LPAD and RPAD to a length")
    character = " " if padding is None else _literal_text(padding, "LPAD and RPAD with a text")
    if len(character) != 1 or length > _MOST_PADDED:
        raise Refused(f"only Spark fills texts to {length} characters by '{character}'")
    if length <= 0:
        return _empty(value)
    pad = pc.utf8_lpad if before else pc.utf8_rpad
    return _mapped(value, lambda found: pc.utf8_slice_codeunits(pad(found, length, character), 0, length))


_MOST_PADDED: Final = 10_000


def repeated(value: Compiled, count: Compiled) -> Compiled:
    """Return REPEAT: a text a number of times."""
    times = _whole(count, "REPEAT of a number")
    if times > _MOST_PADDED:
        raise Refused(f"only Spark repeats a text {times} times")
    return _mapped(value, lambda found: pc.binary_repeat(found, max(times, 0)))


def reversed_text(value: Compiled) -> Compiled:
    """Return a text backwards."""
    if value.type.nested:
        raise Refused("only Spark reverses lists")
    return _mapped(value, pc.utf8_reverse)


def position_of(value: Compiled, part: Compiled) -> Compiled:
    """Return INSTR: the position of the first occurrence of a literal, from 1; 0 without one."""
    text = _literal_text(part, "INSTR of a text")
    if not text:
        return of_rows(_INT, lambda found: pa.repeat(pa.scalar(1, pa.int32()), len(found)), _text(value))

    def kernel(found: pa.Array) -> pa.Array:
        before = pc.list_element(pc.split_pattern(found, text, max_splits=1), 0)
        position = pc.add(pc.utf8_length(before), 1)
        return pc.if_else(pc.match_substring(found, text), position, 0).cast(pa.int32())

    return of_rows(_INT, kernel, _text(value))


def part_split(value: Compiled, delimiter: Compiled, number: Compiled) -> Compiled:
    """Return SPLIT_PART: the part with a number, which counts from 1; an empty text beyond the last part."""
    text, position = _literal_text(delimiter, "SPLIT_PART by a text"), _whole(number, "SPLIT_PART of a number")
    if not text or position < 1:
        raise Refused("only Spark evaluates SPLIT_PART without a delimiter, or from the end")

    def kernel(found: pa.Array) -> pa.Array:
        return pc.binary_join(pc.list_slice(pc.split_pattern(found, text), position - 1, position), "")

    return of_rows(STRING, kernel, _text(value))


def joined(separator: Compiled, values: Sequence[Compiled], timezone: _Timezone) -> Compiled:
    """Return CONCAT_WS: texts joined by a separator; NULLs are left out."""
    if not values or any(v.type.name in ("binary", "array") for v in values):
        raise Refused("only Spark joins values of type BINARY or ARRAY, or none")
    between, *texts = [_text(separator), *(as_text(v, timezone) for v in values)]

    def run(rows: pa.RecordBatch) -> pa.Array:
        *given, separators = [as_array(t.run(rows), len(rows)).cast(pa.string()) for t in (*texts, between)]
        some = reduce(pc.or_, map(pc.is_valid, given))  # Arrow drops a row in which all are NULL
        found = pc.binary_join_element_wise(*(g.filter(some) for g in (*given, separators)), null_handling="skip")
        return pc.replace_with_mask(pc.if_else(pc.is_valid(separators), "", separators), some, found)

    return Compiled.over(STRING, run, between, *texts)


_UPPER: Final = {
    0x19B: 0xA7DC, 0x264: 0xA7CB, 0x1C8A: 0x1C89, 0xA7CD: 0xA7CC, 0xA7DB: 0xA7DA,
    **{letter: letter - 0x20 for letter in range(0x10D70, 0x10D86)},
}  # fmt: skip
"""Lower-case letter -> upper-case letter, for pairs of Unicode 15 and 16 that an older Python does not know."""
_LOWER: Final = {upper: lower for lower, upper in _UPPER.items()}


def _changed(value: Compiled, of_ascii: Callable[[Any], Any], of_text: Callable[[str], str]) -> Compiled:
    """Apply a kernel of Arrow to ASCII texts, and a function to each distinct other text."""

    def kernel(texts: pa.Array) -> pa.Array:
        found = of_ascii(texts)
        others = pc.invert(pc.string_is_ascii(texts))
        if not pc.any(others).as_py():
            return found
        distinct = texts.filter(others).dictionary_encode()
        changed = pa.array([of_text(text) for text in distinct.dictionary.to_pylist()], pa.string())
        return pc.replace_with_mask(found, others, changed.take(distinct.indices))

    return of_rows(STRING, kernel, _text(value))
