"""The clauses of a CREATE TABLE after its columns: properties, keys and partitions, in three dialects' spellings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError

_KEY_OPTIONS: Final = ("primary-key",)
_LOCATION_OPTIONS: Final = ("location", "external-location")
_PARTITION_OPTIONS: Final = ("partitioned-by", "partitioning")
_TRANSFORM_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.PartitionedByBucket: "bucket",
    exp.PartitionByTruncate: "truncate",
    exp.Year: "years",
    exp.Month: "months",
    exp.Day: "days",
    exp.Hour: "hours",
}


@dataclass
class Options:
    """Options of a CREATE TABLE.

    Attributes:
        properties: table properties, keys as written.
        primary_key: key columns given as an option (Trino).
        partition_by: partition columns and transforms of them.
        partition_columns: partition columns that only PARTITIONED BY declares (Hive's spelling).
        with_data: False for Trino's WITH NO DATA.
        format: the format of USING or ``format``, or None.
        location: folder of an external table, or None.
    """

    properties: dict[str, str] = field(default_factory=dict)
    primary_key: list[str] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    partition_columns: list[exp.ColumnDef] = field(default_factory=list)
    with_data: bool = True
    format: str | None = None
    location: str | None = None


def read_options(nodes: Sequence[exp.Expr]) -> Options:
    """Read the property nodes of a CREATE TABLE.

    Raises:
        TrinityError: NOT_SUPPORTED for clauses that Trinity's tables lack; INVALID_TABLE_PROPERTY for
            an option value that is no literal, or an option given twice.
    """
    options = Options()
    for node in nodes:
        _read(options, node)
    return options


def _read(options: Options, node: exp.Expr) -> None:
    if isinstance(node, exp.FileFormatProperty):
        # Trino's option names the file format, which is always parquet; USING names the table format
        file_format = isinstance(node.this, exp.Literal) and node.name.lower() == "parquet"
        options.format = None if file_format else node.name.lower()
    elif isinstance(node, exp.SchemaCommentProperty):
        options.properties["comment"] = node.name
    elif isinstance(node, exp.PartitionedByProperty):
        _partitions(options, node.this)
    elif isinstance(node, exp.LocationProperty):
        options.location = node.name
    elif isinstance(node, exp.ExternalProperty):
        pass  # a table with a location is external, with or without the word
    elif isinstance(node, exp.PrimaryKey):
        options.primary_key = [c.name for c in node.expressions]
    elif isinstance(node, exp.WithDataProperty):
        options.with_data = not node.args.get("no")
    elif type(node) is exp.Property:
        _option(options, node)
    else:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"CREATE TABLE: '{node.sql(dialect='spark')}' is not supported; Trinity's tables are managed, plain or "
            "keyed, with options in TBLPROPERTIES or WITH.",
        )


def _option(options: Options, node: exp.Property) -> None:
    key = _key(node.this)
    bare = key.lower().replace("_", "-")
    if bare in _KEY_OPTIONS:
        options.primary_key = _list(key, node.args["value"])
    elif bare in _LOCATION_OPTIONS:
        options.location = _option_text(key, node.args["value"])
    elif bare in _PARTITION_OPTIONS:
        _partitions(options, node.args["value"])
    elif key in options.properties:
        raise TrinityError("INVALID_TABLE_PROPERTY", f"Table property '{key}' is given more than once; keep one.")
    else:
        options.properties[key] = _option_text(key, node.args["value"])


def _key(node: exp.Expr) -> str:
    if isinstance(node, exp.Dot):
        return f"{_key(node.this)}.{_key(node.expression)}"
    if isinstance(node, exp.Column):
        return ".".join(p.name for p in node.parts)
    return str(node.name)


def _option_text(key: str, value: exp.Expr) -> str:
    """Return the text of an option's value: a string, number, boolean, or array of them (joined by commas).

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY for anything else.
    """
    if isinstance(value, exp.Boolean):
        return "true" if value.this else "false"
    if isinstance(value, (exp.Literal, exp.Var)):
        return str(value.name)
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        return f"-{value.this.name}"
    if isinstance(value, (exp.Array, exp.Tuple)):
        return ",".join(_option_text(key, v) for v in value.expressions)
    raise TrinityError(
        "INVALID_TABLE_PROPERTY",
        f"Table property '{key}': '{value.sql(dialect='spark')}' is no literal; write a string, number or boolean.",
    )


def _list(key: str, value: exp.Expr) -> list[str]:
    return [part.strip() for part in _option_text(key, value).split(",") if part.strip()]


def _partitions(options: Options, value: exp.Expr) -> None:
    if isinstance(value, exp.Array):  # Trino: one text for each field, which may hold commas
        options.partition_by += [_option_text("partitioning", part).strip() for part in value.expressions]
        return
    if not isinstance(value, (exp.Schema, exp.Tuple)):
        options.partition_by += _list("partitioned_by", value)
        return
    for part in value.expressions:
        if isinstance(part, exp.ColumnDef) and part.kind is not None:
            options.partition_columns.append(part)
        plain = isinstance(part, (exp.Identifier, exp.Column, exp.ColumnDef))
        options.partition_by.append(part.name if plain else _transform(part))


def _transform(node: exp.Expr) -> str:
    """Return the text of a partition transform, as :func:`~trinity.spi.parse_partition` reads it."""
    column, number = node.find(exp.Column), node.find(exp.Literal)
    name = _TRANSFORM_NODES.get(type(node), node.name if isinstance(node, exp.Anonymous) else "")
    if not name or column is None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"PARTITIONED BY {node.sql(dialect='spark')}: that is no partition transform; name a column, or on Iceberg "
            "bucket(8, c), truncate(4, c), years(c), months(c), days(c) or hours(c).",
        )
    return f"{name}({f'{number.name}, ' if number is not None else ''}{column.name})"


def table_properties(nodes: Sequence[exp.Expr]) -> dict[str, str]:
    """Read the properties of an ALTER TABLE ... SET. Errors as for :func:`read_options`; NOT_SUPPORTED for keys."""
    options = read_options(nodes)
    if options.primary_key or options.partition_by or options.format or options.location:
        raise TrinityError(
            "NOT_SUPPORTED", "Key, partitions, format and location of a table cannot be changed; create a new table."
        )
    return options.properties
