"""Scalars other than numbers, read from fields of JSON, in Spark SQL; NULL where a type does not have the value.

A value that would lose a part is NULL too: a date with a time of day, a time with a date, an offset that is not kept.
"""

from __future__ import annotations

from typing import Final, Literal

from trinity.cdc.json_text import is_number, is_text, text_of
from trinity.cdc.numbers import integer_of, let, matches
from trinity.spi import DataType

__all__ = ["TimeUnit", "boolean_of", "bytes_of", "date_of", "decimal_of_bytes", "time_of", "timestamp_of"]

TimeUnit = Literal["milliseconds", "microseconds", "nanoseconds"]
"""Unit of an integer that is a time, counted from 1970-01-01 00:00 UTC."""

_DAY: Final = "[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
_UTC: Final = r"(?:Z|\+00(?::?00)?)?"
_MIDNIGHT: Final = r"(?:[T ]00:00(?::00(?:\.0+)?)?|Z)?"
_LATIN1: Final = r"[\x{0}-\x{ff}]*+"
_BASE64: Final = "(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"


def boolean_of(text: str) -> str:
    """Return Spark SQL of a BOOLEAN: ``true``, ``false``, 1, 0, also as text."""
    return f"CASE WHEN lower({text}) IN ('true', '1') THEN true WHEN lower({text}) IN ('false', '0') THEN false END"


def date_of(field: str, text: str, days: bool) -> str:
    """Return Spark SQL of a DATE in ISO 8601; with ``days`` also a number of days from 1970-01-01."""
    number = f"date_from_unix_date({integer_of(text, 'INT')})" if days else "CAST(NULL AS DATE)"
    day = f"IF({matches(field, _DAY + _MIDNIGHT)}, try_cast(rtrim('Z', {field}) AS DATE), NULL)"
    return f"IF({is_number(field)}, {number}, {day})"


def timestamp_of(field: str, text: str, kind: str, unit: TimeUnit | None) -> str:
    """Return Spark SQL of a TIMESTAMP or TIMESTAMP_NTZ in ISO 8601; a number if it has a unit. Cut to microseconds.

    A TIMESTAMP_NTZ may have only UTC's offset, which Debezium writes where a time has no zone.
    """
    number = f"CAST(NULL AS {kind})" if unit is None else _since_epoch(text, kind, unit)
    rest = f"(?:[T ]{_CLOCK}.*)?" if kind == "timestamp" else f"(?:[T ]{_CLOCK}{_UTC})?"
    return f"IF({is_number(field)}, {number}, IF({matches(field, _DAY + rest)}, try_cast({field} AS {kind}), NULL))"


def time_of(field: str, kind: str) -> str:
    """Return Spark SQL of a TIME in ISO 8601, cut to microseconds."""
    return f"IF({matches(field, _CLOCK + 'Z?')}, try_cast(rtrim('Z', {field}) AS {kind}), NULL)"


def bytes_of(field: str, latin1: bool) -> str:
    """Return Spark SQL of bytes in base64; with ``latin1`` as the characters U+0000 to U+00FF."""
    text = text_of(field)
    pattern, found = (_LATIN1, f"encode({text}, 'ISO-8859-1')") if latin1 else (_BASE64, f"unbase64({text})")
    return f"IF({is_text(field)} AND {matches(text, pattern)}, {found}, NULL)"


def decimal_of_bytes(field: str, kind: DataType) -> str:
    """Return Spark SQL of a DECIMAL whose unscaled value is in base64, as big-endian two's complement."""
    scale = kind.arguments[1]
    octet = "CAST(conv(hex(substring(b, i, 1)), 16, 10) AS DECIMAL(38,0))"
    first = "CAST(IF(hex(substring(b, 1, 1)) >= '80', -1, 0) AS DECIMAL(38,0))"
    step = f"try_cast(try_add(try_multiply(n, 256), {octet}) AS DECIMAL(38,0))"
    number = f"aggregate(sequence(1, length(b)), {first}, (n, i) -> {step})"
    digits = f"lpad(CAST(abs(n) AS STRING), greatest(length(CAST(abs(n) AS STRING)), {scale + 1}), '0')"
    pointed = f"concat(IF(n < 0, '-', ''), left({digits}, length({digits}) - {scale}), '.', right({digits}, {scale}))"
    found = f"try_cast({pointed} AS DECIMAL({','.join(map(str, kind.arguments))}))"
    octets = bytes_of(field, latin1=False)
    return let("b", octets, f"IF(length(b) BETWEEN 1 AND 17, {let('n', number, found)}, NULL)")


def _since_epoch(text: str, kind: str, unit: TimeUnit) -> str:
    whole = integer_of(text, "BIGINT")
    if unit == "milliseconds":
        micros = f"try_multiply({whole}, 1000L)"
    else:
        # / would give a DOUBLE, which has not enough digits
        micros = f"({whole} - pmod({whole}, 1000)) DIV 1000" if unit == "nanoseconds" else whole
    if kind == "timestamp":
        return f"timestamp_micros({micros})"
    return f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"
