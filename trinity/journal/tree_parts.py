"""Small pieces of sqlglot's tree, built the same way everywhere in the rewriter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from trinity.errors import TrinityError
from trinity.journal.tables import JournalColumn, JournalTable
from trinity.syntax.as_written import parsed

_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*")

_RESERVED: Final = frozenset({
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization", "binary",
    "both", "case", "cast", "check", "collate", "collation", "column", "concurrently", "constraint", "create",
    "cross", "current_catalog", "current_date", "current_role", "current_schema", "current_time",
    "current_timestamp", "current_user", "default", "deferrable", "desc", "distinct", "do", "else", "end",
    "except", "false", "fetch", "for", "foreign", "freeze", "from", "full", "grant", "group", "having", "ilike",
    "in", "initially", "inner", "intersect", "into", "is", "isnull", "join", "lateral", "leading", "left",
    "like", "limit", "localtime", "localtimestamp", "natural", "not", "notnull", "null", "offset", "on", "only",
    "or", "order", "outer", "overlaps", "placing", "primary", "references", "returning", "right", "select",
    "session_user", "similar", "some", "symmetric", "system_user", "table", "tablesample", "then", "to",
    "trailing", "true", "union", "unique", "user", "using", "variadic", "verbose", "when", "where", "window",
    "with",
})  # fmt: skip
"""PostgreSQL's reserved words, which are quoted as names."""


def folded(name: exp.Identifier) -> str:
    """Return the name that an identifier means on PostgreSQL: unquoted ones are lower case."""
    return str(name.name) if name.args.get("quoted") else str(name.name).lower()


def identifier(name: str) -> exp.Identifier:
    """Return an identifier that means exactly this name; quoted only where needed."""
    return exp.Identifier(this=name, quoted=not _PLAIN.fullmatch(name) or name in _RESERVED)


def column(name: str, table: str | exp.Identifier | None = None) -> exp.Column:
    """Return a column reference."""
    source = identifier(table) if isinstance(table, str) else table.copy() if table is not None else None
    return exp.Column(this=identifier(name), table=source)


def all_of(table: str) -> exp.Column:
    """Return ``table.*``."""
    return exp.Column(this=exp.Star(), table=identifier(table))


def journal(table: JournalTable, alias: str | None = None) -> exp.Table:
    """Return the journal as a table of the backend."""
    named = exp.TableAlias(this=identifier(alias)) if alias else None
    catalog = identifier(table.catalog) if table.catalog else None
    return exp.Table(this=identifier(table.journal), db=identifier(table.backend_schema), catalog=catalog, alias=named)


def select(
    expressions: Sequence[exp.Expr], source: exp.Expr, where: Iterable[exp.Expr] = (), **clauses: exp.Expr
) -> exp.Select:
    """Return ``SELECT expressions FROM source WHERE``, with all conditions of ``where``."""
    found = exp.Select(expressions=list(expressions), from_=exp.From(this=source), **clauses)
    conditions = list(where)
    if conditions:
        found.set("where", exp.Where(this=exp.and_(*conditions, copy=False) if conditions[1:] else conditions[0]))
    return found


def derived(query: exp.Query, alias: exp.Identifier | str, columns: Sequence[exp.Identifier] = ()) -> exp.Subquery:
    """Return a query in FROM under an alias, with a column list if one is given."""
    name = identifier(alias) if isinstance(alias, str) else alias.copy()
    return exp.Subquery(this=query, alias=exp.TableAlias(this=name, columns=[c.copy() for c in columns]))


def exists(source: exp.Expr, where: Iterable[exp.Expr]) -> exp.Exists:
    """Return ``EXISTS (SELECT 1 FROM source WHERE where)``."""
    return exp.Exists(this=select([exp.Literal.number(1)], source, where))


def join_lateral(query: exp.Query, alias: exp.Identifier | str) -> exp.Join:
    """Return ``LEFT JOIN LATERAL (query) AS alias ON TRUE``."""
    name = identifier(alias) if isinstance(alias, str) else alias.copy()
    lateral = exp.Lateral(this=exp.Subquery(this=query), alias=exp.TableAlias(this=name))
    return exp.Join(this=lateral, side="LEFT", on=exp.true())


def descending(value: exp.Expr) -> exp.Ordered:
    """Return ``value DESC``, with NULLs first, PostgreSQL's default: only then an index gives the order."""
    return exp.Ordered(this=value, desc=True, nulls_first=True)


def cte(name: str, query: exp.Expr, materialized: bool | None = None) -> exp.CTE:
    """Return a member of a WITH."""
    return exp.CTE(this=query, alias=exp.TableAlias(this=identifier(name)), materialized=materialized)


def cast(value: exp.Expr, kind: str) -> exp.Cast:
    """Return ``CAST(value AS kind)`` for a type as the backend writes it."""
    return exp.Cast(this=value, to=exp.DataType(this=exp.DType.USERDEFINED, kind=kind))


def typed_for(value: exp.Expr, to: JournalColumn) -> exp.Expr:
    """Return a value for a column, typed for a subquery, where PostgreSQL does not know the column.

    A bare literal, NULL or parameter has no type; in a subquery it would become text. It gets the column's type without
    its length, so that a text which is too long is refused and not cut off.
    """
    inner = value.unnest() if isinstance(value, exp.Paren) else value
    untyped = isinstance(inner, (exp.Null, exp.Parameter, exp.Placeholder)) or (
        isinstance(inner, exp.Literal) and inner.is_string
    )
    return cast(value, to.type) if untyped else value


def row(values: Iterable[exp.Expr]) -> exp.Anonymous:
    """Return ``ROW(values)``."""
    return exp.Anonymous(this="ROW", expressions=list(values))


def equal(names: Iterable[str], left: str | exp.Identifier, right: str | exp.Identifier) -> exp.Expr:
    """Return the condition that columns of these names are equal on both sides."""
    return exp.and_(*[exp.EQ(this=column(n, left), expression=column(n, right)) for n in names], copy=False)


def parameter(number: int) -> exp.Parameter:
    """Return the parameter with this number; see :mod:`trinity.journal.binding`."""
    return exp.Parameter(this=exp.Literal.number(number))


def is_default(value: exp.Expr) -> bool:
    """Return True for the keyword DEFAULT, which sqlglot reads as a variable or a column."""
    if isinstance(value, exp.Var):
        return str(value.name).upper() == "DEFAULT"
    return (
        isinstance(value, exp.Column)
        and not value.table
        and isinstance(value.this, exp.Identifier)
        and not value.this.args.get("quoted")
        and str(value.name).upper() == "DEFAULT"
    )


def default_of(target: JournalColumn, dialect: str) -> exp.Expr:
    """Return the DEFAULT of a column; NULL without one."""
    return exp.Null() if target.default is None else parsed(target.default, dialect)


def alias_name(table: exp.Table) -> exp.Identifier:
    """Return a table's name in its statement: the alias, or the name itself."""
    alias = table.args.get("alias")
    name: exp.Identifier = alias.this if alias is not None and alias.this is not None else table.this
    return name.copy()


def table_named(text: str, dialect: str) -> exp.Table:
    """Parse the name of a table. Raise INVALID_ARGUMENTS for any other text."""
    try:
        return exp.to_table(text, dialect=dialect)
    except (ValueError, SqlglotError) as error:
        raise TrinityError("INVALID_ARGUMENTS", f"'{text}' is no name of a table.") from error
