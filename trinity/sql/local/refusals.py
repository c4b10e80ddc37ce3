"""The refusal of clauses that only Spark runs."""

from __future__ import annotations

from sqlglot import exp

from trinity.engine.expressions import Refused


def refuse_other_clauses(node: exp.Expr, *known: str) -> None:
    """Refuse a node that has other clauses than the allowed ones."""
    further = [name for name, value in node.args.items() if value and name not in known]
    if further:
        raise Refused(f"'{further[0].strip('_')}' of {node.key.upper()} is run by Spark only")
