"""Column definitions of CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.spi import Column
from trinity.sql.types import type_text

__all__ = ["default_text", "read_column", "read_columns"]


def read_column(node: exp.ColumnDef, dialect: str) -> tuple[Column, bool]:
    """The column of a definition, and whether it is declared PRIMARY KEY there.

    Raises:
        TrinityError: NOT_SUPPORTED for a type or constraint that Trinity lacks, SYNTAX_ERROR without a type.
    """
    if not isinstance(node.kind, exp.DataType):
        raise TrinityError("SYNTAX_ERROR", f"Column '{node.name}' has no type.")
    try:
        kind = type_text(node.kind, dialect)
    except TrinityError as error:
        raise TrinityError(error.code, f"Column '{node.name}': {error.message}") from error
    nullable, default, comment, key = True, None, None, False
    for constraint in node.constraints:
        rule = constraint.kind
        if isinstance(rule, exp.NotNullColumnConstraint):
            nullable = bool(rule.args.get("allow_null"))
        elif isinstance(rule, exp.DefaultColumnConstraint):
            default = default_text(rule.this, dialect)
        elif isinstance(rule, exp.CommentColumnConstraint):
            comment = rule.name
        elif isinstance(rule, exp.PrimaryKeyColumnConstraint):
            key = True
        else:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Column '{node.name}': '{constraint.sql(dialect=dialect)}' is not supported; columns take NOT NULL, "
                "DEFAULT, COMMENT and PRIMARY KEY.",
            )
    return Column(node.name, kind, nullable, default, comment), key


def default_text(node: exp.Expr, dialect: str) -> str | None:
    """The SQL of a DEFAULT in Spark's dialect; None for NULL. Raises NOT_SUPPORTED when it is no constant."""
    if isinstance(node, exp.Null):
        return None
    if node.find(exp.Column, exp.Query):
        raise TrinityError("NOT_SUPPORTED", f"DEFAULT {node.sql(dialect=dialect)}: a default is a constant expression.")
    return str(node.sql(dialect="spark"))


def read_columns(nodes: list[exp.Expr], dialect: str) -> tuple[list[Column], list[str], list[str]]:
    """(columns, primary key, names without type) of the parenthesised part of a CREATE TABLE.

    Raises:
        TrinityError: NOT_SUPPORTED for other constraints, SYNTAX_ERROR for two primary keys.
    """
    columns: list[Column] = []
    keys: list[list[str]] = []
    names: list[str] = []
    for node in nodes:
        if isinstance(node, exp.Constraint) and len(node.expressions) == 1:
            node = node.expressions[0]
        if isinstance(node, exp.ColumnDef) and node.kind is not None:
            column, is_key = read_column(node, dialect)
            columns.append(column)
            keys += [[column.name]] * is_key
        elif isinstance(node, exp.PrimaryKey):
            keys.append(_key_columns(node))
        elif isinstance(node, (exp.Identifier, exp.ColumnDef)):
            names.append(node.name)
        else:
            raise TrinityError(
                "NOT_SUPPORTED", f"Constraint '{node.sql(dialect=dialect)}' is not supported; only PRIMARY KEY is."
            )
    if len(keys) > 1:
        raise TrinityError(
            "SYNTAX_ERROR", "The table has two primary keys; for several key columns write PRIMARY KEY (a, b)."
        )
    return columns, keys[0] if keys else [], names


def _key_columns(node: exp.PrimaryKey) -> list[str]:
    for part in node.expressions:
        if not isinstance(part, (exp.Identifier, exp.Column)):
            raise TrinityError(
                "NOT_SUPPORTED", f"PRIMARY KEY ({part.sql(dialect='spark')}): a key is made of columns as they are."
            )
    return [part.name for part in node.expressions]
