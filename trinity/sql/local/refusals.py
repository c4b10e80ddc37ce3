"""Refusals of what only Spark runs: clauses of a query, and expressions."""

from __future__ import annotations

from sqlglot import exp

from trinity.engine.executes import NotLocal
from trinity.engine.expressions import Compiled, Refused


def refuse_other_clauses(node: exp.Expr, *known: str) -> None:
    """Refuse a node that has other clauses than the allowed ones."""
    further = [name for name, value in node.args.items() if value and name not in known]
    if further:
        raise Refused(f"'{further[0].strip('_')}' of {node.key.upper()} is run by Spark only")


def or_refuse(found: Compiled | NotLocal) -> Compiled:
    """Return a compiled expression; refuse one that only Spark evaluates."""
    if isinstance(found, NotLocal):
        raise Refused(found.reason)
    return found
