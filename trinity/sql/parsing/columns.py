"""Column definitions of CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from trinity.definition.checks import check_name
from trinity.errors import TrinityError
from trinity.messages import shown_value
from trinity.spark.types import spark_type
from trinity.spi import Column
from trinity.syntax.parse import WRITTEN
from trinity.syntax.translate import to_spark_text
from trinity.syntax.types import type_text


@dataclass(frozen=True)
class Elements:
    """The elements in the parentheses of a CREATE TABLE.

    Attributes:
        columns: columns with a type.
        key: names of the key columns.
        names: columns without a type.
        checks: (name or None, condition) of its CHECK constraints.
    """

    columns: list[Column]
    key: list[str]
    names: list[str]
    checks: list[tuple[str | None, exp.Expr]]

    def named_checks(self, table: str, columns: Iterable[Column], dialect: str) -> dict[str, str]:
        """Return name -> condition in Spark SQL of all constraints; those without a name get one.

        Raises:
            TrinityError: INVALID_ARGUMENTS for two constraints of one name; NOT_SUPPORTED for a condition that Spark
                SQL cannot express.
        """
        found: dict[str, str] = {}
        known = list(columns)
        for given, condition in sorted(self.checks, key=lambda check: check[0] is None):
            inside = dict.fromkeys(node.parts[0].name for node in condition.find_all(exp.Column))
            name = given or check_name(table, inside, found)
            if name.lower() in (taken.lower() for taken in found):
                raise TrinityError("INVALID_ARGUMENTS", f"Table '{table}' names two constraints '{name}'.")
            found[name] = read_check(condition, known, dialect)
        return found


def read_check(condition: exp.Expr, columns: Iterable[Column], dialect: str) -> str:
    """Return the condition of a CHECK constraint in Spark SQL. Raise NOT_SUPPORTED if Spark SQL cannot express it."""
    if dialect == "spark":
        return str(condition.meta[WRITTEN])
    types = {c.name.lower(): spark_type(c.type) for c in columns}
    return to_spark_text(condition, dialect, lambda table: {}, lambda column: types.get(column.name.lower()))


def read_column(node: exp.ColumnDef, dialect: str) -> tuple[Column, bool]:
    """Return the column of a definition, and True if it is declared PRIMARY KEY; CHECK is read separately.

    Raises:
        TrinityError: NOT_SUPPORTED for a type or constraint that Trinity lacks, SYNTAX_ERROR without a type.
    """
    if not isinstance(node.kind, exp.DataType):
        raise TrinityError("SYNTAX_ERROR", f"Column '{node.name}' has no type.")
    kind = type_text(node.kind, dialect, node.name)
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
        elif not isinstance(rule, exp.CheckColumnConstraint):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Column '{node.name}': '{constraint.sql(dialect=dialect)}' is not supported; columns take NOT NULL, "
                "DEFAULT, COMMENT, CHECK and PRIMARY KEY.",
            )
    return Column(node.name, kind, nullable, default, comment), key


def _column_checks(node: exp.ColumnDef) -> Iterator[tuple[str | None, exp.Expr]]:
    for constraint in node.constraints:
        if isinstance(constraint.kind, exp.CheckColumnConstraint):
            yield constraint.name or None, constraint.kind.this


def default_text(node: exp.Expr, dialect: str) -> str | None:
    """Return the SQL of a DEFAULT in Spark's dialect; None for NULL. Raise NOT_SUPPORTED unless it is constant."""
    if isinstance(node, exp.Null):
        return None
    if node.find(exp.Column, exp.Query):
        raise TrinityError(
            "NOT_SUPPORTED", f"DEFAULT {shown_value(node.sql(dialect=dialect))}: a default is a constant expression."
        )
    return str(node.sql(dialect="spark"))


def read_elements(nodes: list[exp.Expr], dialect: str) -> Elements:
    """Read columns, keys and CHECKs in the parentheses of a CREATE TABLE.

    Raises:
        TrinityError: NOT_SUPPORTED for other constraints, SYNTAX_ERROR for two primary keys.
    """
    columns: list[Column] = []
    keys: list[list[str]] = []
    names: list[str] = []
    checks: list[tuple[str | None, exp.Expr]] = []
    for node in nodes:
        name = None
        if isinstance(node, exp.Constraint) and len(node.expressions) == 1:
            name, node = node.name, node.expressions[0]
        if isinstance(node, exp.ColumnDef) and node.kind is not None:
            column, is_key = read_column(node, dialect)
            columns.append(column)
            keys += [[column.name]] * is_key
            checks += _column_checks(node)
        elif isinstance(node, exp.CheckColumnConstraint):
            checks.append((name, node.this))
        elif isinstance(node, exp.PrimaryKey):
            keys.append(_key_columns(node))
        elif isinstance(node, (exp.Identifier, exp.ColumnDef)):
            names.append(node.name)
        else:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Constraint '{node.sql(dialect=dialect)}' is not supported; PRIMARY KEY and CHECK are.",
            )
    if len(keys) > 1:
        raise TrinityError(
            "SYNTAX_ERROR", "The table has two primary keys; for several key columns write PRIMARY KEY (a, b)."
        )
    return Elements(columns, keys[0] if keys else [], names, checks)


def _key_columns(node: exp.PrimaryKey) -> list[str]:
    for part in node.expressions:
        if not isinstance(part, (exp.Identifier, exp.Column)):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"PRIMARY KEY ({shown_value(part.sql(dialect='spark'))}): a key is made of columns as they are.",
            )
    return [part.name for part in node.expressions]
