"""The references to Trinity's tables in a query, with their offsets in the text."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.names import split_name
from trinity.sql.parsing.names import quoted_name
from trinity.syntax.changes import CLAUSE, ChangesClause
from trinity.syntax.parse import Statement
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.names import TableName
    from trinity.session import Session
    from trinity.table import Table

Edit = tuple[int, int, str]
"""A replacement in the text of a statement: (start offset, end offset, new text)."""


@dataclass(frozen=True)
class Travel:
    """A time travel clause, or a clause that reads changes; at most one attribute is set.

    Attributes:
        version: number of the version.
        timestamp: the time, as SQL text.
        changes: the clause that reads changes.
    """

    version: int | None = None
    timestamp: str | None = None
    changes: ChangesClause | None = None


@dataclass(frozen=True)
class Reference:
    """One mention of a Trinity table in a query.

    Attributes:
        node: the table's node in the tree.
        table: the table.
        start: offset of the mention in the text.
        end: offset of the character after it.
        alias: the alias that Spark gets, if the query gives the table none.
        aliased: True if the query gives the table an alias.
        travel: the version or changes to read.
    """

    node: exp.Table
    table: Table
    start: int
    end: int
    alias: str
    aliased: bool
    travel: Travel

    @property
    def full(self) -> tuple[str, str, str]:
        """Catalog, schema and table, lower case."""
        return self.table.name.parts


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text after all edits, which must not overlap."""
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def find_references(session: Session, statement: Statement, common: Container[str] = ()) -> list[Reference]:
    """Return the references to Trinity tables, in the order of the text.

    Names of CTEs and of the caller's temporary views come first, as in Spark; then tables of the current schema. All
    other names are left to Spark. ``common`` are the names, in lower case, of WITH queries before the statement.

    Raises:
        TrinityError: SCHEMA_NOT_FOUND or TABLE_NOT_FOUND for a missing table of a Trinity catalog named in full.
    """
    found: dict[int, Reference] = {}
    for node in statement.tree.find_all(exp.Table):
        if (call := _changes_of_call(session, node)) is not None:
            found[call.start] = call
            continue
        identifiers = node.parts
        if not all(isinstance(p, exp.Identifier) and "start" in p.meta for p in identifiers):
            continue
        if len(identifiers) == 1 and (node.find_ancestor(exp.Hint) or is_inner_cte(node)):
            continue
        if len(identifiers) == 1 and node.name.lower() in common:
            continue
        table = resolve(session, [p.name for p in identifiers])
        if table is not None:
            reference = _reference(statement, node, table)
            found[reference.start] = reference
    return _with_distinct_aliases([found[start] for start in sorted(found)])


def _reference(statement: Statement, node: exp.Table, table: Table) -> Reference:
    first, last = node.parts[0], node.parts[-1]
    end = last.meta["end"] + 1
    version = node.args.get("version")
    travel = Travel()
    if isinstance(version, exp.Version):
        end = max(end, version.meta["end"] + 1)
        travel = _travel(table.name, version, statement.text[version.meta["start"] : version.meta["end"] + 1])
    return Reference(node, table, first.meta["start"], end, last.name, bool(node.alias), travel)


def _changes_of_call(session: Session, node: exp.Table) -> Reference | None:
    """Return the reference of ``table_changes('t', …)``; None for any other node.

    Raises:
        TrinityError: TABLE_NOT_FOUND for a name that is no Trinity table: Spark's own tables have no such function.
    """
    call = node.this
    clause = call.meta.get(CLAUSE) if isinstance(call, exp.Anonymous) else None
    if clause is None:
        return None
    parts = split_name(call.expressions[0].name)
    table = resolve(session, parts)
    if table is None:
        raise session.table_missing(session.table_name(parts))
    travel = Travel(changes=clause)
    return Reference(node, table, call.meta["start"], call.meta["end"] + 1, call.name, bool(node.alias), travel)


def _travel(name: TableName, version: exp.Version, clause: str) -> Travel:
    if (changes := version.meta.get(CLAUSE)) is not None:
        return Travel(changes=changes)
    if str(version.args.get("kind")) != "AS OF":
        raise TrinityError(
            "NOT_SUPPORTED", f"Table '{name}': '{clause}' is not supported; use VERSION AS OF or TIMESTAMP AS OF."
        )
    value = version.expression
    if str(version.this) == "TIMESTAMP":
        return Travel(timestamp=re.split(r"(?i)\bAS\s+OF\b", clause, maxsplit=1)[1].strip())
    if not isinstance(value, exp.Literal) or not value.name.isdigit():
        raise TrinityError("INVALID_ARGUMENTS", f"Table '{name}': a version is a number, not '{clause}'.")
    return Travel(version=int(value.name))


def is_inner_cte(node: exp.Table) -> bool:
    """Return whether a one-part name means a WITH query that is visible where the name stands."""
    child: exp.Expr = node
    parent = node.parent
    while parent is not None:
        if node.name.lower() in {c.alias.lower() for c in _visible_ctes(parent, child)}:
            return True
        child, parent = parent, parent.parent
    return False


def _visible_ctes(parent: exp.Expr, child: exp.Expr) -> list[exp.Expr]:
    if isinstance(parent, exp.With):
        index = next(i for i, cte in enumerate(parent.expressions) if cte is child)
        return list(parent.expressions[: index + bool(parent.args.get("recursive"))])
    clause = parent.args.get("with_")
    return list(clause.expressions) if clause is not None and clause is not child else []


def resolve(session: Session, parts: Sequence[str]) -> Table | None:
    """Return the Trinity table that a name in a query means; None for a name that Spark resolves.

    Raises:
        TrinityError: SCHEMA_NOT_FOUND or TABLE_NOT_FOUND for a missing table of a Trinity catalog named in full.
    """
    if len(parts) > 3:
        return None
    if len(parts) == 3 and parts[0].lower() not in session.catalogs:
        return None
    if len(parts) == 1 and session.has_temp_view(parts[0]):
        return None
    current = session.catalogs[session.current_catalog].metadata
    if len(parts) == 2 and parts[0].lower() not in current.list_schemas():  # such as Spark's parquet.`/path`
        return None
    name = session.table_name(parts)
    table = session.find_table(name)
    if table is None and len(parts) == 3:
        raise session.table_missing(name)
    return table


def joined_nodes(select: exp.Select) -> list[exp.Expr]:
    """Return the tables, subqueries, VALUES and lateral views of a FROM; an empty list without FROM."""
    clause = select.args.get("from_")
    if clause is None:
        return []
    joins = [join for node in (clause.this, select) for join in node.args.get("joins") or []]
    laterals = [lateral for node in (clause.this, select) for lateral in node.args.get("laterals") or []]
    return [clause.this, *(join.this for join in joins), *laterals]


def _with_distinct_aliases(references: list[Reference]) -> list[Reference]:
    """Use full names as aliases where tables of one FROM clause have the same last part."""
    seen: dict[tuple[int, str], set[tuple[str, str, str]]] = {}
    for r in references:
        if not r.aliased:
            seen.setdefault(_scope_and_name(r), set()).add(r.full)
    shared = [r for r in references if not r.aliased and len(seen[_scope_and_name(r)]) > 1]
    return [replace(r, alias=".".join(map(quoted_name, r.full))) if r in shared else r for r in references]


def _scope_and_name(reference: Reference) -> tuple[int, str]:
    return id(reference.node.parent_select), reference.alias.lower()


def column_edits(statement: Statement, references: Sequence[Reference]) -> Iterator[Edit]:
    """Yield edits that replace a column's qualifier of several parts, such as ``schema.t``, by the table's alias."""
    aliases = {a.name.lower() for a in statement.tree.find_all(exp.TableAlias) if a.this}
    for column in statement.tree.find_all(exp.Column):
        qualifiers = [q for q in (column.args.get(k) for k in ("catalog", "db", "table")) if q is not None]
        if len(qualifiers) < 2 or not all("start" in q.meta for q in qualifiers):
            continue
        written = tuple(q.name.lower() for q in qualifiers)
        meant = [r for r in references if not r.aliased and r.full[-len(written) :] == written]
        if meant and written[0] not in aliases:
            yield qualifiers[0].meta["start"], qualifiers[-1].meta["end"] + 1, quoted(meant[0].alias)
