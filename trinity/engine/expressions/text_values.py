"""Texts as values of other types and back, by CAST in ANSI mode: a text that is no value is an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.days import Numbers, days_since_1970, first_days, month_ends, parts
from trinity.engine.expressions.decimals import MOST_DIGITS, decimals_of, units_of
from trinity.errors import TrinityError
from trinity.messages import shown_value
from trinity.spi import INTEGERS, DataType

_BLANK: Final = r"[\x00-\x20\x7f]*"
"""White space and control characters, which are stripped at both ends."""
DATE_PARTS: Final = (
    "(?P<sign>[+-]?)(?P<year>[0-9]{most})(?:-(?P<month>[0-9]{{1,2}})(?:-(?P<day>[0-9]{{1,2}}){behind})?)?"
)
"""The parts of a date: least and ``most`` digits of its year, and the text allowed ``behind`` the day."""
_DATE: Final = rf"(?s)^{_BLANK}{DATE_PARTS.format(most='{4,7}', behind='(?:[ T].*)?')}{_BLANK}$"
_DOUBLE: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
_NAMED: Final = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), float("inf")),
    **dict.fromkeys(("-inf", "-infinity"), float("-inf")),
    "nan": float("nan"),
}
_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOST_EXPONENT: Final = 2**31 - 1
_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")


def refuse_where(wrong: pa.Array, texts: pa.Array, kind: DataType) -> None:
    """Raise TYPE_MISMATCH for the first text that is marked as wrong."""
    if pc.any(wrong).as_py():
        raise _wrong(texts.filter(wrong)[0].as_py(), kind)


def _wrong(text: str, kind: DataType) -> TrinityError:
    return TrinityError("TYPE_MISMATCH", f"The text {shown_value(text)} is no value of type {kind}.")


def _whole(texts: pa.Array, kind: DataType) -> pa.Array:
    """Read texts as whole numbers: digits with an optional sign."""
    digits = pc.replace_substring_regex(texts, rf"^{_BLANK}([+-]?[0-9]+){_BLANK}$", r"\1")
    digits = pc.replace_substring_regex(digits, r"^\+", "")
    try:
        return digits.cast(kind.to_arrow())
    except pa.ArrowInvalid as error:
        raise TrinityError("TYPE_MISMATCH", f"A text is no number of type {kind}: {error}.") from error


def trimmed(texts: pa.Array) -> pa.Array:
    """Return texts without white space and control characters at both ends."""
    return pc.replace_substring_regex(texts, rf"(?s)^{_BLANK}(.*?){_BLANK}$", r"\1")


def _booleans(texts: pa.Array, kind: DataType) -> pa.Array:
    """Read texts as booleans: t, true, y, yes or 1, and their opposites."""
    words = pc.ascii_lower(trimmed(texts))
    true = pc.is_in(words, value_set=pa.array(_TRUE))
    refuse_where(pc.invert(pc.or_(true, pc.is_in(words, value_set=pa.array(_FALSE)))), texts, kind)
    return true


def _dates(texts: pa.Array, kind: DataType) -> pa.Array:
    """Read texts as dates: year, year and month, or year, month and day; a time after the day is ignored."""
    found = pc.extract_regex(texts, _DATE)
    refuse_where(pc.is_null(found), texts, kind)
    days, wrong = days_of(found)
    refuse_where(pa.array(wrong | (np.abs(days) >= 2**31)), texts, kind)
    return pa.array(days.astype(np.int32)).cast(pa.date32())


def days_of(found: pa.StructArray) -> tuple[Numbers, np.ndarray]:
    """Return the days since 1970 of dates in the parts of :data:`DATE_PARTS`, and True for dates that do not exist."""
    negative = pc.equal(found.field("sign"), "-").to_numpy(zero_copy_only=False)
    year, month, day = (number_of(found.field(part), 1) for part in ("year", "month", "day"))
    return days_at(np.where(negative, -year, year), month, day)


def days_at(year: Numbers, month: Numbers, day: Numbers) -> tuple[Numbers, np.ndarray]:
    """Return the days since 1970 of dates, and True for dates that do not exist."""
    first = first_days((year - 1970) * 12 + np.clip(month, 1, 12) - 1)
    days = first + day - 1
    return days, (month < 1) | (month > 12) | (day < 1) | (days > month_ends(first))


def number_of(digits: pa.Array, otherwise: int) -> Numbers:
    """Convert texts of digits to numbers, an empty text to a default."""
    known = pc.replace_with_mask(digits, pc.equal(digits, ""), str(otherwise))
    found: Numbers = known.cast(pa.int64()).to_numpy()
    return found


def _doubles(texts: pa.Array, kind: DataType) -> pa.Array:
    """Read texts as numbers of type DOUBLE."""
    return pa.array([_double(text, kind) for text in texts.to_pylist()], pa.float64())


def _double(text: str, kind: DataType) -> float:
    trimmed = text.strip(_ASCII_BLANKS)
    if _DOUBLE.fullmatch(trimmed):
        return float(trimmed.rstrip("fFdD"))
    if (named := _NAMED.get(trimmed.lower())) is not None:
        return named
    if _HEXADECIMAL.fullmatch(trimmed):
        return _hexadecimal(trimmed)
    raise _wrong(text, kind)


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(re.sub("[fFdD]$", "", text))
    except OverflowError:
        return float("-inf" if text[0] == "-" else "inf")


_ASCII_BLANKS: Final = "".join(map(chr, range(33)))


def _decimals(texts: pa.Array, kind: DataType) -> pa.Array:
    """Read texts as numbers of a type DECIMAL, rounded half up (away from zero) to its scale."""
    units = np.empty(len(texts), object)
    units[:] = [_units(text, kind) for text in texts.to_pylist()]
    return decimals_of(units, kind)


def _units(text: str, kind: DataType) -> int:
    trimmed = text.strip(_ASCII_BLANKS)
    found = _DECIMAL.fullmatch(trimmed)
    if not found:
        raise _wrong(text, kind)
    if abs(int((found[2] or "e0")[1:])) > _MOST_EXPONENT:
        raise _wrong(text, kind)
    number = Decimal(trimmed)
    if not number:
        return 0
    if number.adjusted() >= MOST_DIGITS:
        raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"The number {shown_value(text)} does not fit into {kind}.")
    if number.adjusted() < -2 * MOST_DIGITS:
        return 0
    exact = Context(prec=len(trimmed) + 2 * MOST_DIGITS)
    return int(number.scaleb(kind.arguments[1], exact).to_integral_value(ROUND_HALF_UP, exact))


READERS: Final[dict[str, Callable[[pa.Array, DataType], pa.Array]]] = {
    **dict.fromkeys(INTEGERS, _whole),
    "boolean": _booleans,
    "date": _dates,
    "double": _doubles,
    "decimal": _decimals,
}
"""Type -> the function that reads texts as values of it."""
_DAY: Final = 86_400_000_000
_PLAIN_SCALE: Final = 6
"""Largest scale for which Arrow writes no exponent."""
_FIRST_PLAIN: Final = -719_528
_LAST_PLAIN: Final = 2_932_896
"""First and last day, since 1970, of the years 0 to 9999, which Spark writes with four digits and no sign."""


def decimals_as_texts(found: pa.Array, kind: DataType) -> pa.Array:
    """Write DECIMAL values as texts with all digits, never with an exponent."""
    scale = kind.arguments[1]
    if scale <= _PLAIN_SCALE:
        return found.cast(pa.string())
    digits = [f"{'-' * (unit < 0)}{abs(unit):0{scale + 1}d}" for unit in units_of(found)]
    return pa.array([f"{text[:-scale]}.{text[-scale:]}" for text in digits], pa.string())


def dates_as_texts(found: pa.Array) -> pa.Array:
    """Write dates as texts; years of more than four digits have a sign."""
    days = days_since_1970(found)
    far = (days < _FIRST_PLAIN) | (days > _LAST_PLAIN)
    texts = found.cast(pa.string())
    if not far.any():
        return texts
    written = [
        f"{'-' if year < 0 else '+' * (year > 9999)}{abs(year):04d}-{month:02d}-{day:02d}"
        for year, month, day in zip(*(part.tolist() for part in parts(days[far])), strict=True)
    ]
    return pc.replace_with_mask(texts, pa.array(far), pa.array(written, pa.string()))


def clocks_as_texts(found: pa.Array) -> pa.Array:
    """Write timestamps without zone as texts; a fraction of a second has no trailing zeros."""
    micros = found.cast(pa.int64()).to_numpy(zero_copy_only=False)
    dates = dates_as_texts(pa.array((micros // _DAY).astype(np.int32)).cast(pa.date32()))
    times = pa.array(micros % _DAY).cast(pa.time64("us")).cast(pa.string())
    return pc.utf8_rtrim(pc.utf8_rtrim(pc.binary_join_element_wise(dates, times, " "), "0"), ".")
