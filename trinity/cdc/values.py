"""Values in JSON messages as values of columns, in Spark SQL.

At every depth a value is exactly the message's, or an error. A number keeps all its digits. An integer is no time
unless its unit is known. Nothing is rounded, cut off or made up to fit a type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trinity.cdc.json_text import beginning, is_array, is_object, shown, text_of
from trinity.cdc.numbers import decimal_of, floating_of, integer_of, let
from trinity.cdc.scalars import TimeUnit, boolean_of, bytes_of, date_of, decimal_of_bytes, time_of, timestamp_of
from trinity.engine.spark.types import spark_type
from trinity.spi import Column, DataType, parse_type
from trinity.syntax.quoting import quoted, text_literal

__all__ = ["DecimalForm", "Encoding", "TimeUnit", "failing", "fields_of"]

DecimalForm = Literal["number", "base64"]
"""A decimal as a number, or a text of one; or as its unscaled value, big-endian bytes in base64."""


@dataclass(frozen=True)
class Encoding:
    """A tool's way to write values in JSON.

    Attributes:
        timestamps: unit of integers in TIMESTAMP and TIMESTAMP_NTZ columns, or column -> unit; None refuses integers.
        decimals: form of decimals.
        days: True where an integer in a DATE column counts days from 1970-01-01.
        latin1: True where bytes are the characters U+0000 to U+00FF, and not base64.
    """

    timestamps: Mapping[str, TimeUnit] | TimeUnit | None = None
    decimals: DecimalForm = "number"
    days: bool = False
    latin1: bool = False

    def value(self, column: Column, field: str, text: str | None = None) -> str:
        """Return Spark SQL of a column's value, read from its field (:func:`fields_of`); NULL for NULL.

        A value that does not fit fails by TYPE_MISMATCH, naming the column, the place in it, and the value.

        Args:
            column: the column.
            field: its field.
            text: a name for the field's text (:func:`~trinity.cdc.json_text.text_of`), which makes shorter plans.
        """
        unit = self.timestamps if isinstance(self.timestamps, str) else (self.timestamps or {}).get(column.name)
        return _Reading(self, column.name, unit).value(parse_type(column.type), field, "''", 0, text)


def fields_of(columns: Sequence[Column]) -> str:
    """Return the columns as fields of a STRUCT in a schema for from_json, each a STRING."""
    return ", ".join(f"{quoted(c.name)}: STRING" for c in columns)


def failing(code: str, message: str, kind: str) -> str:
    """Return Spark SQL of a value that fails with a TrinityError.

    Args:
        code: the code.
        message: Spark SQL of the message; a NULL in it is left out.
        kind: Spark's text of the type.
    """
    return f"CAST(raise_error(concat_ws('', '{code}: ', {message})) AS {kind})"


@dataclass(frozen=True)
class _Reading:
    """Reads the values of one column; ``unit`` is the unit of integers that are times."""

    encoding: Encoding
    column: str
    unit: TimeUnit | None

    def value(self, kind: DataType, field: str, path: str, depth: int, text: str | None = None) -> str:
        """Return Spark SQL of a value, read from its field.

        Args:
            kind: the type.
            field: its field.
            path: Spark SQL of the value's place in the column: empty, or such as ``[2].name``.
            depth: the number of containers around it.
            text: its field's text, where that has a name.
        """
        if kind.name in ("string", "char", "varchar"):
            return shown(field)
        if kind.nested:
            found, hint = self._container(kind, field, path, depth), "."
        else:
            found, hint = self._scalar(kind, field, text or text_of(field))
        typed = spark_type(str(kind))
        place = text_literal("Column '" + self.column) + f", {path}, " + text_literal("': ")
        message = f"{place}, {beginning(field)}, {text_literal(f' is no {typed}{hint}')}"
        wrong = failing("TYPE_MISMATCH", message, typed)
        return f"coalesce({found}, IF({field} IS NULL, CAST(NULL AS {typed}), {wrong}))"

    def _scalar(self, kind: DataType, field: str, text: str) -> tuple[str, str]:
        """Return Spark SQL of the value, NULL where it does not fit; and the end of the error message then."""
        hint = "."
        match kind.name:
            case "boolean":
                found = boolean_of(text)
            case "float" | "double":
                found = floating_of(text, kind.name)
            case "decimal" if self.encoding.decimals == "base64":
                found = decimal_of_bytes(field, kind)
                hint = " in base64; where it is a number, give decimals='number'."
            case "decimal":
                found = decimal_of(text, *kind.arguments)
                hint = "; where it is in base64, give decimals='base64'."
            case "date":
                found = date_of(field, text, self.encoding.days)
            case "timestamp" | "timestamp_ntz":
                found = timestamp_of(field, text, kind.name, self.unit)
                hint = "." if self.unit else "; where it is an integer, give its unit by timestamps."
            case "time":
                found = time_of(field, spark_type("time"))
            case "binary":
                found = bytes_of(field, self.encoding.latin1)
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
            place = f"concat({path}, {text_literal('.' + name)})"
            values += [text_literal(name), self.value(child, f"{struct}.{quoted(name)}", place, depth + 1)]
        fields = _read(field, f"STRUCT<{', '.join(f'{quoted(name)}: STRING' for name in kind.fields)}>")
        return let(struct, fields, f"named_struct({', '.join(values)})")

    def _map(self, kind: DataType, field: str, path: str, depth: int) -> str:
        """Return Spark SQL of a map; NULL where two keys are equal in its type, such as ``1`` and ``01``."""
        entry, entries = f"v{depth}", f"e{depth}"
        place = f"concat({path}, '[', {text_of(f'{entry}.key')}, ']')"
        sides = (
            self.value(c, f"{entry}.{n}", place, depth + 1)
            for c, n in zip(kind.children, ("key", "value"), strict=True)
        )
        read = f"transform(map_entries({_read(field, 'MAP<STRING,STRING>')}), {entry} -> struct({', '.join(sides)}))"
        differ = f"size(array_distinct(transform({entries}, {entry} -> {entry}.col1))) = size({entries})"
        return let(entries, read, f"IF({differ}, map_from_entries({entries}), NULL)")


def _read(field: str, kind: str) -> str:
    return f"from_json({field}, {text_literal(kind)}, map('columnNameOfCorruptRecord', '_trinity_broken'))"
