"""Values in JSON messages as values of columns, in Spark SQL.

A scalar is read from its JSON text, so that it is what the message says and not what a JSON reader makes of it: a
number keeps all its digits, and an integer never passes for a time of an unknown unit. Spark's from_json reads arrays,
maps and structs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from trinity.engine.spark.types import spark_type
from trinity.merge.quoting import quoted, text_literal
from trinity.spi import Column, DataType, parse_type

__all__ = ["DecimalForm", "Encoding", "TimeUnit", "failing", "fields_of"]

TimeUnit = Literal["milliseconds", "microseconds", "nanoseconds"]
"""Unit of an integer that is a time, counted from 1970-01-01 00:00 UTC."""
DecimalForm = Literal["number", "base64"]
"""A decimal as a number, or a text of one; or as its unscaled value, big-endian bytes in base64."""

_COMPLEX: Final = ("array", "map", "struct")
_INTEGER: Final = r"'^[+-]?[0-9]+$'"


@dataclass(frozen=True)
class Encoding:
    """A tool's way to write values in JSON.

    Attributes:
        timestamps: unit of integers in TIMESTAMP and TIMESTAMP_NTZ columns, or column -> unit; None: they are refused.
        decimals: form of decimals.
        days: True where an integer in a DATE column counts days from 1970-01-01.
        latin1: True where bytes are the characters U+0000 to U+00FF, and not base64.
    """

    timestamps: Mapping[str, TimeUnit] | TimeUnit | None = None
    decimals: DecimalForm = "number"
    days: bool = False
    latin1: bool = False

    def value(self, column: Column, given: str) -> str:
        """Spark SQL: the value of a column, out of the field of :func:`fields_of`; NULL for NULL.

        A value that does not fit fails by TYPE_MISMATCH, naming column and value.
        """
        kind = parse_type(column.type)
        shown = spark_type(column.type)
        if kind.name in (*_COMPLEX, "string", "char", "varchar"):
            return given
        found, hint = self._scalar(column.name, kind, shown, given)
        head = text_literal(f"Column '{column.name}': ")
        message = f"concat({head}, left({given}, 60), {text_literal(hint)})"
        wrong = failing("TYPE_MISMATCH", message, shown)
        return f"coalesce({found}, IF({given} IS NULL, CAST(NULL AS {shown}), {wrong}))"

    def _scalar(self, name: str, kind: DataType, shown: str, given: str) -> tuple[str, str]:
        """The value, NULL where it does not fit; and what the message says then, behind the value."""
        plain, no = f"try_cast({given} AS {shown})", f" is no {shown}."
        if kind.name == "binary":
            text = f"CAST({given} AS STRING)"
            return f"encode({text}, 'ISO-8859-1')" if self.latin1 else f"try_to_binary({text}, 'base64')", no
        if kind.name == "decimal" and self.decimals == "base64":
            return _unscaled(given, kind), f"{no[:-1]} in base64; where it is a number, give decimals='number'."
        if kind.name == "decimal":
            return plain, f"{no[:-1]}; where it is in base64, give decimals='base64'."
        if kind.name == "date":
            text = f"try_cast(rtrim('Z', {given}) AS DATE)"
            whole = f"date_from_unix_date(try_cast({given} AS INT))" if self.days else "CAST(NULL AS DATE)"
            return f"IF({given} RLIKE {_INTEGER}, {whole}, {text})", no
        if kind.name in ("timestamp", "timestamp_ntz"):
            unit = self.timestamps if isinstance(self.timestamps, str) else (self.timestamps or {}).get(name)
            whole = f"CAST(NULL AS {shown})" if unit is None else _since_epoch(given, kind, unit)
            hint = no if unit else f"{no[:-1]}; where it is an integer, give its unit by timestamps."
            return f"IF({given} RLIKE {_INTEGER}, {whole}, {plain})", hint
        return plain, no


def fields_of(columns: Sequence[Column]) -> str:
    """The columns as fields of a STRUCT in a schema for from_json: scalars as their JSON text."""
    return ", ".join(
        f"{quoted(c.name)}: {spark_type(c.type) if parse_type(c.type).name in _COMPLEX else 'STRING'}" for c in columns
    )


def failing(code: str, message: str, kind: str) -> str:
    """Spark SQL: a value of a type that fails by a TrinityError of that code.

    Args:
        code: the code.
        message: Spark SQL of the message; a NULL in it is left out.
        kind: Spark's text of the type.
    """
    return f"CAST(raise_error(concat_ws('', '{code}: ', {message})) AS {kind})"


def _since_epoch(given: str, kind: DataType, unit: TimeUnit) -> str:
    whole = f"try_cast({given} AS BIGINT)"
    if unit == "milliseconds":
        micros = f"try_multiply({whole}, 1000L)"
    else:
        # by / it would be a DOUBLE, which has not enough digits
        micros = f"({whole} - pmod({whole}, 1000)) DIV 1000" if unit == "nanoseconds" else whole
    if kind.name == "timestamp":
        return f"timestamp_micros({micros})"
    return f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"


def _unscaled(given: str, kind: DataType) -> str:
    """A decimal out of the big-endian two's complement of its unscaled value, in base64."""
    scale = kind.arguments[1] if len(kind.arguments) > 1 else 0
    whole = "DECIMAL(38,0)"
    octet = f"CAST(conv(hex(substring(b, i, 1)), 16, 10) AS {whole})"
    first = f"CAST(IF(hex(substring(b, 1, 1)) >= '80', -1, 0) AS {whole})"
    number = f"aggregate(sequence(1, length(b)), {first}, (n, i) -> CAST(n * 256 + {octet} AS {whole}))"
    digits = f"lpad(CAST(abs(n) AS STRING), greatest(length(CAST(abs(n) AS STRING)), {scale + 1}), '0')"
    pointed = f"concat(IF(n < 0, '-', ''), left({digits}, length({digits}) - {scale}), '.', right({digits}, {scale}))"
    found = f"try_cast({pointed} AS DECIMAL({','.join(map(str, kind.arguments))}))"
    # a list of one, or of none, so that the bytes and the number have names
    octets = f"filter(array(try_to_binary({given}, 'base64')), b -> length(b) > 0)"
    return f"get(transform(transform({octets}, b -> {number}), n -> {found}), 0)"
