"""Names in SQL: tables, schemas and their quoting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.names import TableName
    from trinity.session import Session
    from trinity.table import Table


def parts(node: exp.Expr) -> list[str]:
    """Return the parts of a table name as written, without quotes.

    Raises:
        TrinityError: INVALID_ARGUMENTS for anything else than a name.
    """
    table = node.this if isinstance(node, exp.Schema) else node
    found = table.parts if isinstance(table, exp.Table) else []
    if not found or not all(isinstance(p, exp.Identifier) for p in found):
        raise TrinityError("INVALID_ARGUMENTS", f"'{node.sql(dialect='spark')}' is no table name.")
    return [p.name for p in found]


def target_name(session: Session, node: exp.Expr) -> TableName:
    """Return the full name of a statement's target table. Raise INVALID_ARGUMENTS, CATALOG_NOT_FOUND."""
    return session.table_name(parts(node))


def existing_table(session: Session, node: exp.Expr) -> Table:
    """Return the table that a statement names.

    Raises:
        TrinityError: CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND or TABLE_NOT_FOUND, with the nearest name.
    """
    return session.table(target_name(session, node))


def catalog_name(given: Sequence[str]) -> str:
    """Return the catalog name in lower case. Raise INVALID_ARGUMENTS for a name of several parts."""
    if len(given) != 1:
        raise TrinityError("INVALID_ARGUMENTS", f"'{'.'.join(given)}' is no catalog name: it has several parts.")
    return given[0].lower()


def quoted_name(name: str) -> str:
    """Return a name, in backticks where it needs them."""
    plain = name.isascii() and name.isidentifier() and name.upper() not in _RESERVED
    return name if plain else quoted(name)


_RESERVED = frozenset({
    "ALL", "AND", "ANTI", "ANY", "AS", "BOTH", "BY", "CASE", "CAST", "CHECK", "COLLATE", "COLUMN", "CONSTRAINT",
    "CREATE", "CROSS", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "DEFAULT", "DISTINCT",
    "ELSE", "END", "ESCAPE", "EXCEPT", "FALSE", "FETCH", "FILTER", "FOR", "FOREIGN", "FROM", "FULL", "GRANT",
    "GROUP", "HAVING", "IN", "INNER", "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "LATERAL", "LEADING", "LEFT",
    "LIKE", "MINUS", "NATURAL", "NOT", "NULL", "ON", "ONLY", "OR", "ORDER", "OUTER", "OVERLAPS", "PRIMARY",
    "REFERENCES", "RIGHT", "SELECT", "SEMI", "SESSION_USER", "SET", "SOME", "TABLE", "THEN", "TIME", "TO",
    "TRAILING", "UNION", "UNIQUE", "UNKNOWN", "USER", "USING", "VALUES", "VIEW", "WHEN", "WHERE", "WITH",
    "WINDOW",
})  # fmt: skip
"""Words that sqlglot or Spark (ANSI) may not accept as a bare column name."""
