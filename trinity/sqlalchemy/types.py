"""The conversion between Trinity's types and SQLAlchemy's."""

# ruff: noqa: N802, N815 - the methods have SQLAlchemy's names

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import types as sa
from sqlalchemy.sql.compiler import GenericTypeCompiler

from trinity.spi import DataType
from trinity.zones import zone_of

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect


class TINYINT(sa.Integer):
    """Whole numbers of one byte."""

    __visit_name__ = "TINYINT"


class MAP(sa.TypeEngine[dict[Any, Any]]):
    """Maps. A value is a dict.

    Args:
        key: the type of the keys.
        value: the type of the values.
    """

    __visit_name__ = "MAP"

    def __init__(self, key: sa.TypeEngine[Any], value: sa.TypeEngine[Any]) -> None:
        self.key, self.value = key, value

    @property
    def python_type(self) -> type[Any]:
        """The class of a value."""
        return dict


class STRUCT(sa.TypeEngine[Any]):
    """Structs. A value is a row, whose fields are found by index, by name and by attribute.

    Args:
        fields: name -> type of each field.
    """

    __visit_name__ = "STRUCT"

    def __init__(self, fields: Mapping[str, sa.TypeEngine[Any]]) -> None:
        self.fields = dict(fields)


class Timestamp(sa.DateTime):
    """TIMESTAMP: an instant, read as a datetime with the session's zone; TIMESTAMP_NTZ: a clock without zone."""

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        if not self.timezone:
            return None
        zone = zone_of(getattr(dialect, "timezone", "UTC"))  # the cursor returns local times of this zone
        return lambda clock: None if clock is None else clock.replace(tzinfo=zone)


class Exact(sa.Numeric[Any]):
    """A DECIMAL to which a float is bound by its shortest text, ``str(value)``."""

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        return lambda value: Decimal(str(value)) if isinstance(value, float) else value


class Day(sa.Date):
    """DATE, which takes the day of a datetime."""

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        return lambda value: value.date() if isinstance(value, dt.datetime) else value


_SIMPLE: Final[dict[str, sa.TypeEngine[Any]]] = {
    "boolean": sa.BOOLEAN(), "tinyint": TINYINT(), "smallint": sa.SMALLINT(), "int": sa.INTEGER(),
    "bigint": sa.BIGINT(), "float": sa.REAL(), "double": sa.DOUBLE(), "string": sa.String(),
    "binary": sa.LargeBinary(), "date": sa.DATE(), "timestamp": sa.TIMESTAMP(timezone=True),
    "timestamp_ntz": sa.TIMESTAMP(), "time": sa.TIME(),
}  # fmt: skip


def type_of(kind: DataType) -> sa.TypeEngine[Any]:
    """Return a type of Trinity's as SQLAlchemy's."""
    if kind.name == "decimal":
        precision, scale = kind.arguments
        return sa.DECIMAL(precision, scale)
    if kind.has_length:
        (length,) = kind.arguments
        return sa.CHAR(length) if kind.name == "char" else sa.VARCHAR(length)
    parts = [type_of(child) for child in kind.children]
    if kind.name == "array":
        return _array(parts[0])
    if kind.name == "map":
        return MAP(*parts)
    if kind.name == "struct":
        return STRUCT(dict(zip(kind.fields, parts, strict=True)))
    return _SIMPLE.get(kind.name, sa.NULLTYPE)


def _array(item: sa.TypeEngine[Any]) -> sa.ARRAY[Any]:
    """Return the type of arrays of items. In SQLAlchemy a nested array is one array with more dimensions."""
    if isinstance(item, sa.ARRAY):
        return sa.ARRAY(item.item_type, dimensions=(item.dimensions or 1) + 1)
    return sa.ARRAY(item)


_SINGLE: Final = 24
"""Maximum precision of a FLOAT of four bytes, in bits."""


def _always(word: str) -> Callable[..., str]:
    """Return a method that compiles each type to the same word."""
    return lambda self, type_, **kw: word


class TypeCompiler(GenericTypeCompiler):
    """The compiler of SQLAlchemy's types to Trinity's."""

    visit_TINYINT, visit_INTEGER, visit_REAL = map(_always, ("TINYINT", "INT", "FLOAT"))
    visit_DOUBLE = visit_DOUBLE_PRECISION = _always("DOUBLE")
    visit_TIME = _always("TIME")
    visit_TEXT = visit_CLOB = visit_NCLOB = visit_JSON = _always("STRING")
    visit_BINARY = visit_VARBINARY = visit_BLOB = _always("BINARY")

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "FLOAT" if type_.precision and type_.precision <= _SINGLE else "DOUBLE"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        if type_.precision is None:
            return "DECIMAL(38, 18)"  # Spark's own default has no digits after the point
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    visit_DECIMAL = visit_NUMERIC

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP" if type_.timezone else "TIMESTAMP_NTZ"

    visit_DATETIME = visit_TIMESTAMP

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        return f"VARCHAR({type_.length})" if type_.length else "STRING"

    visit_NVARCHAR = visit_VARCHAR

    def visit_CHAR(self, type_: Any, **kw: Any) -> str:
        return f"CHAR({type_.length or 1})"

    visit_NCHAR = visit_CHAR

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        depth = type_.dimensions or 1
        return "ARRAY<" * depth + self.process(type_.item_type, **kw) + ">" * depth

    def visit_MAP(self, type_: MAP, **kw: Any) -> str:
        return f"MAP<{self.process(type_.key, **kw)}, {self.process(type_.value, **kw)}>"

    def visit_STRUCT(self, type_: STRUCT, **kw: Any) -> str:
        quote = self.dialect.identifier_preparer.quote_identifier
        return f"STRUCT<{', '.join(f'{quote(name)}: {self.process(t, **kw)}' for name, t in type_.fields.items())}>"
