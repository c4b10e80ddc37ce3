"""Dates and times, formatted and parsed by patterns of those of Java's letters whose meaning is certain."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.casts import cast
from trinity.engine.expressions.days import LAST_DAY, MICROS_OF_DAY, Numbers, parts
from trinity.engine.expressions.node import STRING, Compiled, Refused
from trinity.engine.expressions.rows import of_rows
from trinity.engine.expressions.text_values import days_at, number_of
from trinity.engine.writing.clocks import clocks_of, instants_of
from trinity.errors import TrinityError
from trinity.messages import shown_value
from trinity.spi import DataType
from trinity.zones import normal_zone

_Timezone = Callable[[], str]
_DATE: Final = DataType("date")
_TIMESTAMP: Final = DataType("timestamp")
_SIZES: Final = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2, "ss": 2, "SSS": 3, "SSSSSS": 6}
"""Letters that stand for digits, in parsing and formatting -> the number of digits."""
_YEAR: Final = "[0-9]{4}|-000[1-9]|-00[1-9][0-9]|-0[1-9][0-9]{2}|-[1-9][0-9]{3,5}|[+][1-9][0-9]{4,5}"
"""A year as Java reads it strictly: a sign before more than four digits, and no minus before 0."""
_TOKEN: Final = re.compile(r"([a-zA-Z])\1*|'([^']+)'|[-/:., _]")
_WORDS: Final = {
    "MMM": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "E": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
}  # fmt: skip
"""Letters that stand for words, in formatting only -> the words."""


@dataclass(frozen=True)
class _Pattern:
    """A pattern in parts: runs of one letter, each with True, and the texts between them, each with False."""

    parts: tuple[tuple[bool, str], ...]

    @classmethod
    def of(cls, value: Compiled) -> _Pattern:
        """Parse the pattern in a literal. Raises Refused for other expressions, and for patterns of Spark alone."""
        if value.type != STRING or not value.constant or value.is_null:
            raise Refused("only Spark reads a pattern that is no literal")
        text, at, found = value.value, 0, list[tuple[bool, str]]()
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise Refused(f"only Spark knows the pattern '{text}'")
            found.append((token[1] is not None, token[2] or token[0]))
            at = token.end()
        return cls(tuple(found))

    @property
    def letters(self) -> list[str]:
        """The runs of one letter, such as ``yyyy``."""
        return [text for is_letter, text in self.parts if is_letter]

    def refuse_others(self, *known: str) -> None:
        """Raise Refused for letters other than the allowed ones."""
        for letter in self.letters:
            if letter not in known:
                raise Refused(f"only Spark knows '{letter}' in a pattern")


def text_of_time(value: Compiled, pattern: Compiled, timezone: _Timezone) -> Compiled:
    """Return DATE_FORMAT. Raises Refused for other types than dates and timestamps."""
    if not value.type.is_datetime:
        raise Refused(f"only Spark writes {value.type} by a pattern")
    wanted, zone = _Pattern.of(pattern), normal_zone(timezone())
    wanted.refuse_others(*_SIZES, *_WORDS)

    def kernel(found: pa.Array) -> pa.Array:
        micros = clocks_of(found, zone).cast(pa.int64()).to_numpy(zero_copy_only=False)
        return pc.binary_join_element_wise(
            *(_written(text, micros) if is_letter else text for is_letter, text in wanted.parts), ""
        )

    return of_rows(STRING, kernel, cast(value, _TIMESTAMP, timezone))


def _written(letter: str, micros: Numbers) -> pa.Array:
    """Format the part of times for which a run of one letter stands; the times are microseconds since 1970."""
    days, rest = micros // MICROS_OF_DAY, micros % MICROS_OF_DAY
    if letter == "E":
        return pa.array(_WORDS["E"]).take(pa.array((days + 3) % 7))
    if letter == "MMM":
        return pa.array(_WORDS["MMM"]).take(pa.array(parts(days)[1] - 1))
    if letter == "yyyy":
        years, indexes = np.unique(parts(days)[0], return_inverse=True)
        texts = [f"{'-' * (y < 0) or '+' * (y > 9999)}{abs(y):04d}" for y in years.tolist()]
        return pa.array(texts, pa.string()).take(pa.array(indexes))
    if letter == "SSSSSS":
        return pc.utf8_lpad(pa.array(rest % 1_000_000).cast(pa.string()), 6, "0")
    size = _SIZES[letter]
    return pa.array([f"{number:0{size}d}" for number in range(10**size)]).take(pa.array(_NUMBERS[letter](days, rest)))


_NUMBERS: Final[dict[str, Callable[[Numbers, Numbers], Numbers]]] = {
    "MM": lambda days, _: parts(days)[1],
    "dd": lambda days, _: parts(days)[2],
    "HH": lambda _, micros: micros // 3_600_000_000,
    "mm": lambda _, micros: micros // 60_000_000 % 60,
    "ss": lambda _, micros: micros // 1_000_000 % 60,
    "SSS": lambda _, micros: micros // 1000 % 1000,
}
"""Letters -> the function that returns their number, from days since 1970 and microseconds of the day."""


def date_of_text(value: Compiled, pattern: Compiled, timezone: _Timezone) -> Compiled:
    """Return TO_DATE of a text by a pattern. Raises Refused for other types than texts."""
    return cast(time_of_text(value, pattern, timezone), _DATE, timezone)


def time_of_text(value: Compiled, pattern: Compiled, timezone: _Timezone) -> Compiled:
    """Return TO_TIMESTAMP of a text by a pattern; a text that does not match is an error.

    Raises:
        Refused: for other types than texts; for a pattern without year, month and day, or a time without hours.
    """
    if not value.type.is_text:
        raise Refused(f"only Spark reads {value.type} by a pattern")
    wanted, zone = _Pattern.of(pattern), normal_zone(timezone())
    wanted.refuse_others(*_SIZES)
    letters = wanted.letters
    times = [letter for letter in ("HH", "mm", "ss", "SSS") if letter in letters]
    if len(set(letters)) < len(letters) or not {"yyyy", "MM", "dd"} <= set(letters) or "SSSSSS" in letters:
        raise Refused("only Spark reads a pattern without year, month and day, or with one twice")
    if times != ["HH", "mm", "ss", "SSS"][: len(times)]:
        raise Refused("only Spark reads times of which a part is missing")
    read = "".join(
        f"(?P<{text}>{_YEAR if text == 'yyyy' else f'[0-9]{{{_SIZES[text]}}}'})" if is_letter else re.escape(text)
        for is_letter, text in wanted.parts
    )

    shown = pattern.value

    def kernel(texts: pa.Array) -> pa.Array:
        texts = texts.cast(pa.string())
        found = pc.extract_regex(texts, f"^{read}$")
        _refuse_where(pc.is_null(found), texts, shown)
        numbers = {letter: number_of(pc.utf8_ltrim(found.field(letter), "+"), 0) for letter in letters}
        days, wrong = days_at(numbers["yyyy"], numbers["MM"], numbers["dd"])
        hour, minute, second, thousandth = (numbers.get(letter, np.int64(0)) for letter in ("HH", "mm", "ss", "SSS"))
        wrong |= (hour > 23) | (minute > 59) | (second > 59) | (np.abs(days) > LAST_DAY)
        _refuse_where(pa.array(wrong), texts, shown)
        micros = days * MICROS_OF_DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + thousandth * 1000
        return instants_of(pa.array(micros).cast(pa.timestamp("us")), zone).cast(_TIMESTAMP.to_arrow())

    return of_rows(_TIMESTAMP, kernel, value, may_fail=True)


def _refuse_where(wrong: pa.Array, texts: pa.Array, pattern: str) -> None:
    if pc.any(wrong).as_py():
        text = shown_value(texts.filter(wrong)[0].as_py())
        raise TrinityError("INVALID_ARGUMENTS", f"The text {text} is no time of the pattern '{pattern}'.")
