"""Column types of the SQL dialects as Trinity's type texts."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.spi import parse_type
from trinity.syntax.collations import not_collated

_T = exp.DType

_SCALARS: Final[dict[exp.DType, str]] = {
    _T.BOOLEAN: "boolean",
    _T.TINYINT: "tinyint",
    _T.SMALLINT: "smallint",
    _T.INT: "int",
    _T.BIGINT: "bigint",
    _T.FLOAT: "float",
    _T.DOUBLE: "double",
    _T.TEXT: "string",
    _T.BINARY: "binary",
    _T.VARBINARY: "binary",
    _T.BLOB: "binary",
    _T.DATE: "date",
    # a column of PostgreSQL's SERIAL is an integer column; its numbers have to come from the writer
    _T.SMALLSERIAL: "smallint",
    _T.SERIAL: "int",
    _T.BIGSERIAL: "bigint",
}

_TIMESTAMPS: Final[dict[exp.DType, str]] = {
    _T.TIMESTAMP: "timestamp_ntz",  # of Trino and PostgreSQL; sqlglot parses Spark's as TIMESTAMPTZ
    _T.TIMESTAMPNTZ: "timestamp_ntz",
    _T.TIMESTAMPTZ: "timestamp",
    _T.TIMESTAMPLTZ: "timestamp",
    _T.TIME: "time",
}
"""Types that may have a precision, in digits of a second; all are stored in microseconds."""

_BARE_DECIMAL: Final = {"spark": (10, 0), "trino": (38, 0)}


def type_text(kind: exp.DataType, dialect: str, column: str = "") -> str:
    """Return the type text (see :mod:`trinity.spi.types`) of a parsed type.

    A name without arguments means what it means in the dialect: DECIMAL is decimal(10,0) in Spark and decimal(38,0) in
    Trino. VARCHAR without a length is a string of any length. CHAR without a length is char(1), but a string in Spark's
    dialect, which has no CHAR without a length.

    Args:
        kind: the type.
        dialect: the statement's dialect.
        column: the column with the type, for messages.

    Raises:
        TrinityError: NOT_SUPPORTED for a type without counterpart, or with a collation, TYPE_MISMATCH for wrong
            arguments.
    """
    text = _text(kind, dialect, column)
    try:
        return str(parse_type(text))
    except TrinityError as error:
        raise TrinityError(error.code, f"{_prefix(column)}{error.message}") from error


def _text(kind: exp.DataType, dialect: str, path: str) -> str:
    name = kind.this
    if kind.args.get("collate"):
        raise not_collated(path, kind.args["collate"].sql(dialect=dialect))
    if name in _SCALARS:
        return _SCALARS[name]
    if name in _TIMESTAMPS:
        return _with_fraction(kind, _TIMESTAMPS[name], dialect, path)
    if name is _T.DECIMAL:
        return _decimal(kind, dialect, path)
    if name in (_T.CHAR, _T.NCHAR, _T.VARCHAR, _T.NVARCHAR):
        return _text_type(kind, dialect)
    if name in (_T.ARRAY, _T.LIST) and len(kind.expressions) == 1:
        return f"array<{_text(kind.expressions[0], dialect, f'{path}.element')}>"
    if name is _T.MAP and len(kind.expressions) == 2:
        key, value = kind.expressions
        return f"map<{_text(key, dialect, f'{path}.key')},{_text(value, dialect, f'{path}.value')}>"
    if name is _T.STRUCT and kind.expressions:
        return f"struct<{','.join(_field(f, kind, dialect, path) for f in kind.expressions)}>"
    raise _refused(kind, dialect, path, "Trinity's tables have no such type; store it as string, binary or a struct")


def _prefix(path: str) -> str:
    return f"Column '{path}': " if path else ""


def _refused(kind: exp.DataType, dialect: str, path: str, why: str) -> TrinityError:
    return TrinityError("NOT_SUPPORTED", f"{_prefix(path)}Type {kind.sql(dialect=dialect)}: {why}.")


def _numbers(kind: exp.DataType) -> list[int]:
    return [int(p.this.name) for p in kind.expressions if isinstance(p, exp.DataTypeParam) and p.this.name.isdigit()]


def _with_fraction(kind: exp.DataType, text: str, dialect: str, path: str) -> str:
    if any(digits > 6 for digits in _numbers(kind)):
        raise _refused(kind, dialect, path, "times are stored in microseconds, so the precision is at most 6")
    return text


def _decimal(kind: exp.DataType, dialect: str, path: str) -> str:
    numbers = _numbers(kind)
    if numbers:
        return f"decimal({numbers[0]},{numbers[1] if len(numbers) > 1 else 0})"
    if dialect not in _BARE_DECIMAL:
        raise _refused(kind, dialect, path, f"it is of any precision in {dialect}; write one, as DECIMAL(38, 9)")
    precision, scale = _BARE_DECIMAL[dialect]
    return f"decimal({precision},{scale})"


def _text_type(kind: exp.DataType, dialect: str) -> str:
    numbers = _numbers(kind)
    fixed = kind.this in (_T.CHAR, _T.NCHAR)
    if numbers:
        return f"{'char' if fixed else 'varchar'}({numbers[0]})"
    return "char(1)" if fixed and dialect != "spark" else "string"


def _field(field: exp.Expr, kind: exp.DataType, dialect: str, path: str) -> str:
    if not isinstance(field, exp.ColumnDef) or field.kind is None:
        raise _refused(kind, dialect, path, "every field of a struct needs a name")
    within = f"{path}.{field.name}"
    for constraint in field.constraints:
        rule = constraint.kind
        if isinstance(rule, exp.CollateColumnConstraint):
            raise not_collated(within, rule.this.sql(dialect=dialect))
        if isinstance(rule, exp.DefaultColumnConstraint) or (
            isinstance(rule, exp.NotNullColumnConstraint) and not rule.args.get("allow_null")
        ):
            what = constraint.sql(dialect=dialect)
            raise _refused(kind, dialect, within, f"{what} holds for whole columns only")
    return f"`{field.this.name}`:{_text(field.kind, dialect, within)}"
