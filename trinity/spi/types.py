"""Column types: their text in Trinity, and their Arrow form.

A type is written as in Spark (``bigint``, ``decimal(10,2)``, ``varchar(20)``, ``array<struct<a:int>>``), in lower
case. Every format's metadata keep this text, so a type that a format lacks (TINYINT in Iceberg, CHAR or TIME in Delta)
survives there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa

from trinity.errors import TrinityError

TIMESTAMP: Final = pa.timestamp("us", "UTC")

# The families of types. Other modules ask a type's properties, so that no second list can differ from these.
INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
"""The integer types; each is wider than the ones before it."""
FLOATS: Final = ("float", "double")
TEXTS: Final = ("string", "char", "varchar")
DATETIMES: Final = ("date", "timestamp_ntz", "timestamp")
"""The types that Spark calls datetimes; each may become the ones after it."""

_PRIMITIVES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("us"),
}
_ALIASES: Final = {
    "bool": "boolean", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint",
    "real": "float", "timestamp_ltz": "timestamp", "time(6)": "time", "dec": "decimal", "numeric": "decimal",
}  # fmt: skip


@dataclass(frozen=True)
class DataType:
    """A parsed type.

    Attributes:
        name: ``bigint``, ``decimal``, ``char``, ``varchar``, ``array``, ``map``, ``struct``, ...
        arguments: precision and scale of a decimal, length of a char or varchar.
        children: the element's type; key and value types; or the types of a struct's fields.
        fields: names of a struct's fields, in the order of ``children``.
    """

    name: str
    arguments: tuple[int, ...] = ()
    children: tuple[DataType, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def nested(self) -> bool:
        """True for arrays, maps and structs."""
        return self.name in ("array", "map", "struct")

    @property
    def is_integer(self) -> bool:
        """True for TINYINT, SMALLINT, INT and BIGINT."""
        return self.name in INTEGERS

    @property
    def is_floating(self) -> bool:
        """True for FLOAT and DOUBLE. The bounds of such values in the statistics of files say nothing about NaN."""
        return self.name in FLOATS

    @property
    def has_floating(self) -> bool:
        """True for FLOAT and DOUBLE, and for a nested type with one of these."""
        return self.is_floating or any(child.has_floating for child in self.children)

    @property
    def is_number(self) -> bool:
        """True for integers, floating-point numbers and DECIMAL."""
        return self.is_integer or self.is_floating or self.name == "decimal"

    @property
    def is_text(self) -> bool:
        """True for STRING, CHAR and VARCHAR."""
        return self.name in TEXTS

    @property
    def has_length(self) -> bool:
        """True for CHAR and VARCHAR."""
        return self.name in ("char", "varchar")

    @property
    def limited(self) -> bool:
        """True for a CHAR or VARCHAR, and for a nested type with one of these."""
        return self.has_length or any(child.limited for child in self.children)

    @property
    def is_datetime(self) -> bool:
        """True for DATE and both kinds of TIMESTAMP."""
        return self.name in DATETIMES

    @property
    def is_timestamp(self) -> bool:
        """True for TIMESTAMP and TIMESTAMP_NTZ."""
        return self.is_datetime and self.name != "date"

    @property
    def is_ordered_in_statistics(self) -> bool:
        """True if stored values, as Python values, compare with each other as the bounds in statistics of files do.

        CHAR is stored padded. A date outside of the years 1 to 9999 is no value of Python, and no bound either.
        """
        return self.is_integer or self.is_text or self.name in ("decimal", "date")

    @property
    def parts(self) -> tuple[tuple[str, DataType], ...]:
        """Name and type of each direct part: the fields of a struct, ``element``, or ``key`` and ``value``."""
        names = self.fields or {"array": ("element",), "map": ("key", "value")}.get(self.name, ())
        return tuple(zip(names, self.children, strict=True))

    def __str__(self) -> str:
        if self.name == "struct":
            inner = ",".join(f"{_quoted(f)}:{c}" for f, c in zip(self.fields, self.children, strict=True))
            return f"struct<{inner}>"
        if self.children:
            return f"{self.name}<{','.join(map(str, self.children))}>"
        if self.arguments:
            return f"{self.name}({','.join(map(str, self.arguments))})"
        return self.name

    def to_arrow(self) -> pa.DataType:
        """Return the Arrow type that holds this type's values in memory."""
        if self.name in _PRIMITIVES:
            return _PRIMITIVES[self.name]
        if self.has_length:
            return pa.string()
        if self.name == "decimal":
            return pa.decimal128(*self.arguments)
        if self.name == "array":
            return pa.list_(pa.field("element", self.children[0].to_arrow()))
        if self.name == "map":
            key, value = self.children
            return pa.map_(key.to_arrow(), pa.field("value", value.to_arrow()))
        return pa.struct([pa.field(f, c.to_arrow()) for f, c in zip(self.fields, self.children, strict=True)])


def _quoted(field: str) -> str:
    return field if re.fullmatch(r"\w+", field) else "`" + field.replace("`", "``") + "`"


_FIELD: Final = r"`(?:[^`]|``)+`|\w+"
"""The pattern of a name: plain, or in backticks, within which a backtick is doubled."""


class _Parser:
    """A recursive-descent parser of ``name(args)``, ``name<types>`` and ``struct<field:type>``.

    Args:
        text: the type.
        void: True to accept ``void``, the type of a column of NULLs.
    """

    def __init__(self, text: str, *, void: bool = False) -> None:
        self.text = text
        self.void = void
        self.tokens = re.findall(rf"{_FIELD}|\S", text)
        self.at = 0

    def fail(self, why: str) -> TrinityError:
        return TrinityError("TYPE_MISMATCH", f"Type '{self.text}' is not understood: {why}.")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        if self.next() != token:
            raise self.fail(f"'{token}' expected")

    def listed(self, item: Callable[[], DataType], close: str) -> list[DataType]:
        found = [item()]
        while self.peek() == ",":
            self.next()
            found.append(item())
        self.expect(close)
        return found

    def numbers(self) -> tuple[int, ...]:
        if self.peek() != "(":
            return ()
        self.next()
        found = [self.number()]
        while self.peek() == ",":
            self.next()
            found.append(self.number())
        self.expect(")")
        return tuple(found)

    def number(self) -> int:
        token = self.next()
        if not re.fullmatch(r"[0-9]{1,9}", token):
            raise self.fail(f"a number expected at '{token}'")
        return int(token)

    def type(self) -> DataType:
        name = self.next().lower()
        name = _ALIASES.get(name, name)
        if name in ("array", "map"):
            self.expect("<")
            children = self.listed(self.type, ">")
            if len(children) != (1 if name == "array" else 2):
                raise self.fail(f"wrong number of arguments of {name}")
            return DataType(name, children=tuple(children))
        if name == "struct":
            return self.struct()
        arguments = self.numbers()
        return self.scalar(name, arguments)

    def field(self) -> str:
        token = self.next()
        if not re.fullmatch(_FIELD, token):
            raise self.fail(f"a field's name expected at '{token}'")
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def struct(self) -> DataType:
        self.expect("<")
        names: list[str] = []

        def field() -> DataType:
            names.append(self.field())
            if self.peek() == ":":
                self.next()
            return self.type()

        return DataType("struct", children=tuple(self.listed(field, ">")), fields=tuple(names))

    def scalar(self, name: str, arguments: tuple[int, ...]) -> DataType:
        if name == "decimal":
            precision, scale, *more = (*arguments, *(10, 0)[len(arguments) :])
            if more or not (1 <= precision <= 38 and 0 <= scale <= precision):
                raise self.fail("a decimal has a precision of 1 to 38 and a scale of at most that")
            return DataType("decimal", (precision, scale))
        if name in ("char", "varchar"):
            if len(arguments) != 1 or arguments[0] < 1:
                raise self.fail(f"{name} needs a length, as {name}(20); use string for any length")
            return DataType(name, arguments)
        if name == "time" and arguments in ((), (6,)):
            return DataType("time")
        if (name not in _PRIMITIVES and not (self.void and name == "void")) or arguments:
            raise self.fail("known types are " + ", ".join([*_PRIMITIVES, "decimal", "char", "varchar"])
                            + ", array, map and struct")  # fmt: skip
        return DataType(name)


@lru_cache(maxsize=4096)
def parse_type(text: str) -> DataType:
    """Parse a type text in any case, Spark's aliases included.

    Raises:
        TrinityError: TYPE_MISMATCH when the text names no type that Trinity stores.
    """
    return _whole(_Parser(text))


@lru_cache(maxsize=4096)
def parse_given_type(text: str) -> DataType:
    """Parse the type text of a user's data, in which a column of NULLs may have the type ``void``.

    Raises as :func:`parse_type`.
    """
    return _whole(_Parser(text, void=True))


def _whole(parser: _Parser) -> DataType:
    found = parser.type()
    if parser.at != len(parser.tokens):
        raise parser.fail(f"'{parser.peek()}' is left over")
    return found


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a type text."""
    return parse_type(text).to_arrow()


def type_text(arrow: pa.DataType) -> str:
    """Return the type text of an Arrow type; if Trinity lacks it (unsigned, nanoseconds), of the nearest type.

    Raises:
        TrinityError: TYPE_MISMATCH for Arrow types without a counterpart (durations, unions, 256-bit decimals).
    """
    t = pa.types
    if t.is_dictionary(arrow):
        return type_text(arrow.value_type)
    if t.is_timestamp(arrow):
        return "timestamp" if arrow.tz else "timestamp_ntz"
    if t.is_decimal(arrow) and arrow.precision <= 38:
        return f"decimal({arrow.precision},{arrow.scale})"
    if t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow) or t.is_list_view(arrow):
        return f"array<{type_text(arrow.value_type)}>"
    if t.is_map(arrow):
        return f"map<{type_text(arrow.key_type)},{type_text(arrow.item_type)}>"
    if t.is_struct(arrow):
        return "struct<" + ",".join(f"{_quoted(f.name)}:{type_text(f.type)}" for f in arrow) + ">"
    for matches, name in _SCALARS:
        if matches(arrow):
            return name
    raise TrinityError("TYPE_MISMATCH", f"Arrow type '{arrow}' has no counterpart in a table; cast it first.")


_SCALARS: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (lambda a: pa.types.is_int16(a) or pa.types.is_uint8(a), "smallint"),
    (lambda a: pa.types.is_int32(a) or pa.types.is_uint16(a), "int"),
    (lambda a: pa.types.is_int64(a) or pa.types.is_uint32(a), "bigint"),
    (pa.types.is_uint64, "decimal(20,0)"),
    (lambda a: pa.types.is_float32(a) or pa.types.is_float16(a), "float"),
    (pa.types.is_float64, "double"),
    (lambda a: pa.types.is_string(a) or pa.types.is_large_string(a) or pa.types.is_string_view(a), "string"),
    (lambda a: pa.types.is_binary(a) or pa.types.is_large_binary(a) or pa.types.is_binary_view(a)
     or pa.types.is_fixed_size_binary(a), "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_null, "void"),
)  # fmt: skip
