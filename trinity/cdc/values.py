"""Values in JSON messages as values of columns, in Spark SQL.

At every depth a value is exactly the message's, or an error. A number keeps all its digits. An integer is no time
unless its unit is known. Nothing is rounded, cut off or made up to fit a type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from trinity.cdc.json_text import beginning, is_array, is_number, is_object, is_text, shown, text_of
from trinity.spark.types import spark_type
from trinity.spi import Column, DataType, parse_type
from trinity.syntax.quoting import quoted, text_literal

DecimalForm = Literal["number", "base64"]
"""Form of a decimal: a number or the text of one; or its unscaled value, big-endian bytes in base64."""
BROKEN: Final = "_trinity_broken"
"""Column of from_json for text that is not of the schema; NULL for text that is."""


@dataclass(frozen=True)
class Encoding:
    """A tool's way to write values in JSON.

    Attributes:
        timestamps: unit of integers in TIMESTAMP and TIMESTAMP_NTZ columns, or column -> unit; None refuses integers.
        decimals: form of decimals.
        days: True if an integer in a DATE column counts days from 1970-01-01.
        latin1: True if bytes are the characters U+0000 to U+00FF instead of base64.
    """

    timestamps: Mapping[str, TimeUnit] | TimeUnit | None = None
    decimals: DecimalForm = "number"
    days: bool = False
    latin1: bool = False

    def value(self, column: Column, field: str, text: str | None = None) -> str:
        """Return Spark SQL of a column's value, read from its field (:func:`fields_of`); NULL for NULL.

        A value that does not fit fails by TYPE_MISMATCH, naming the column, the path in it, and the value. ``text`` is
        a column that holds the field's text (:func:`~trinity.cdc.json_text.text_of`), which makes plans shorter.
        """
        unit = self.timestamps if isinstance(self.timestamps, str) else (self.timestamps or {}).get(column.name)
        return _Reading(self, column.name, unit).value(parse_type(column.type), field, "''", 0, text)


def fields_of(columns: Sequence[Column]) -> str:
    """Return the columns as fields of a STRUCT in a schema for from_json, each a STRING."""
    return ", ".join(f"{quoted(c.name)}: STRING" for c in columns)


def failing(code: str, message: str, kind: str) -> str:
    """Return Spark SQL that has the type ``kind``, and always raises a TrinityError.

    ``message`` is a list of Spark SQL expressions, of which NULLs are left out.
    """
    return f"CAST(raise_error(concat_ws('', '{code}: ', {message})) AS {kind})"


@dataclass(frozen=True)
class _Reading:
    """A reader of the values of one column; ``unit`` is the unit of integers that are times."""

    encoding: Encoding
    column: str
    unit: TimeUnit | None

    def value(self, kind: DataType, field: str, path: str, depth: int, text: str | None = None) -> str:
        """Return Spark SQL of a value, read from its field.

        ``path`` is Spark SQL of the value's path in the column, empty or such as ``[2].name``, and ``depth`` the
        number of containers around it.
        """
        if kind.is_text:
            return shown(field)
        if kind.nested:
            found, hint = self._container(kind, field, path, depth), "."
        else:
            found, hint = self._scalar(kind, field, text or text_of(field))
        typed = spark_type(str(kind))
        prefix = text_literal("Column '" + self.column) + f", {path}, " + text_literal("': ")
        message = f"{prefix}, {beginning(field)}, {text_literal(f' is no {typed}{hint}')}"
        wrong = failing("TYPE_MISMATCH", message, typed)
        return f"coalesce({found}, IF({field} IS NULL, CAST(NULL AS {typed}), {wrong}))"

    def _scalar(self, kind: DataType, field: str, text: str) -> tuple[str, str]:
        """Return Spark SQL of the value, NULL where it does not fit; and the end of the error message then."""
        hint = "."
        match kind.name:
            case "boolean":
                found = _boolean_of(text)
            case "float" | "double":
                found = _floating_of(text, kind.name)
            case "decimal" if self.encoding.decimals == "base64":
                found = _decimal_of_bytes(field, kind)
                hint = " in base64; where it is a number, give decimals='number'."
            case "decimal":
                found = decimal_of(text, *kind.arguments)
                hint = "; where it is in base64, give decimals='base64'."
            case "date":
                found = _date_of(field, text, self.encoding.days)
            case "timestamp" | "timestamp_ntz":
                found = _timestamp_of(field, text, kind.name, self.unit)
                hint = "." if self.unit else "; where it is an integer, give its unit by timestamps."
            case "time":
                found = time_of(field, spark_type("time"))
            case "binary":
                found = _bytes_of(field, self.encoding.latin1)
            case _:
                found = integer_of(text, kind.name)
        return found, hint

    def _container(self, kind: DataType, field: str, path: str, depth: int) -> str:
        """Return Spark SQL of an ARRAY, MAP or STRUCT; NULL for anything else."""
        if kind.name == "array":
            item, number = f"v{depth}", f"i{depth}"
            each = self.value(kind.children[0], item, f"concat({path}, '[', {number}, ']')", depth + 1)
            items = f"transform({_read(field, 'ARRAY<STRING>')}, ({item}, {number}) -> {each})"
            return f"IF({is_array(field)}, {items}, NULL)"
        found = self._struct(kind, field, path, depth) if kind.name == "struct" else self._map(kind, field, path, depth)
        return f"IF({is_object(field)}, {found}, NULL)"

    def _struct(self, kind: DataType, field: str, path: str, depth: int) -> str:
        struct, values = f"v{depth}", []
        for name, child in zip(kind.fields, kind.children, strict=True):
            inner_path = f"concat({path}, {text_literal('.' + name)})"
            values += [text_literal(name), self.value(child, f"{struct}.{quoted(name)}", inner_path, depth + 1)]
        fields = _read(field, f"STRUCT<{', '.join(f'{quoted(name)}: STRING' for name in kind.fields)}>")
        return _let(struct, fields, f"named_struct({', '.join(values)})")

    def _map(self, kind: DataType, field: str, path: str, depth: int) -> str:
        """Return Spark SQL of a map; NULL where two keys are equal in its type, such as ``1`` and ``01``."""
        entry, entries = f"v{depth}", f"e{depth}"
        inner_path = f"concat({path}, '[', {text_of(f'{entry}.key')}, ']')"
        sides = (
            self.value(c, f"{entry}.{n}", inner_path, depth + 1)
            for c, n in zip(kind.children, ("key", "value"), strict=True)
        )
        read = f"transform(map_entries({_read(field, 'MAP<STRING,STRING>')}), {entry} -> struct({', '.join(sides)}))"
        differ = f"size(array_distinct(transform({entries}, {entry} -> {entry}.col1))) = size({entries})"
        return _let(entries, read, f"IF({differ}, map_from_entries({entries}), NULL)")


def _read(field: str, kind: str) -> str:
    return f"from_json({field}, {text_literal(kind)}, map('columnNameOfCorruptRecord', '{BROKEN}'))"


TimeUnit = Literal["milliseconds", "microseconds", "nanoseconds"]
"""Unit of an integer that is a time, counted from 1970-01-01 00:00 UTC."""
_DAY: Final = "[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
_UTC: Final = r"(?:Z|\+00(?::?00)?)?"
_MIDNIGHT: Final = r"(?:[T ]00:00(?::00(?:\.0+)?)?|Z)?"
_LATIN1: Final = r"[\x{0}-\x{ff}]*+"
_BASE64: Final = "(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"


def _boolean_of(text: str) -> str:
    """Return Spark SQL of a BOOLEAN: ``true``, ``false``, 1, 0, also as text."""
    return f"CASE WHEN lower({text}) IN ('true', '1') THEN true WHEN lower({text}) IN ('false', '0') THEN false END"


def _date_of(field: str, text: str, days: bool) -> str:
    """Return Spark SQL of a DATE in ISO 8601; with ``days`` also a number of days from 1970-01-01."""
    number = f"date_from_unix_date({integer_of(text, 'INT')})" if days else "CAST(NULL AS DATE)"
    day = f"IF({matches(field, _DAY + _MIDNIGHT)}, try_cast(rtrim('Z', {field}) AS DATE), NULL)"
    return f"IF({is_number(field)}, {number}, {day})"


def _timestamp_of(field: str, text: str, kind: str, unit: TimeUnit | None) -> str:
    """Return Spark SQL of a TIMESTAMP or TIMESTAMP_NTZ in ISO 8601; a number if it has a unit. Cut to microseconds.

    A TIMESTAMP_NTZ may have only UTC's offset, which Debezium writes where a time has no zone.
    """
    number = f"CAST(NULL AS {kind})" if unit is None else _since_epoch(text, kind, unit)
    rest = f"(?:[T ]{_CLOCK}.*)?" if kind == "timestamp" else f"(?:[T ]{_CLOCK}{_UTC})?"
    return f"IF({is_number(field)}, {number}, IF({matches(field, _DAY + rest)}, try_cast({field} AS {kind}), NULL))"


def time_of(field: str, kind: str) -> str:
    """Return Spark SQL of a TIME in ISO 8601, cut to microseconds."""
    return f"IF({matches(field, _CLOCK + 'Z?')}, try_cast(rtrim('Z', {field}) AS {kind}), NULL)"


def _bytes_of(field: str, latin1: bool) -> str:
    """Return Spark SQL of bytes in base64; with ``latin1`` as the characters U+0000 to U+00FF."""
    text = text_of(field)
    pattern, found = (_LATIN1, f"encode({text}, 'ISO-8859-1')") if latin1 else (_BASE64, f"unbase64({text})")
    return f"IF({is_text(field)} AND {matches(text, pattern)}, {found}, NULL)"


def _decimal_of_bytes(field: str, kind: DataType) -> str:
    """Return Spark SQL of a DECIMAL whose unscaled value is in base64, as big-endian two's complement."""
    scale = kind.arguments[1]
    octet = "CAST(conv(hex(substring(b, i, 1)), 16, 10) AS DECIMAL(38,0))"
    first = "CAST(IF(hex(substring(b, 1, 1)) >= '80', -1, 0) AS DECIMAL(38,0))"
    step = f"try_cast(try_add(try_multiply(n, 256), {octet}) AS DECIMAL(38,0))"
    number = f"aggregate(sequence(1, length(b)), {first}, (n, i) -> {step})"
    digits = f"lpad(CAST(abs(n) AS STRING), greatest(length(CAST(abs(n) AS STRING)), {scale + 1}), '0')"
    pointed = f"concat(IF(n < 0, '-', ''), left({digits}, length({digits}) - {scale}), '.', right({digits}, {scale}))"
    found = f"try_cast({pointed} AS DECIMAL({','.join(map(str, kind.arguments))}))"
    octets = _bytes_of(field, latin1=False)
    return _let("b", octets, f"IF(length(b) BETWEEN 1 AND 17, {_let('n', number, found)}, NULL)")


def _since_epoch(text: str, kind: str, unit: TimeUnit) -> str:
    whole = integer_of(text, "BIGINT")
    if unit == "milliseconds":
        micros = f"try_multiply({whole}, 1000L)"
    else:
        # / would give a DOUBLE, which has too few digits
        micros = f"({whole} - pmod({whole}, 1000)) DIV 1000" if unit == "nanoseconds" else whole
    if kind == "timestamp":
        return f"timestamp_micros({micros})"
    return f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"


_INTEGER: Final = "[+-]?[0-9]+"
_NUMBER: Final = r"[+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?"
_POWER: Final = r"[+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*[eE][+-]?0*[0-9]{1,3}"
"""Pattern of a number with an exponent of at most three digits: the memory of Java's decimals grows with it."""
_ZERO: Final = r"[+-]?(?=\.?0)[0.]*(?:[eE].*)?"
_NO_NUMBER: Final = r"[+-]?(?:[iI]nf(?:inity)?|INF(?:INITY)?)|[nN]a[nN]|NAN"
_EXACT: Final = {"float": 7, "double": 15}
"""Type -> maximum digits of an integer that the type always represents exactly."""
_BEYOND: Final = "9.223372036854775807E18D"
"""2^63 as a DOUBLE, which a cast to BIGINT makes 2^63 - 1."""


def matches(text: str, pattern: str) -> str:
    """Return Spark SQL that is true where a pattern matches a whole text."""
    return f"{text} RLIKE {text_literal(whole(pattern))}"


def whole(pattern: str) -> str:
    """Return a pattern that matches a whole text. ``$`` would match before a line feed, too."""
    return rf"^(?:{pattern})\z"


def _let(name: str, value: str, body: str) -> str:
    """Return Spark SQL of an expression that uses a value by name, so that it is evaluated once."""
    return f"get(transform(array({value}), {name} -> {body}), 0)"


def integer_of(text: str, kind: str) -> str:
    """Return Spark SQL of an integer type's value. ``1e2`` and ``100.0`` are 100; ``1.5`` is NULL."""
    return f"try_cast(IF({matches(text, _INTEGER)}, {text}, CAST({decimal_of(text, 19, 0)} AS STRING)) AS {kind})"


def decimal_of(text: str, precision: int, scale: int) -> str:
    """Return Spark SQL of a DECIMAL, never rounded: as DECIMAL(3,2) ``1.250`` is 1.25, and ``1.255`` NULL."""
    kind = f"DECIMAL({precision},{scale})"
    value, zero = f"try_cast({text} AS {kind})", f"CAST(0 AS {kind})"
    plain = matches(text, rf"[+-]?0*[0-9]{{0,{precision - scale}}}(?:\.[0-9]{{0,{scale}}}0*)?")
    # rounding changes the significant digits; 0 has none
    kept = f"{_significant(text)} = {_significant(f'CAST({value} AS STRING)')}"
    power = f"CASE WHEN {matches(text, _ZERO)} THEN {zero} WHEN {matches(text, _POWER)} AND {kept} THEN {value} END"
    return f"IF({plain}, {value}, {power})"


def _significant(text: str) -> str:
    """Return Spark SQL of a number's digits without leading and trailing zeros."""
    return f"trim(BOTH '0' FROM regexp_replace({text}, '[eE].*|[^0-9]', ''))"


def _floating_of(text: str, kind: str) -> str:
    """Return Spark SQL of a FLOAT or DOUBLE, the nearest to the number in the text.

    The result is NULL for an integer that the type cannot represent exactly, a number beyond its range, and a number
    other than 0 that it would round to 0. ``NaN`` and ``Infinity`` are numbers here.
    """
    value = f"try_cast({text} AS {kind})"
    integer = f"try_cast({text} AS BIGINT)"
    kept = f"({integer} IS NULL OR ({value} < {_BEYOND} AND try_cast({value} AS BIGINT) = {integer}))"
    exact = f"(length({text}) <= {_EXACT[kind]} OR NOT {matches(text, _INTEGER)} OR {kept})"
    near = f"abs({value}) < CAST('Infinity' AS {kind}) AND ({value} <> 0 OR {matches(text, _ZERO)})"
    return f"IF(({matches(text, _NUMBER)} AND {near} AND {exact}) OR {matches(text, _NO_NUMBER)}, {value}, NULL)"
