"""The rewriter, a pure function: from a statement on journalled tables to one on their journals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from sqlglot import TokenType, exp

from trinity.errors import TrinityError
from trinity.journal import ddl
from trinity.journal import tree_parts as trees
from trinity.journal.binding import Bound, bind
from trinity.journal.conflicts import insert_on_conflict
from trinity.journal.inserts import insert
from trinity.journal.locks import Lock, is_of_one_row
from trinity.journal.merges import merge
from trinity.journal.reading import live_rows
from trinity.journal.refusals import check_unread, mentions, words_of
from trinity.journal.rowlocks import with_row_locks
from trinity.journal.scopes import Scopes
from trinity.journal.sources import Computed
from trinity.journal.tables import JournalModel, JournalTable
from trinity.journal.updates import delete, update
from trinity.journal.writing import Names, RewrittenChange
from trinity.syntax.as_written import parsed
from trinity.syntax.parameters import Numbered, number

Kind = Literal["plain", "query", "change", "ddl"]


@dataclass(frozen=True)
class KeyLock:
    """A lock to take before the statement: of the keys whose hashes a query finds, or of the whole table."""

    table: JournalTable
    keys: Bound | None


@dataclass(frozen=True)
class UniqueCheck:
    """A query that must find nothing after the statement: values of a unique key in two live rows."""

    table: JournalTable
    columns: tuple[str, ...]
    query: Bound


@dataclass(frozen=True)
class Rewritten:
    """A rewritten statement, as it is sent to the backend.

    Attributes:
        sql: the statement; parameters are written ``$1``, ``$2``, ...
        parameters: position (from 0) of each one's value; see :class:`trinity.journal.binding.Bound`.
        count: number of parameters of the original.
        kind: ``plain`` (without journalled table, sent as written), ``query``, ``change`` or ``ddl``.
        locks: locks to take before.
        computed: a query for values to compute before, one row each; their positions follow the caller's.
        counted: True when the result is one number, the count of changed rows.
        returns: True when the statement returns rows: a query, or RETURNING.
        checks: checks to run afterwards.
        table: the journalled table that is written, if one is.
    """

    sql: str
    parameters: tuple[int, ...]
    count: int
    kind: Kind = "plain"
    locks: tuple[KeyLock, ...] = ()
    computed: Bound | None = None
    counted: bool = False
    returns: bool = False
    checks: tuple[UniqueCheck, ...] = ()
    table: JournalTable | None = None


def rewrite(sql: str, model: JournalModel, dialect: str = "postgres") -> Rewritten:
    """Rewrite one statement.

    Args:
        sql: the statement, parameters written ``?``; a trailing ``;`` is allowed.
        model: the journalled tables, with the columns of their journals.
        dialect: sqlglot's name of the backend's SQL.

    Returns:
        the statement to send; a statement without journalled table stays as written.

    Raises:
        TrinityError: SYNTAX_ERROR, COLUMN_NOT_FOUND, TABLE_NOT_FOUND, and NOT_SUPPORTED for a statement that would
            reach a journalled table in a way that cannot be rewritten.
    """
    numbered = number(sql, dialect)
    plain = Rewritten(numbered.text, tuple(range(numbered.count)), numbered.count)
    if not mentions(numbered, model):
        return plain
    words = words_of(numbered)
    if words[:1] == ("EXPLAIN",):
        return _rewrite_explain(sql, numbered, model, dialect)
    if check_unread(words, model, numbered):
        return plain
    tree = parsed(numbered.text, dialect)
    scopes = Scopes(model, dialect)
    definition = ddl.rewrite_ddl(tree, scopes)
    if definition is None:
        return _Statement(dialect, scopes, plain).rewrite(tree)
    if not scopes.refers_to_model:  # the name was a column's, or another schema's table
        return plain
    bound = bind(definition, dialect)
    return Rewritten(bound.sql, bound.parameters, numbered.count, "ddl")


def _rewrite_explain(sql: str, numbered: Numbered, model: JournalModel, dialect: str) -> Rewritten:
    """Rewrite EXPLAIN [options] statement: it explains the rewritten statement."""
    tokens = numbered.tokens
    at = 1
    if tokens[1].token_type is TokenType.L_PAREN:
        at = next((i for i, t in enumerate(tokens) if t.token_type is TokenType.R_PAREN), 0) + 1
    while at < len(tokens) - 1 and tokens[at].text.upper() in ("ANALYZE", "VERBOSE"):
        at += 1
    prefix, inner = sql[: tokens[at].start], sql[tokens[at].start :]
    found = rewrite(inner, model, dialect)
    if found.kind in ("change", "ddl") and "ANALYZE" in prefix.upper():
        raise TrinityError(
            "NOT_SUPPORTED", "EXPLAIN ANALYZE would carry out the change; leave ANALYZE out, or explain a query."
        )
    return replace(found, sql=prefix + found.sql, kind="query", locks=(), counted=False, returns=True, checks=())


_ORDERED_OTHERWISE: Final = frozenset({
    "joins", "laterals", "order", "limit", "offset", "fetch", "group", "having", "distinct", "windows", "qualify",
    "into",
})  # fmt: skip
"""Clauses of a SELECT that decide the order of its rows, or their number."""

_DML: Final = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


class _Statement:
    """The rewriting of one query or data-modifying statement."""

    def __init__(self, dialect: str, scopes: Scopes, plain: Rewritten) -> None:
        self.dialect = dialect
        self.scopes = scopes
        self.plain = plain
        self.count = plain.count
        self.names = Names()
        self.computed = Computed(plain.count + 1)
        self.written: list[RewrittenChange] = []

    def rewrite(self, tree: exp.Expr) -> Rewritten:
        clause = tree.args.get("with_")
        changing = isinstance(clause, exp.With) and any(isinstance(c.this, _DML) for c in clause.expressions)
        hidden: frozenset[str] = frozenset()
        members: list[exp.CTE] = []
        if isinstance(clause, exp.With) and changing:
            members, hidden = self._members(clause)
            tree.set("with_", None)
        body: exp.Expr = tree
        counted = False
        if isinstance(tree, _DML):
            found = self._modify(tree, hidden)
            if isinstance(found, RewrittenChange):
                body, counted = found.body, found.counted
                kept = tree.args.get("with_")
                members += [*(kept.expressions if kept is not None else []), *found.members]
                recursive = kept is not None and bool(kept.args.get("recursive"))
                clause = exp.With(expressions=members, recursive=recursive) if members else None
                body.set("with_", clause)
                return self._result(body, counted, found, changing)
        elif isinstance(tree, exp.Query):
            self._in_key_order(tree, hidden)
            locking = with_row_locks(tree, self.scopes, lambda: self.scopes.replace(tree, hidden))
            if locking is not None:
                self.written.append(locking)
            else:
                self.scopes.replace(tree, hidden)
        else:
            raise TrinityError(
                "NOT_SUPPORTED", f"{tree.key.upper()} of a journalled table is not supported: it cannot be rewritten."
            )
        if changing:
            recursive = isinstance(clause, exp.With) and bool(clause.args.get("recursive"))
            body.set("with_", exp.With(expressions=members, recursive=recursive))
        return self._result(body, counted, None, changing)

    def _members(self, clause: exp.With) -> tuple[list[exp.CTE], frozenset[str]]:
        """Return the rewritten members of a WITH with changes; the members of a change come before it."""
        names = [trees.folded(c.args["alias"].this) for c in clause.expressions]
        hidden = frozenset(names) if clause.args.get("recursive") else frozenset()
        members: list[exp.CTE] = []
        for member, name in zip(clause.expressions, names, strict=True):
            if isinstance(member.this, _DML):
                found = self._modify(member.this, hidden)
                if isinstance(found, RewrittenChange):
                    members += found.members
                    member.set("this", _as_member(member.this, found))
            else:
                self.scopes.replace(member.this, hidden)
            members.append(member)
            hidden = hidden | {name}
        return members, hidden

    def _modify(self, node: exp.Expr, hidden: frozenset[str]) -> RewrittenChange | None:
        """Rewrite INSERT, UPDATE, DELETE or MERGE; None when its target is an ordinary table."""
        target = node.this.this if isinstance(node.this, exp.Schema) else node.this
        if not isinstance(target, exp.Table):
            raise TrinityError("NOT_SUPPORTED", f"{node.key.upper()} needs the name of a table as its target.")
        table = self.scopes.journalled(target)
        self.scopes.replace(node, hidden, target=target)
        if table is None:
            return None
        _check_target(target, table)
        alias = trees.alias_name(target)
        if isinstance(node, exp.Insert):
            found = self._insert(node, table, alias)
        elif isinstance(node, exp.Update):
            found = update(node, table, alias, self.dialect, self.names)
        elif isinstance(node, exp.Delete):
            found = delete(node, table, alias, self.dialect, self.names)
        else:
            assert isinstance(node, exp.Merge)
            found = merge(node, table, alias, self.dialect, self.names)
        self.written.append(found)
        return found

    def _insert(self, node: exp.Insert, table: JournalTable, alias: exp.Identifier) -> RewrittenChange:
        if node.args.get("conflict") is not None:
            return insert_on_conflict(node, table, alias, self.dialect, self.computed, self.names)
        return insert(node, table, alias, self.dialect, self.computed)

    def _in_key_order(self, tree: exp.Query, hidden: frozenset[str]) -> None:
        """Order a plain SELECT from one table by its key.

        The journal's index is read backwards, so the highest key would come first, which surprises people.
        """
        source = tree.args["from_"].this if tree.args.get("from_") is not None else None
        if not isinstance(tree, exp.Select) or not isinstance(source, exp.Table) or source.args.get("joins"):
            return
        alias = source.args.get("alias")
        if tree.args.keys() & _ORDERED_OTHERWISE & {k for k, v in tree.args.items() if v} or (
            alias is not None and alias.args.get("columns")
        ):
            return
        if not all(map(is_of_one_row, tree.expressions)):
            return
        table = self.scopes.find(source, hidden | _names(tree))
        if table is not None and table.columns:
            order = [trees.column(k, trees.alias_name(source)) for k in table.key]
            tree.order_by(*order, copy=False)

    def _result(self, body: exp.Expr, counted: bool, found: RewrittenChange | None, changing: bool) -> Rewritten:
        if not self.scopes.refers_to_model:  # the name was a column's, or another schema's table
            return self.plain
        main = bind(body, self.dialect)
        values = exp.Values(expressions=[exp.Tuple(expressions=[v]) for v in self.computed.values])
        locks = tuple(self._lock(w.lock, changing) for w in self.written)
        checked = {w.unique for w in self.written if w.unique is not None}
        returns = not counted and (isinstance(body, exp.Query) or body.args.get("returning") is not None)
        return Rewritten(
            main.sql,
            main.parameters,
            self.count,
            "change" if self.written or isinstance(body, exp.DML) else "query",
            locks,
            bind(values, self.dialect) if self.computed.values else None,
            counted,
            returns,
            tuple(
                UniqueCheck(t, columns, bind(query, self.dialect))
                for t in checked
                for columns, query in _unique_checks(t, self.dialect)
            ),
            found.lock.table if found is not None else None,
        )

    def _lock(self, lock: Lock, changing: bool) -> KeyLock:
        # with a change in WITH, the keys are not known before the statement runs: lock the whole table
        keys = bind(lock.keys, self.dialect) if lock.keys is not None and not changing else None
        return KeyLock(lock.table, keys)


def _names(tree: exp.Query) -> frozenset[str]:
    """Return the names of a query's own CTEs."""
    clause = tree.args.get("with_")
    members = clause.expressions if isinstance(clause, exp.With) else []
    return frozenset(trees.folded(c.args["alias"].this) for c in members)


def _as_member(node: exp.Expr, found: RewrittenChange) -> exp.Expr:
    """Return a change as a member of WITH, which may have its own WITH."""
    clause = node.args.get("with_")
    if clause is not None and found.members:
        raise TrinityError(
            "NOT_SUPPORTED", "This change in WITH cannot have a WITH of its own; move that to the front."
        )
    found.body.set("with_", clause)
    return found.body


def _check_target(target: exp.Table, table: JournalTable) -> None:
    if target.args.get("only"):
        raise TrinityError("NOT_SUPPORTED", f"ONLY on journalled table {table} is not supported.")
    if not table.guarded:
        key = ", ".join((*table.key, table.version))
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"{table.backend_schema}.{table.journal} has no unique index over ({key}), which writes need to refuse "
            "a second row of one version. Add a primary key over these columns.",
        )


def _unique_checks(table: JournalTable, dialect: str) -> Iterator[tuple[tuple[str, ...], exp.Query]]:
    """Yield each unique key with a query for values, as text, that two live rows share. NULLs are never equal."""
    for columns in table.unique_keys:
        names: list[exp.Expr] = [trees.column(c) for c in columns]
        known = [exp.Not(this=exp.Is(this=n.copy(), expression=exp.Null())) for n in names]
        text = [trees.cast(n.copy(), "text") for n in names]
        query = trees.select(text, trees.derived(live_rows(table, dialect), "live"), known)
        query.set("group", exp.Group(expressions=names))
        several = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(1))
        query.set("having", exp.Having(this=several))
        yield columns, query.limit(1, copy=False)
