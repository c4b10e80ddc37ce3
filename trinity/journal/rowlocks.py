"""SELECT … FOR UPDATE of one journalled table: it locks the keys of its rows, as their UPDATE does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.locks import is_locked, lock_of
from trinity.journal.scopes import Scopes
from trinity.journal.writing import RewrittenChange

_NOT_WITH: Final = ("joins", "laterals", "group", "having", "distinct", "limit", "offset", "fetch", "windows", "with_")


def with_row_locks(tree: exp.Query, scopes: Scopes, replace: Callable[[], None]) -> RewrittenChange | None:
    """Rewrite a query with FOR UPDATE; None when it has none, and for one of ordinary tables alone.

    Raises:
        TrinityError: NOT_SUPPORTED for NOWAIT, SKIP LOCKED, and more than one table.
    """
    if not any(s.args.get("locks") for s in tree.find_all(exp.Select)):
        return None
    if not any(scopes.find(table) for table in tree.find_all(exp.Table)):
        return None
    locks = tree.args.get("locks") or []
    if not locks:
        raise _refused()
    source = tree.args["from_"].this if tree.args.get("from_") is not None else None
    simple = isinstance(tree, exp.Select) and isinstance(source, exp.Table) and not source.args.get("joins")
    if not simple or any(tree.args.get(k) for k in _NOT_WITH) or any(k.args.get("wait") is not None for k in locks):
        raise _refused()
    assert isinstance(tree, exp.Select)
    assert isinstance(source, exp.Table)
    table = scopes.journalled(source)
    if table is None:
        raise _refused()
    key: list[exp.Expr] = [trees.column(k, trees.alias_name(source)) for k in table.key]
    tree.set("locks", None)
    replace()
    base = tree.copy()
    base.set("order", None)
    lock = lock_of(table, base, key, [base])
    if lock.keys is not None:
        tree.where(is_locked(table, key), copy=False)
    return RewrittenChange(tree, lock)


def _refused() -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        "FOR UPDATE locks rows of a journalled table in a plain SELECT from that table alone, without NOWAIT, SKIP "
        "LOCKED or LIMIT.",
    )
